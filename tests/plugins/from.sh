# hone op new --from: every function that it can write down, on the processor and, where the build has it, on the emulated GPU,
# against the nodes themselves: sh from.sh BUILD SOURCE CUDA
. "$(dirname "$0")/begin.sh"
source=$2 cuda=$3
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
says "no node 'nowhere'" 2 "$hone" op new e --from all.onnx --nodes Add_0,nowhere
says 'more than one result' 2 "$hone" op new e --from all.onnx --nodes Add_0,Sub_2,Tanh_4
says 'go together' 2 "$hone" op new e --from all.onnx
says 'nope.onnx' 3 "$hone" op new e --from nope.onnx --nodes a
"$build/text_model" 'graph g(%x: f32[3x5]) -> (%y) { %s = Softmax(%x)  %y = Relu(%s) }' soft.onnx
"$build/text_model" 'graph g(%x: f32[3x5], %b: f32[5]) -> (%y) { %s = Add(%x, %b)  %y = Relu(%s) }' row.onnx
"$build/text_model" 'graph g(%x: f32[3], %c: bool[]) -> (%y) {
  %a = If(%c) {then_branch = graph t() -> (%p) { %p = Relu(%x) }, else_branch = graph e() -> (%q) { %q = Neg(%x) }}  %y = Neg(%a)
}' if.onnx
says "'If_2' (If) holds a graph" 2 "$hone" op new e --from if.onnx --nodes If_2,Neg_3
# Nodes that are not all elementwise: what is written passes its own test, and the model with it is right.
part() { # name, nodes, graph
  "$build/text_model" "$3" "$1.onnx" || { fail "$1: text_model"; return; }
  "$hone" op new "$1" --from "$1.onnx" --nodes "$2" >log 2>&1 || { fail "op new $1"; cat log; return; }
  "$hone" op build "$1" >log 2>&1 || { fail "op build $1"; cat log; return; }
  if grep -q warning log; then fail "what is generated for $1 gives warnings"; cat log; fi
  says ' 0 failed' 0 "$hone" op test --op-path "$1" -n 4 --filter "$1_scalar"
  says 'same ' 0 "$hone" verify "$1.onnx" --op-path "$1" -n 1
  case $("$hone" optimize "$1.onnx" --op-path "$1" --explain 2>&1) in *"this is custom."*) ;; *) fail "$1: its own nodes are not found" ;; esac
}
part soft Softmax_0,Relu_1 'graph g(%x: f32[3x5]) -> (%y) { %s = Softmax(%x)  %y = Relu(%s) }'
part waves Sin_0,Cos_1,Tan_2,Atan_3,Sinh_4,Asinh_5,Cosh_6,Add_8,Acosh_9,Mul_11,Asin_12,Acos_13,Mul_15,Atanh_16,Sign_17,Add_18 'graph g(%x: f32[3x5]) -> (%y) {
  %a = Sin(%x)  %b = Cos(%a)  %c = Tan(%b)  %d = Atan(%c)  %e = Sinh(%d)  %f = Asinh(%e)  %g = Cosh(%f)  %h = Add(%g, 1.0)
  %i = Acosh(%h)  %j = Mul(%i, 0.3)  %k = Asin(%j)  %l = Acos(%k)  %m = Mul(%l, 0.3)  %n = Atanh(%m)  %o = Sign(%x)  %y = Add(%n, %o) }'
part row Add_0,Relu_1 'graph g(%x: f32[3x5], %b: f32[5]) -> (%y) { %s = Add(%x, %b)  %y = Relu(%s) }'
part layer ReduceMean_0,Sub_1,Pow_3,ReduceMean_4,Add_6,Sqrt_7,Div_8,Mul_9,Add_10 'graph g(%x: f32[2x5x16], %g: f32[16], %b: f32[16]) -> (%y) {
  %m = ReduceMean(%x) {axes=[-1]}  %d = Sub(%x, %m)  %q = Pow(%d, 2.0)  %v = ReduceMean(%q) {axes=[-1]}  %e = Add(%v, 0.00001)
  %s = Sqrt(%e)  %n = Div(%d, %s)  %h = Mul(%n, %g)  %y = Add(%h, %b) }'
part planes Conv_0,BatchNormalization_1,LeakyRelu_2 'graph g(%x: f32[2x4x7x5]) -> (%y) {
  const %w: f32[4x1x3x3] = rand(1)  const %s: f32[4] = {1, 2, -1, 0.5}  const %b: f32[4] = rand(2)  const %m: f32[4] = rand(3)
  const %v: f32[4] = {1, 0.5, 2, 3}
  %c = Conv(%x, %w) {group=4, pads=[1,1,1,1]} "Conv_0"  %n = BatchNormalization(%c, %s, %b, %m, %v) "BatchNormalization_1"
  %y = LeakyRelu(%n) "LeakyRelu_2" }'
part squeeze GlobalAveragePool_0,Conv_1,Relu_2,Conv_3,Sigmoid_4,Mul_5 'graph g(%x: f32[2x6x5x7], %w: f32[3x6x1x1], %b: f32[3], %z: f32[6x3x1x1], %c: f32[6]) -> (%y) {
  %p = GlobalAveragePool(%x)  %r = Conv(%p, %w, %b)  %a = Relu(%r)  %e = Conv(%a, %z, %c)  %s = Sigmoid(%e)  %y = Mul(%x, %s) }'
part heads MatMul_0,Div_2,Add_3,Softmax_4,MatMul_5,Transpose_6,Reshape_8 'graph g(%q: f32[2x3x8x4], %k: f32[2x3x4x9], %v: f32[2x3x9x4], %m: f32[2x1x8x9]) -> (%y) {
  %s = MatMul(%q, %k)  %t = Div(%s, 2.0)  %u = Add(%t, %m)  %p = Softmax(%u) {axis=-1}  %o = MatMul(%p, %v)
  %a = Transpose(%o) {perm=[0,2,1,3]}  %y = Reshape(%a, i64[3]{0, -1, 12}) }'
"$build/text_model" 'graph g(%x: f32[3x5]) -> (%y) { %s = CumSum(%x, i64[1]{1})  %y = Relu(%s) }' sum.onnx
says "CumSum 'CumSum_" 3 "$hone" op new e --from sum.onnx --nodes CumSum_1,Relu_2
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
