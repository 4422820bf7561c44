# hone op new --from: every function that it can write down, on the processor and, where the build has it, on the emulated GPU,
# against the nodes themselves: sh from.sh BUILD SOURCE CUDA
set -u
build=$1 source=$2 cuda=$3 bad=0
hone=$build/hone
CC=${CC:-cc}
command -v "$CC" >/dev/null 2>&1 || { echo "SKIP: there is no C compiler"; exit 77; }
fail() { echo "FAIL: $*"; bad=1; }
here=$(cd "$(dirname "$0")" && pwd)
cd "$(mktemp -d)" || exit 1
. "$here/untrusted.sh"
untrusted "$hone"
# Nodes are called OPERATOR_PLACE.
"$build/text_model" 'graph g(%x: f32[3x5x7], %z: f32[3x5x7]) -> (%y) {
  %a = Add(%x, %z)  %b = Sub(%a, 0.5)  %c = Mul(%b, %x)  %d = Tanh(%c)  %e = Neg(%d)  %f = Abs(%e)  %g = Sqrt(%f)
  %h = Exp(%g)  %i = Div(%z, %h)  %j = Sigmoid(%i)  %k = Reciprocal(%h)  %l = Max(%j, %k)  %m = Min(%l, 0.9)
  %n = LeakyRelu(%i) {alpha=0.25}  %o = Add(%m, %n)  %p = HardSigmoid(%o) {alpha=0.3, beta=0.4}
  %q = HardSwish(%o)  %r = Sub(%q, %p)  %s = Clip(%r, -0.25, 0.75)  %t = Relu(%r)  %u = Identity(%t)  %y = Add(%s, %u)
}' all.onnx || exit 1
nodes=$("$hone" inspect all.onnx --json | tr ',{' '\n\n' | sed -n 's/.*"name": "\([A-Za-z]*_[0-9]*\)".*/\1/p' | sort -u -t_ -k2n | tr '\n' ',' | sed 's/,$//')
"$hone" op new all --from all.onnx --nodes "$nodes" >log 2>&1 || { fail "op new: $nodes"; cat log; }
"$hone" op build all >log 2>&1 || { fail "op build"; cat log; }
if grep -q warning log; then fail "what is generated gives warnings"; cat log; fi
for isa in scalar avx2 avx512; do
  HONE_CPU=$isa "$hone" verify all.onnx --op-path all -n 5 >log 2>&1 || { fail "$isa"; cat log; }
done
"$hone" optimize all.onnx --op-path all --explain | grep -q 'this is custom.All' || fail "its own nodes are not found"
if [ "$cuda" = ON ]; then
  for precision in f32 fp16 bf16; do
    HONE_BUILD=$build sh "$source/tests/cuda/emulated.sh" "$hone" verify all.onnx --op-path all --device cuda --precision $precision -n 2 >log 2>&1 ||
      { fail "cuda $precision"; cat log; }
  done
fi
says() { # what is expected, exit code, command...
  want=$1 code=$2; shift 2
  out=$("$@" 2>&1); got=$?
  [ $got = "$code" ] || fail "exit $got, expected $code: $* -> $out"
  case $out in *"$want"*) ;; *) fail "no '$want' from: $* -> $out" ;; esac
}
says "no node 'nowhere'" 2 "$hone" op new e --from all.onnx --nodes Add_0,nowhere
says 'more than one result' 2 "$hone" op new e --from all.onnx --nodes Add_0,Sub_2,Tanh_4
says 'go together' 2 "$hone" op new e --from all.onnx
says 'nope.onnx' 3 "$hone" op new e --from nope.onnx --nodes a
"$build/text_model" 'graph g(%x: f32[3x5]) -> (%y) { %s = Softmax(%x)  %y = Relu(%s) }' soft.onnx
says "Softmax 'Softmax_0' cannot be written down" 3 "$hone" op new e --from soft.onnx --nodes Softmax_0,Relu_1
"$build/text_model" 'graph g(%x: f32[3x5], %b: f32[5]) -> (%y) { %s = Add(%x, %b)  %y = Relu(%s) }' row.onnx
says "another shape" 3 "$hone" op new e --from row.onnx --nodes Add_0,Relu_1
"$build/text_model" 'graph g(%x: f32[3], %c: bool[]) -> (%y) {
  %a = If(%c) {then_branch = graph t() -> (%p) { %p = Relu(%x) }, else_branch = graph e() -> (%q) { %q = Neg(%x) }}  %y = Neg(%a)
}' if.onnx
says "'If_2' (If) holds a graph" 2 "$hone" op new e --from if.onnx --nodes If_2,Neg_3
# Names with commas and backslashes.
"$build/text_model" 'graph g(%x: f32[3x5]) -> (%y) { %s = Sigmoid(%x) "a,b\\c"  %y = Mul(%x, %s) "," }' comma.onnx
says 'hone op build' 0 "$hone" op new comma --from comma.onnx --nodes 'a\,b\\c,\,'
says "no node 'a'" 2 "$hone" op new e --from comma.onnx --nodes 'a,b\\c,\,'
says 'names between commas' 2 "$hone" op new e --from comma.onnx --nodes 'a,,b'
says 'names between commas' 2 "$hone" op new e --from comma.onnx --nodes ','
says 'names between commas' 2 "$hone" op new e --from comma.onnx --nodes ''
says 'names between commas' 2 "$hone" op new e --from comma.onnx --nodes "$(seq -s, 40)"
[ ! -e e ] || fail "a folder is left"
exit $bad
