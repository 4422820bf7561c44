# Operators on 8-bit codes: sh codes.sh BUILD. Scales and zero points reach the kernels, from inputs and from the model.
. "$(dirname "$0")/begin.sh"
definition() { # operator, kind
  cat <<END
{ "op": "$1", "about": "Swish of floats or codes", "kind": "$2",
  "input_desc": [
    {"name": "x", "type": ["float", "int8", "uint8"], "scale": "xs", "zero": "xz"},
    {"name": "xs", "param_type": "optional", "type": "float"},
    {"name": "xz", "param_type": "optional", "type": ["int8", "uint8"]},
    {"name": "ys", "param_type": "optional", "type": "float"},
    {"name": "yz", "param_type": "optional", "type": ["int8", "uint8"]}],
  "output_desc": [{"name": "y", "type": ["float", "int8", "uint8"], "shape": "x", "scale": "ys", "zero": "yz"}],
  "attr": [{"name": "beta", "type": "float", "default_value": 1}],
  "pattern": [{
    "text": ["%d = DequantizeLinear(%x, !%xs, ?%xz)", "%g = Sigmoid(%d)", "%m = Mul(%d, %g)",
             "%y = QuantizeLinear(%m, !%ys, ?%yz)"],
    "inputs": "%x %xs %xz %ys %yz"}] }
END
}
# An elementwise kernel knows nothing of codes: what is built around it turns them into floats and back.
"$hone" op new swish >/dev/null || exit 1
mkdir quick
definition Quick elementwise >quick/quick.json
for part in ref cpu; do sed 's/swish/quick/g; s/in\[1\]/in[5]/' swish/swish_$part.c >quick/quick_$part.c; done
says '3 tactics, 1 pattern' 0 "$hone" op build quick
case $out in *warning*) fail "what is generated gives warnings: $out" ;; esac
says ' 0 failed' 0 "$hone" op test Quick --op-path quick -n 30
for type in f32 i8 u8; do case $out in *"  $type "*) ;; *) fail "$type is not tested: $out" ;; esac; done
# The same by a kernel of its own, which asks what the codes mean. Its cost makes it the choice everywhere.
mkdir own
definition Own general >own/own.json
{ sed 's/swish/own/g; s/in\[1\]/in[5]/' swish/swish_ref.c
  cat <<'END'
bool own_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  if (s->n_epilogue || hone_desc_bytes(&s->input[0].desc) != hone_desc_bytes(&s->output[0].desc))
    return hone_refuse(why, "an epilogue, or codes of something else");
  return s->input[0].desc.layout == s->output[0].desc.layout || hone_refuse(why, "in two orders");
}
double own_cost(const hone_step *s, const hone_machine *m) { return (void)s, (void)m, 1e-12; }
END
} >own/own_ref.c
cat >own/own_cpu.c <<'END'
#include "own_op.h"
hone_status HONE_KERNEL(own)(const own_attrs *a, const hone_step_run *run, hone_error *error) {
  const own_codes c = own_codes_of(run);
  const hone_tensor_desc *x = &run->step->input[0].desc, *y = &run->step->output[0].desc;
  (void)error;
  for (int64_t i = 0; i < hone_desc_count(y); i++) {
    float v;
    const float in = *hone_as_floats(run->in[0], x->dtype, i, 1, c.x, &v), result = in / (1 + expf(-a->beta * in));
    if (y->dtype == HONE_DTYPE_F32)
      ((float *)run->out[0])[i] = result;
    else
      hone_as_codes(&result, 1, c.y, y->dtype, run->out[0], i);
  }
  return HONE_OK;
}
END
says '3 tactics, 1 pattern' 0 "$hone" op build own
case $out in *warning*) fail "what is generated gives warnings: $out" ;; esac
says ' 0 failed' 0 "$hone" op test Own --op-path own -n 20
# In a quantised model, as exporters write it: from the model's own scales and zero points.
net() { # type, zero points, file
  "$build/text_model" "graph g(%x: f32[2x5x7x9]) -> (%o) {
  const %s: f32 = {0.05}
  const %z: $1 = {$2}
  const %t: f32 = {0.03}
  const %u: $1 = {$3}
  %q = QuantizeLinear(%x, %s, %z)
  %d = DequantizeLinear(%q, %s, %z)
  %g = Sigmoid(%d)
  %m = Mul(%d, %g)
  %y = QuantizeLinear(%m, %t, %u)
  %o = DequantizeLinear(%y, %t, %u)
}" "$4" || exit 1
}
net u8 128 10 unsigned.onnx
net i8 -3 -100 signed.onnx
for model in unsigned signed; do
  says 'this is custom.Own' 0 "$hone" optimize $model.onnx --op-path own --explain
  for isa in scalar avx2 avx512; do
    HONE_CPU=$isa "$hone" verify $model.onnx --op-path own -n 5 >log 2>&1 || { fail "$model on $isa"; cat log; }
    HONE_CPU=$isa "$hone" verify $model.onnx --op-path quick -n 5 >log 2>&1 || { fail "$model, quick, on $isa"; cat log; }
  done
done
says '"custom.Own"' 0 "$hone" profile unsigned.onnx --op-path own -n 1 -w 0 --json
# Kernels that are wrong by less than a code are found.
wrong() { # sed command
  rm -rf w && cp -r quick w && sed "$1" quick/quick_cpu.c >w/quick_cpu.c
  cmp -s w/quick_cpu.c quick/quick_cpu.c && fail "nothing was changed by $1"
  "$hone" op build w >log 2>&1 || { fail "op build: $1"; cat log; }
  "$hone" op test Quick --op-path w -n 30 >log 2>&1 && { fail "nobody notices $1"; cat log; }
}
wrong 's/v \* hone_sigmoid(beta \* v)/& + hone_all(0.25f)/'
wrong 's/v \* hone_sigmoid(beta \* v)/& * hone_all(1.01f)/'
# Mistakes, with file, line and column.
edit() { mkdir -p e; sed "$1" quick/quick.json >e/quick.json; cp quick/*.c e; }
edit 's/"scale": "xs"/"scale": "xq"/'; says "e/quick.json:3:64: there is no such input: 'xq'" 3 "$hone" op build e
edit 's/"scale": "xs"/"scale": "x"/'; says "there is no such input: 'x'" 3 "$hone" op build e
edit 's/"scale": "xs"/"scale": "xz"/'; says "'xz' has another type; expected an input of float" 3 "$hone" op build e
edit 's/"zero": "xz"/"zero": "xs"/'; says "'xs' has another type; expected an input of int8" 3 "$hone" op build e
edit 's/"scale": "xs", "zero"/"zero"/'; says "have a zero point and no scale" 3 "$hone" op build e
edit 's/"scale": "xs"/"scale": 1/'; says 'is no text' 3 "$hone" op build e
edit '3s/\["float", "int8", "uint8"\]/"float"/'; says "has a scale and no codes" 3 "$hone" op build e
edit '4s/}/, "scale": "ys"}/'; says "'xs' has a scale and no codes" 3 "$hone" op build e
edit '5s/}/, "scale": "ys"}/'; says "'xz' is a scale or zero point, and has one itself" 3 "$hone" op build e
[ ! -e e/build/quick.so ] || fail "something was built"
exit $bad
