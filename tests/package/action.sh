#!/bin/sh
# The GitHub action, as its steps call it, in a repository made here: sh action.sh BUILD SOURCE
set -u
build=$1 source=$2 bad=0
fail() { echo "FAIL: $*"; cat log; bad=1; }
command -v git >/dev/null 2>&1 || { echo "SKIP: git is not installed"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/action-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export HONE="$build/hone" MODEL=models/net.onnx GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 RUNNER_TEMP="$work" THREADS=1
git init -q -b main repo && cd repo && git config user.email a@example.org && git config user.name a && mkdir models || exit 1
commit() { git add -A && git commit -qm "$1"; }
network() { "$HONE" zoo mobilenetv2 --width "$1" --size 32 -b 1 -o models/net.onnx || exit 1; }
echo nothing >README && commit first
git clone -q . ../fork && cd ../fork && git config user.email a@example.org && git config user.name a && mkdir models || exit 1
gate() { # exit code, verdict, then the environment
  wanted=$1 verdict=$2; shift 2
  : >out
  env GITHUB_OUTPUT=out "$@" sh "$source/action/gate.sh" >log 2>&1
  code=$?
  [ $code = "$wanted" ] || fail "exit $code instead of $wanted with $*"
  [ "$(cat out)" = "${verdict:+verdict=$verdict}" ] || fail "'$(cat out)' instead of $verdict with $*"
}
gate 3 '' GITHUB_BASE_REF=main
network 0.1
gate 0 skipped GITHUB_BASE_REF=main # it is new
grep -q '^::notice.*is new' log || fail "no notice"
gate 0 skipped BEFORE=0000000000000000000000000000000000000000
gate 3 '' GITHUB_BASE_REF=none
gate 2 '' GITHUB_BASE_REF=main NO_VERDICT=maybe
# The same model on the target branch, then one that takes many times as long.
(cd ../repo && mkdir -p models && cp ../fork/models/net.onnx models/ && commit model) || exit 1
git fetch -q origin
gate 0 skipped GITHUB_BASE_REF=main
"$HONE" zoo mobilenetv2 --width 0.1 --size 32 -b 1 --seed 2 -o models/net.onnx || exit 1
gate 5 none GITHUB_BASE_REF=main OPTIONS='-n 1 -w 0 --max-seconds 0.01'
gate 0 none GITHUB_BASE_REF=main OPTIONS='-n 1 -w 0 --max-seconds 0.01' NO_VERDICT=pass
network 0.75
gate 1 worse BASELINE="$work/repo/models/net.onnx" OPTIONS='-n 3 -w 1'
gate 1 worse GITHUB_BASE_REF=main OPTIONS='-n 3 -w 1'
[ -s gate.xml ] || fail "no gate.xml"
[ -z "$(find "$work" -maxdepth 1 -name 'gate-*')" ] || fail "left a folder behind"

for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && "$python" -c 'import yaml' 2>/dev/null && break
  python=
done
if [ -n "$python" ]; then
  "$python" - "$source/action" >log 2>&1 <<'PYTHON' || fail "action.yml"
import re, sys, yaml
folder = sys.argv[1]
action = yaml.safe_load(open(folder + "/action.yml"))
script, page = open(folder + "/gate.sh").read(), open(folder + "/README.md").read()
assert action["runs"]["using"] == "composite"
for step in action["runs"]["steps"]:
    assert step["shell"] == "sh" and step["run"]
names = set(action["inputs"])
used = set(re.findall(r"inputs\.([a-z-]+)", open(folder + "/action.yml").read()))
assert names == used, names ^ used
assert names == set(re.findall(r"^\| `([a-z-]+)` \|", page, re.M)), "README"
for variable in action["runs"]["steps"][-1]["env"]:
    assert "${" + variable in script or "$" + variable in script, variable
PYTHON
else
  echo "SKIP: no Python with yaml"
fi
exit $bad
