# A pattern with conditions, whose operator copies attributes of the matched nodes: sh pattern.sh BUILD. It is taken where
# the conditions hold and computes the same; where they do not, --explain names one that failed.
. "$(dirname "$0")/begin.sh"
mkdir dw
cat >dw/dw.json <<'END'
{ "op": "Dw", "about": "depthwise 3x3 by steps of 2, then Abs and Clip", "kind": "general",
  "input_desc": [{"name": "x", "type": ["float"]}, {"name": "w", "type": ["float"]}],
  "output_desc": [{"name": "y", "type": ["float"], "shape": "function"}],
  "attr": [
    {"name": "strides", "type": "list_int"}, {"name": "pads", "type": "list_int"}, {"name": "bounds", "type": "list_float"},
    {"name": "mode", "type": "string"}, {"name": "channels", "type": "int"}, {"name": "highest", "type": "float"}],
  "pattern": [
    {"text": ["%c = Conv(%x, !%w) where group else 1 == dim(%x, 1) and dims(%w) == [?, 1, 3, 3]",
              "  and dilations else [1, 1] == [1, 1] and strides else [1, 1] == [2, 2]",
              "%s = Abs(%c)",
              "%y = Clip(%s, !%l, !%h) where value(%l) < value(%h)"],
     "inputs": "%x %w",
     "attrs": {"strides": "attr(%c, strides)", "pads": "attr(%c, pads) else [0, 0, 0, 0]", "bounds": [0.125, 9],
               "mode": "attr(%c, auto_pad) else \"NOTSET\"", "channels": "dim(%x, 1)", "highest": "%h"}}]
}
END
cat >dw/dw_ref.c <<'END'
#include "dw_op.h"
hone_status dw_shape(const dw_attrs *a, const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *w = io->input[1];
  hone_tensor_desc *y = io->output[0];
  if (x->rank != 4 || w->rank != 4 || w->dim[2] != 3 || w->dim[3] != 3 ||
      x->dim[1] != w->dim[0] || w->dim[1] != 1 || x->dim[2] < 3 || x->dim[3] < 3) {
    if (error) error->status = HONE_ERROR_INPUT, strcpy(error->what, "Dw wants x and w of a depthwise convolution");
    return HONE_ERROR_INPUT;
  }
  for (int k = 0; k < 2; k++) {
    const bool pads = a->n_pads == 4, strides = a->n_strides == 2;
    const int64_t all = x->dim[2 + k] + (pads ? a->pads[k] + a->pads[2 + k] : 0) - 3, by = strides ? a->strides[k] : 2;
    if (by < 1 || all < 0 || (!pads && a->n_pads) || (!strides && a->n_strides)) {
      if (error) error->status = HONE_ERROR_INPUT, strcpy(error->what, "Dw wants strides and pads");
      return HONE_ERROR_INPUT;
    }
    y->dim[2 + k] = all / by + 1;
  }
  return HONE_OK;
}
static double at(const dw_attrs *a, const hone_array *x, const hone_array *w, int64_t plane, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t i = 0; i < 9; i++) {
    const int64_t r = row * (a->n_strides ? a->strides[0] : 2) - (a->n_pads ? a->pads[0] : 0) + i / 3,
                  c = column * (a->n_strides ? a->strides[1] : 2) - (a->n_pads ? a->pads[1] : 0) + i % 3;
    if (r < 0 || c < 0 || r >= x->dim[2] || c >= x->dim[3]) continue;
    sum += x->data[(plane * x->dim[2] + r) * x->dim[3] + c] * w->data[plane % w->dim[0] * 9 + i];
  }
  sum = fabs(sum);
  const double low = a->n_bounds ? (double)a->bounds[0] : 0, high = (double)a->highest;
  if (strcmp(a->mode, "NOTSET") || a->channels != x->dim[1]) return 77; /* they were not copied */
  return sum < low ? low : sum > high ? high : sum;
}
void dw_ref(const dw_attrs *a, const hone_array in[2], const hone_array out[1]) {
  const int64_t h = out[0].dim[2], w = out[0].dim[3];
  for (int64_t i = 0; i < out[0].count; i++) out[0].data[i] = at(a, &in[0], &in[1], i / (h * w), i / w % h, i % w);
}
bool dw_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  (void)m;
  if (s->n_epilogue) return hone_refuse(why, "it takes no epilogue");
  for (int i = 0; i < 2; i++)
    if (s->input[i].desc.dtype != HONE_DTYPE_F32 || s->input[i].desc.layout != HONE_LAYOUT_ROW_MAJOR)
      return hone_refuse(why, "not f32, or not row-major");
  return s->output[0].desc.layout == HONE_LAYOUT_ROW_MAJOR || hone_refuse(why, "not row-major");
}
double dw_cost(const hone_step *s, const hone_machine *m) { return (void)s, (void)m, 1e-12; } /* always the fastest */
END
cat >dw/dw_cpu.c <<'END'
#include "dw_op.h"
hone_status HONE_KERNEL(dw)(const dw_attrs *a, const hone_step_run *run, hone_error *error) {
  const hone_tensor_desc *x = &run->step->input[0].desc, *y = &run->step->output[0].desc;
  const float *from = run->in[0], *w = run->in[1];
  float *to = run->out[0];
  (void)error;
  for (int64_t i = 0, n = hone_desc_count(y); i < n; i++) {
    const int64_t plane = i / (y->dim[2] * y->dim[3]), row = i / y->dim[3] % y->dim[2], column = i % y->dim[3];
    float sum = 0;
    for (int64_t k = 0; k < 9; k++) {
      const int64_t r = row * (a->n_strides ? a->strides[0] : 2) - (a->n_pads ? a->pads[0] : 0) + k / 3,
                    c = column * (a->n_strides ? a->strides[1] : 2) - (a->n_pads ? a->pads[1] : 0) + k % 3;
      if (r >= 0 && c >= 0 && r < x->dim[2] && c < x->dim[3])
        sum += from[(plane * x->dim[2] + r) * x->dim[3] + c] * w[plane % x->dim[1] * 9 + k];
    }
    const float low = a->n_bounds ? a->bounds[0] : 0;
    sum = fabsf(sum);
    to[i] = strcmp(a->mode, "NOTSET") || a->channels != x->dim[1] ? 77 : sum < low ? low : sum > a->highest ? a->highest : sum;
  }
  return HONE_OK;
}
END
says '3 tactics, 1 pattern' 0 "$hone" op build dw
net() { # attributes of Conv, weights, file
  "$build/text_model" "graph g(%x: f32[1x8x11x9]) -> (%y) {
  const %w: f32[$2] = rand(1)
  const %l: f32 = {0.125}
  const %h: f32 = {0.5}
  %c = Conv(%x, %w) $1 \"conv\"
  %s = Abs(%c) \"abs\"
  %y = Clip(%s, %l, %h) \"clip\"
}" "$3" || exit 1
}
use="--op-path dw"
net '{group=8, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 1, 1]}' 8x1x3x3 hit.onnx
says 'this is custom.Dw' 0 "$hone" optimize hit.onnx $use --explain
for isa in scalar avx2 avx512; do
  HONE_CPU=$isa "$hone" verify hit.onnx $use -n 4 >log 2>&1 || { fail "$isa"; cat log; }
done
net '{group=8, strides=[2, 2]}' 8x1x3x3 plain.onnx
"$hone" verify plain.onnx $use -n 2 >log 2>&1 || { fail "without pads"; cat log; }
says 'this is custom.Dw' 0 "$hone" optimize plain.onnx $use --explain
# Near misses name the condition, the node and both sides.
miss() { says 'nearly custom.Dw, matched 3 of 3 nodes' 0 "$hone" optimize "$1" $use --explain; case $out in *"$2"*) ;; *) fail "$1: no '$2' in $out" ;; esac; }
net '{group=8}' 8x1x3x3 stride.onnx
miss stride.onnx "strides else [1, 1] == [2, 2] does not hold at 'conv': [1, 1] and [2, 2]"
net '{group=4, strides=[2, 2]}' 8x2x3x3 group.onnx
miss group.onnx "group else 1 == dim(%x, 1) does not hold at 'conv': 4 and 8"
net '{group=8, strides=[2, 2]}' 8x1x5x5 five.onnx
miss five.onnx "does not hold at 'conv': [8, 1, 5, 5] and [?, 1, 3, 3]"
# A node that is something else, or has a second reader, is one less; of several near misses the nearest is told.
"$build/text_model" 'graph g(%x: f32[1x8x11x9]) -> (%y, %z) {
  const %w: f32[8x1x3x3] = rand(1)
  const %l: f32 = {0.125}
  const %h: f32 = {0.5}
  %c = Conv(%x, %w) {group=8, strides=[2, 2]} "conv"
  %s = Abs(%c) "abs"
  %y = Clip(%s, %l, %h) "clip"
  %z = Neg(%s) "neg"
}' second.onnx
says "nearly custom.Dw, matched 2 of 3 nodes: Abs 'abs' has a second reader, Neg 'neg'" 0 "$hone" optimize second.onnx $use --explain
says "'custom' is refused in 1 place" 0 "$hone" profile second.onnx $use -n 1 --threshold unfused_share=0
# The nodes that it replaces, for a comparison, have the attributes that the pattern asks for.
says 'Conv, Abs, Clip' 0 "$hone" op bench Dw --op-path dw --shape x=1x8x11x9 --shape w=8x1x3x3 -n 3 --max-seconds 1
# Mistakes, with file, line and column.
edit() { mkdir -p e; sed "$1" dw/dw.json >e/dw.json; cp dw/*.c e; }
edit 's/dims(%w) ==/dims(%v) ==/'; says "e/dw.json:8:72: the pattern has no '%v'" 3 "$hone" op build e
edit 's/== \[?, 1/=< [?, 1/'; says "e/dw.json:8:82: expected '='" 3 "$hone" op build e
edit 's/value(%l) </valeu(%l) </'; says "e/dw.json:11:46: there is no 'valeu('" 3 "$hone" op build e
edit 's/"attr(%c, strides)"/"attr(%x, strides)"/'; says "e/dw.json:13:28: no line makes '%x'" 3 "$hone" op build e
edit 's/else \[0, 0, 0, 0\]/else [0, 0, 0, 0/'; says "e/dw.json:13:" 3 "$hone" op build e
edit 's/else \\"NOTSET\\"/else \\"NOTSET/'; says "e/dw.json:14:" 3 "$hone" op build e
edit 's/"%x %w"/"%x %q"/'; says "e/dw.json:12:20: the pattern has no '%q'" 3 "$hone" op build e
edit 's/"%x %w"/"%x %c"/'; says "e/dw.json:12:20: '%c' is made by the pattern's own nodes" 3 "$hone" op build e
edit 's/= Conv(/= Convv(/'; says "there is no operator 'Convv'" 3 "$hone" op build e; says "e/dw.json:" 3 "$hone" op build e
edit 's/"%h"/"%q"/'; says "has no '%q'" 3 "$hone" op build e
edit 's/"%h"/true/'; says "no value of attribute" 3 "$hone" op build e
edit 's/\[0.125, 9\]/[0.125, "x"]/'; says "no value of attribute" 3 "$hone" op build e
edit 's/\[0.125, 9\]/0.125/'; says "no value of attribute 'bounds'" 3 "$hone" op build e
edit 's/"dim(%x, 1)"/1.5/'; says "no value of attribute 'channels'" 3 "$hone" op build e
edit 's/"attr(%c, auto_pad) else [^,]*,/5,/'; says "no value of attribute 'mode'" 3 "$hone" op build e
[ ! -e e/build/dw.so ] || fail "something was built"
# An attribute that the operator's type does not take is no match, and that is said.
edit 's/"channels": "dim(%x, 1)"/"channels": "dims(%x)"/'; says '1 pattern' 0 "$hone" op build e
says 'dims(%x) for attribute channels is no number' 0 "$hone" optimize hit.onnx --op-path e --explain
exit $bad
