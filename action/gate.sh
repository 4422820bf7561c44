#!/bin/sh
# The step of action.yml: finds the model as it was, and lets hone gate compare. Inputs come as MODEL, BASELINE, THREADS,
# OPTIONS, NO_VERDICT, JUNIT, HONE; GitHub gives GITHUB_BASE_REF (pull requests), BEFORE (pushes) and GITHUB_OUTPUT.
set -u
hone=${HONE:-$(dirname "$0")/../build/hone}
work=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/gate-XXXXXX") || exit 6
trap 'rm -rf "$work"' EXIT
verdict() { [ -z "${GITHUB_OUTPUT:-}" ] || echo "verdict=$1" >>"$GITHUB_OUTPUT"; }
stop() { echo "::error title=hone gate::$1"; exit "$2"; }
skip() { echo "::notice title=hone gate::$1"; verdict skipped; exit 0; }

case ${NO_VERDICT:-fail} in pass | fail) ;; *) stop "no-verdict is pass or fail, not '$NO_VERDICT'" 2 ;; esac
[ -f "${MODEL:-}" ] || stop "there is no model '${MODEL:-}' in the repository" 3
baseline=${BASELINE:-}
if [ -z "$baseline" ]; then
  if [ -n "${GITHUB_BASE_REF:-}" ]; then
    git rev-parse -q --verify "origin/$GITHUB_BASE_REF^{commit}" >/dev/null || git fetch -q --depth 1 origin "$GITHUB_BASE_REF:refs/remotes/origin/$GITHUB_BASE_REF" ||
      stop "the branch $GITHUB_BASE_REF cannot be fetched" 3
    old=origin/$GITHUB_BASE_REF
  else
    old=${BEFORE:-}
    git rev-parse -q --verify "$old^{commit}" >/dev/null || skip "what was before this push is not there (actions/checkout with fetch-depth: 0)"
  fi
  git cat-file -e "$old:$MODEL" 2>/dev/null || skip "$MODEL is new: there is nothing to compare it with"
  # Beside nothing else, under its own name; what lies in Git LFS is a pointer in the commit.
  baseline=$work/$(basename "$MODEL")
  git cat-file blob "$old:$MODEL" >"$baseline" || exit 3
  if head -c 40 "$baseline" | grep -q '^version https://git-lfs'; then
    git lfs smudge <"$baseline" >"$work/smudged" && mv "$work/smudged" "$baseline" || stop "git lfs has no $MODEL of $old" 3
  fi
  if cmp -s "$baseline" "$MODEL"; then skip "$MODEL is as it was"; fi
fi
# shellcheck disable=SC2086 # words
"$hone" gate "$MODEL" --baseline "$baseline" -t "${THREADS:-2}" --junit "${JUNIT:-gate.xml}" ${OPTIONS:-}
code=$?
case $code in
0) verdict good ;;
1) verdict worse ;;
5) verdict none; [ "${NO_VERDICT:-fail}" = fail ] || code=0 ;;
esac
exit $code
