# To be sourced by tests that need ONNX Runtime: `dir`, a folder of their own, `python`, and `run`, which keeps ONNX
# Runtime's files out of HOME. Ends the test as skipped where there is no Python with it.
dir=$(mktemp -d "${TMPDIR:-/tmp}/ort-XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/home"
run() { HOME="$dir/home" XDG_CACHE_HOME="$dir/home" "$@"; }
for python in "${HONE_PYTHON:-}" python3; do
  [ -n "$python" ] && run "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null && break
  python=
done
[ -n "$python" ] || { echo "SKIP: no Python with onnx and onnxruntime (HONE_PYTHON names one)"; exit 77; }
