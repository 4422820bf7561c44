# What make install gives, used as an outsider does: sh package.sh BUILD SOURCE. hone, its headers and the plugins of
# plugins/ in an empty root; every plugin is built by hone op build and one with CMake, and is used in a model.
set -u
build=$1 source=$2 bad=0
CC=${CC:-cc}
command -v "$CC" >/dev/null 2>&1 || { echo "SKIP: there is no C compiler"; exit 77; }
root=$(mktemp -d) || exit 1
trap 'rm -rf "$root"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$root" || exit 1
. "$here/untrusted.sh"
untrusted "$build/hone"
fail() { echo "FAIL: $*"; bad=1; }
cmake --install "$build" --prefix "$root/usr" >install.log 2>&1 || { cat install.log; exit 1; }
hone=$root/usr/bin/hone
[ -x "$hone" ] && [ -e usr/lib/libhone.so ] && [ -e usr/lib/pkgconfig/hone.pc ] || fail "not all is installed"
# Every header by itself, as C11 and, where there is a compiler, as C++17.
for header in usr/include/hone/*.h; do
  "$CC" -std=c11 -Wall -Wextra -Werror -fsyntax-only -Iusr/include -x c "$header" || fail "$header as C11"
  if command -v c++ >/dev/null 2>&1; then
    c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -Iusr/include -x c++ "$header" || fail "$header as C++17"
  fi
done
cp -r "$source/plugins" . || exit 1
for folder in plugins/*/; do
  name=$(basename "$folder")
  "$hone" op build "$folder" >log 2>&1 || { fail "hone op build $name"; cat log; }
done
if command -v cmake >/dev/null 2>&1; then
  cmake -S plugins/swish -B made -DCMAKE_PREFIX_PATH="$root/usr" >log 2>&1 && cmake --build made >>log 2>&1 ||
    { fail "CMake"; cat log; }
  "$hone" op list --op-path made/swish.so 2>&1 | grep -q 'operator custom.Swish' || fail "the plugin that CMake made"
fi
# A library caller: linked with libhone.so, it loads the same plugin.
cat >caller.c <<'C'
#include <hone/hone.h>
#include <stdio.h>
int main(int argc, char **argv) {
  hone_error e = {0};
  hone_plugin_info p;
  if (argc != 2 || hone_plugins_load(&(hone_plugins_options){.path = argv[1]}, &e) != HONE_OK) return 1;
  if (!hone_plugin_at(0, &p)) return 2;
  if (p.error) printf("%s\n", p.error->what);
  return p.state == HONE_PLUGIN_LOADED ? 0 : 3;
}
C
if [ -z "${HONE_TEST_SANITIZED:-}" ]; then
  "$CC" -Iusr/include caller.c -o caller -Lusr/lib -lhone -Wl,-rpath,"$root/usr/lib" && ./caller plugins/swish || fail "a caller of the library"
fi
# What the patterns take is used, says what two operators say, and goes away again.
use() { # plugin, type of the layer, model
  "$hone" run "$3" --op-path plugins --op-disable "$2" --output-dir off >/dev/null || fail "$1 switched off"
  "$hone" run "$3" --output-dir none >/dev/null || fail "$1 without plugins"
  cmp -s off/y.npy none/y.npy || fail "$1: switched off is not bit for bit what it was"
  "$hone" verify "$3" --op-path plugins -n 20 >log 2>&1 || { fail "$1 is wrong"; cat log; }
  "$hone" inspect "$3" --op-path plugins --json >/dev/null || fail "inspect"
}
"$hone" op list --op-path plugins --json >list.json || fail "list"
for name in swish add_relu softmax_attention yolo_nms yolo_decode depthwise_conv_bn_relu; do grep -q "\"$name\"" list.json || fail "$name is not in the list"; done
"$build/text_model" "graph g(%x: f32[2x3x17]) -> (%y) { %g = Sigmoid(%x)  %y = Mul(%x, %g) }" swish.onnx || fail model
"$build/text_model" "graph g(%x: f32[2x3x17]) -> (%y) { const %b: f32[1] = {1.702}
  %s = Mul(%x, %b)  %g = Sigmoid(%s)  %y = Mul(%x, %g) }" quick.onnx || fail model
"$build/text_model" "graph g(%x: f32[5x7], %z: f32[5x7]) -> (%y) { %s = Add(%x, %z)  %y = Relu(%s) }" add.onnx || fail model
use swish Swish swish.onnx
use swish Swish quick.onnx
use add_relu AddRelu add.onnx
# One step and two agree bit for bit.
"$hone" run add.onnx --op-path plugins --output-dir one >/dev/null && cmp -s one/y.npy none/y.npy || fail "add_relu: not the same bits"
# softmax_attention: every pattern, a mask that broadcasts, sizes with rests; the kernels alone against the reference.
attention() { # the lines between the products, file
  "$build/text_model" "graph g(%q: f32[2x3x37x24], %k: f32[2x3x24x41], %v: f32[2x3x41x19], %m: f32[2x1x1x41]) -> (%y) {
    const %c: f32 = {0.2}
    %s = MatMul(%q, %k)  $1  %y = MatMul(%p, %v) }" "$2" || fail model
  use softmax_attention SoftmaxAttention "$2"
  "$hone" optimize "$2" --op-path plugins --explain -o o.onnx | grep -q 'this is custom.SoftmaxAttention' ||
    fail "$2 is not custom.SoftmaxAttention"
}
attention '%p = Softmax(%s) {axis=-1}' bare.onnx
attention '%z = Mul(%s, %c)  %p = Softmax(%z) {axis=3}' scaled.onnx
attention '%z = Div(%s, %c)  %p = Softmax(%z) {axis=-1}' divided.onnx
attention '%a = Add(%s, %m)  %p = Softmax(%a) {axis=-1}' masked.onnx
attention '%z = Mul(%s, %c)  %a = Add(%z, %m)  %p = Softmax(%a) {axis=-1}' both.onnx
attention '%z = Div(%s, %c)  %a = Add(%m, %z)  %p = Softmax(%a) {axis=-1}' other.onnx
# Seeds 1 and 4 draw scores that leave the range of f32 on their way.
for seed in 1 2 4; do
  HONE_OP_PATH=$PWD/plugins "$hone" op test SoftmaxAttention --seed $seed -n 60 >log 2>&1 ||
    { fail "hone op test SoftmaxAttention --seed $seed"; cat log; }
done
HONE_OP_PATH=$PWD/plugins "$hone" op test YoloNms -n 12 >log 2>&1 || { fail "hone op test YoloNms"; cat log; }
# depthwise_conv_bn_relu: the pattern with and without normalisation; by its own name it says what the nodes say.
numbers() { awk -v n="$1" -v at="$2" 'BEGIN { for (i = 0; i < n; i++) printf "%s%.3f", i ? ", " : "", (i * 7 + at) % 11 / 11 - 0.3 }'; }
depthwise() { # size of the kernel, attributes, sizes of x, file
  taps=$(($1 * $1 * 5))
  "$build/text_model" "opset 17
    opset \"custom\" 1
    graph g(%x: f32[$3]) -> (%y, %far) {
    const %w: f32[5x1x$1x$1] = {$(numbers $taps 1)}  const %b: f32[5] = {$(numbers 5 2)}
    const %scale: f32[5] = {$(numbers 5 3)}  const %beta: f32[5] = {$(numbers 5 4)}
    const %mean: f32[5] = {$(numbers 5 5)}  const %var: f32[5] = {0.5, 1, 2, 0.25, 3}
    %c = Conv(%x, %w, %b) {group=5, $2}  %n = BatchNormalization(%c, %scale, %beta, %mean, %var)  %y = Relu(%n)
    %o = custom::DepthwiseConvBnReLU(%x, %w, %b, %scale, %beta, %mean, %var) {$2}
    %d = Sub(%o, %y)  %a = Abs(%d)  %far = ReduceMax(%a) }" "$4" || fail model
  "$hone" run "$4" --op-path plugins --output-dir far >/dev/null || fail "run $4"
  tail -c 4 far/far.npy | od -An -tf4 | awk '{ exit !($1 < 1e-5) }' || fail "$4: far from the nodes"
  "$hone" optimize "$4" --op-path plugins --explain -o o.onnx | grep -q 'this is custom.DepthwiseConvBnReLU' ||
    fail "$4 is not custom.DepthwiseConvBnReLU"
}
export HONE_OP_PATH="$PWD/plugins"
depthwise 3 'pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]' 2x5x13x37 same.onnx
depthwise 3 'pads=[0, 1, 2, 0], strides=[2, 2], dilations=[1, 1]' 1x5x15x22 half.onnx
depthwise 5 'pads=[2, 3, 2, 3], strides=[3, 1], dilations=[2, 3]' 1x5x19x70 wide.onnx
unset HONE_OP_PATH
"$hone" op test DepthwiseConvBnReLU --op-path plugins/depthwise_conv_bn_relu -n 40 --shape x=2x5x9x11 --shape w=5x1x3x3 \
  --shape b=5 --shape scale=5 --shape beta=5 --shape mean=5 --shape var=5 >log 2>&1 || { fail "hone op test DepthwiseConvBnReLU"; cat log; }
exit $bad
