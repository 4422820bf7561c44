/* DequantizeLinear(QuantizeLinear(x)) of 16 bits  ->  Mul(Clip(Round(Div(x, scale)), lo, hi), scale)
 *
 * lo and hi are the ends of the codes less the zero point. No kernel computes on codes of 16 bits: what such
 * a pair leaves of x is a function of one number, which the steps around it take in. The same numbers, since
 * integers below 2^24 are exact in f32. NaN would stay NaN instead of becoming the least code: where finite
 * numbers may have made one (0 / 0 of a row without variance) the pair stays. One scale and zero point,
 * constants. */
#include <math.h>

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

/* A constant with an infinity: times 0 it is no number. */
static bool is_infinite(const hn_value *v) {
  const hone_tensor *t = v ? hn_known(v) : NULL;
  if (!t || !t->data || t->desc.dtype != HONE_DTYPE_F32) return false;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++)
    if (!isfinite(((const float *)t->data)[i])) return true;
  return false;
}

/* Codes of a mask: the least one is so large that it may be infinite. */
static bool is_mask(const hn_value *v) {
  const hone_node *n = v ? v->producer : NULL;
  double scale = 0;
  return hn_is_op(n, "DequantizeLinear") && (!hn_constant_scalar(hn_in(n, 1), &scale) || scale >= 0x1p100);
}

/* Of finite numbers, by what is between the value and the last product, norm or code. */
static bool may_be_nan(const hn_value *v, int depth) {
  static const char *const domains[] = {"Sqrt", "Log", "Mod", "Acos", "Asin", "Acosh", "Atanh"};
  const hone_node *n = v->producer;
  if (!n || !n->op || !depth) return false;
  for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
    if (hn_is_op(n, domains[i])) return true;
  if ((hn_is_op(n, "Div") || hn_is_op(n, "Pow")) && !hn_known(hn_in(n, 1))) return true;
  if (hn_is_op(n, "Softmax") && is_mask(n->in[0])) return true; /* of a row that is hidden as a whole */
  if (!(n->op->flags & (HONE_OP_POINTWISE | HONE_OP_MOVE | HONE_OP_VIEW))) return false;
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && (is_infinite(n->in[i]) || may_be_nan(n->in[i], depth - 1))) return true;
  return false;
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
  if (may_be_nan(q->in[0], 8)) return hn_pass_miss(ctx, "what is rounded may be no number");
  const hone_tensor_desc *d = &n->out[0]->desc, one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  const double ends[] = {lo - zero, hi - zero}, by = scale;
  hn_value *s = hn_make_floats(ctx, n->name, &one, &by),
           *least = hn_make_floats(ctx, n->name, &one, &ends[0]),
           *most = hn_make_floats(ctx, n->name, &one, &ends[1]);
  if (!s || !least || !most) return HN_PASS_FAIL;
  hone_node *div = hn_make_node(ctx, n, "Div", (hn_value *const[]){q->in[0], s}, 2, d),
            *round = div ? hn_make_node(ctx, n, "Round", &div->out[0], 1, d) : NULL,
            *clip = round
                        ? hn_make_node(ctx, n, "Clip", (hn_value *const[]){round->out[0], least, most}, 3, d)
                        : NULL,
            *mul = clip ? hn_make_node(ctx, n, "Mul", (hn_value *const[]){clip->out[0], s}, 2, d) : NULL;
  if (!mul) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "codes of 16 bits -> what they leave of a number");
  if (!hn_inherit(ctx, mul, n) || !hn_replace(ctx, n->out[0], mul->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 2);
  return HN_PASS_HIT;
}

HN_PASS(open_wide_codes) = {
    .name = "open_wide_codes",
    .level = 2,
    .about = "DequantizeLinear(QuantizeLinear(x)) of 16 bits -> Mul(Clip(Round(Div(x, s))), s)",
    .visit = visit,
    .roots = HN_ROOTS("DequantizeLinear")};
