/* DequantizeLinear(QuantizeLinear(x)) of 16 bits  ->  Mul(Min(Where(lo < r, r, lo), hi), scale)
 *
 * with r = Round(Div(x, scale)); lo and hi are the ends of the codes less the zero point. No kernel computes
 * on codes of 16 bits: what such a pair leaves of x is a function of one number, which the steps around it
 * take in. The same numbers, since integers below 2^24 are exact in f32. Where and not Clip, which leaves
 * NaN: of NaN (0 / 0 of a row without variance, a row that a mask hides) QuantizeLinear makes the least code.
 * One scale and zero point, constants. */
#include "model/ops/quantized/quant.h"
#include "optimize/passes/common/pass.h"

static bool wide(hone_dtype t) { return t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16; }

/* Scale and zero point of a Q or DQ of f32 whose codes are v. */
static bool parameters(const hone_node *n, const hn_value *v, const hn_value *real, float *scale,
                       double *zero) {
  const hn_value *s = n->in[1], *z = hn_in(n, 2);
  double number = 0;
  *zero = 0;
  if (!v || !real || !wide(v->desc.dtype) || real->desc.dtype != HONE_DTYPE_F32 || !s ||
      s->desc.dtype != HONE_DTYPE_F32 || hone_node_int(n, "block_size", 0) ||
      !hn_constant_scalar(s, &number) || (z && !hn_constant_scalar(z, zero)))
    return false;
  *scale = (float)number;
  return number > 0x1p-100 && number < 0x1p100;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !hn_is_op(n, "DequantizeLinear") || !n->in[0] || !n->out[0])
    return HN_PASS_NONE;
  const hone_node *q = n->in[0]->producer;
  float scale, again;
  double zero, zero_again, lo, hi;
  if (!hn_is_op(q, "QuantizeLinear") || q->graph != n->graph ||
      !parameters(n, n->in[0], n->out[0], &scale, &zero) ||
      !parameters(q, q->out[0], q->in[0], &again, &zero_again) || scale != again || zero != zero_again ||
      !hn_quant_range(q->out[0]->desc.dtype, &lo, &hi) || hn_known(q->in[0]))
    return HN_PASS_NONE;
  const hone_tensor_desc *d = &n->out[0]->desc, one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  hone_tensor_desc truth = *d;
  truth.dtype = HONE_DTYPE_BOOL;
  const double ends[] = {lo - zero, hi - zero}, by = scale;
  hn_value *s = hn_make_floats(ctx, n->name, &one, &by),
           *least = hn_make_floats(ctx, n->name, &one, &ends[0]),
           *most = hn_make_floats(ctx, n->name, &one, &ends[1]);
  if (!s || !least || !most) return HN_PASS_FAIL;
  hone_node *last = hn_make_node(ctx, n, "Div", (hn_value *const[]){q->in[0], s}, 2, d);
  if (last) last = hn_make_node(ctx, n, "Round", &last->out[0], 1, d);
  hn_value *rounded = last ? last->out[0] : NULL;
  if (last) last = hn_make_node(ctx, n, "Less", (hn_value *const[]){least, rounded}, 2, &truth);
  if (last) last = hn_make_node(ctx, n, "Where", (hn_value *const[]){last->out[0], rounded, least}, 3, d);
  if (last) last = hn_make_node(ctx, n, "Min", (hn_value *const[]){last->out[0], most}, 2, d);
  hone_node *mul = last ? hn_make_node(ctx, n, "Mul", (hn_value *const[]){last->out[0], s}, 2, d) : NULL;
  if (!mul) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "codes of 16 bits -> what they leave of a number");
  if (!hn_inherit(ctx, mul, n) || !hn_replace(ctx, n->out[0], mul->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 2);
  return HN_PASS_HIT;
}

HN_PASS(open_wide_codes) = {
    .name = "open_wide_codes",
    .level = 2,
    .about = "DequantizeLinear(QuantizeLinear(x)) of 16 bits -> Mul(Min(Where(lo < r, r, lo), hi), s)",
    .visit = visit,
    .roots = HN_ROOTS("DequantizeLinear")};
