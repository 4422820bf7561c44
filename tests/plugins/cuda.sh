# Kernels of plugins on the GPU that the C compiler makes: sh cuda.sh BUILD SOURCE. f32, f16 and bf16, sizes with and without
# a rest, against the scalar reference; a text that does not compile is one error.
set -u
build=$1 source=$2 bad=0
fail() { echo "FAIL: $*"; bad=1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work" || exit 1
. "$here/untrusted.sh"
untrusted "$build/hone"
cp -r "$source/plugins" "$work" || exit 1
for name in swish add_relu; do "$build/hone" op build "$work/plugins/$name" >/dev/null || fail "build $name"; done
gpu() { HONE_BUILD="$build" sh "$source/tests/cuda/emulated.sh" "$build/hone" "$@"; }
for shape in 2x3x17 4x64 1; do
  "$build/text_model" "graph g(%x: f32[$shape], %z: f32[$shape]) -> (%y) { %s = Add(%x, %z)  %r = Relu(%s)
    %g = Sigmoid(%r)  %y = Mul(%r, %g) }" "$work/m.onnx" || fail model
  for precision in f32 fp16 bf16; do
    gpu verify "$work/m.onnx" --op-path "$work/plugins" --device cuda --precision $precision -n 2 --json >"$work/v.json" 2>"$work/err" ||
      { fail "$shape $precision"; cat "$work/v.json" "$work/err"; }
  done
  gpu profile "$work/m.onnx" --op-path "$work/plugins" --device cuda -n 1 --json >"$work/p.json" 2>"$work/err" || { fail profile; cat "$work/err"; }
  for name in swish_cuda add_relu_cuda; do grep -q "\"$name\"" "$work/p.json" || fail "$shape: $name was not used"; done
done
exit $bad
