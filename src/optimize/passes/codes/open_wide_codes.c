/* DequantizeLinear(QuantizeLinear(x)) of 16 bits  ->  Mul(Min(Where(lo < r, r, lo), hi), scale)
 *
 * with r = Round(Div(x, scale)); lo and hi are the ends of the codes less the zero point. No kernel computes
 * on codes of 16 bits: what such a pair leaves of x is a function of one number, which the steps around it
 * take in. The same numbers, since integers below 2^24 are exact in f32. Where and not Clip, which leaves
 * NaN: of NaN (0 / 0 of a row without variance, a row that a mask hides) QuantizeLinear makes the least code.
 * Clip, one step and part of a product's, where x is a number for certain: sums and products of codes. One
 * scale and zero point, constants.
 *
 * Products with constant weights of 8 bits keep the pair where a processor multiplies bytes more than twice
 * as fast as floats: codes of 16 bits are two of 8 (backends/cpu/quantized/sums_step.h). */
#include <float.h>
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

/* The largest magnitude of a constant's floats; INFINITY where one is no number, or they are not made yet. */
static double largest(const hn_value *v) {
  const hone_tensor *t = hn_known_desc(v);
  double most = 0;
  if (!t || !t->data || t->desc.dtype != HONE_DTYPE_F32) return INFINITY;
  for (int64_t i = 0, n = hone_desc_count(&t->desc); i < n; i++) {
    const double x = fabs((double)((const float *)t->data)[i]);
    if (!(x <= most)) most = x <= FLT_MAX ? x : INFINITY;
  }
  return most;
}

static double bound_of(const hn_value *v, int depth);

/* Of sums of products of a and b with an addend or none: no more terms than b has elements. */
static double bound_of_product(const hone_node *n, int depth) {
  const hn_value *b = n->in[1], *add = hn_in(n, 2);
  if (!b || !hone_desc_known(&b->desc) || hn_node_attr(n, "alpha") || hn_node_attr(n, "beta"))
    return INFINITY;
  return bound_of(n->in[0], depth) * bound_of(b, depth) * (double)hone_desc_count(&b->desc) +
         (add ? bound_of(add, depth) : 0);
}

static double bound_of_node(const hone_node *n, int depth) {
  double lo, hi;
  if (hn_is_op(n, "DequantizeLinear"))
    return n->in[0] && hn_quant_range(n->in[0]->desc.dtype, &lo, &hi) ? (hi - lo) * largest(hn_in(n, 1))
                                                                      : INFINITY;
  if (hn_is_op(n, "Relu") || hn_is_op(n, "Reshape") || hn_is_op(n, "Transpose"))
    return bound_of(n->in[0], depth);
  if (hn_is_op(n, "Add")) return bound_of(n->in[0], depth) + bound_of(n->in[1], depth);
  if (hn_is_op(n, "Mul")) return bound_of(n->in[0], depth) * bound_of(n->in[1], depth);
  if (hn_is_op(n, "Conv") || hn_is_op(n, "MatMul") || hn_is_op(n, "Gemm")) return bound_of_product(n, depth);
  return INFINITY;
}

/* A magnitude that v's elements, all of them numbers, do not exceed; INFINITY: nothing is known. Far from the
 * end of f32, so that no sum on the way leaves it in whatever order. */
static double bound_of(const hn_value *v, int depth) {
  if (!v || v->desc.dtype != HONE_DTYPE_F32) return INFINITY;
  const double bound = hn_known_desc(v)       ? largest(v)
                       : v->producer && depth ? bound_of_node(v->producer, depth - 1)
                                              : INFINITY;
  return bound < 0x1p100 ? bound : INFINITY;
}

/* Codes of 8 bits that nobody computes in the run. */
static bool constant_codes(const hn_value *v) {
  const hone_node *n = v ? v->producer : NULL;
  return v && (v->desc.dtype == HONE_DTYPE_U8 || v->desc.dtype == HONE_DTYPE_I8) &&
         (hn_known(v) || (hn_is_op(n, "QuantizeLinear") && hn_known(n->in[0])));
}

/* Such convolutions of floats take two thirds of the time of others with as many products. */
static bool for_winograd(const hone_node *n, const hone_tensor_desc *w) {
  if (hone_node_int(n, "group", 1) != 1) return false;
  for (int32_t i = 2; i < w->rank; i++)
    if (w->dim[i] != 3) return false;
  size_t count = 0;
  const int64_t *stride = hone_node_ints(n, "strides", &count);
  for (size_t i = 0; stride && i < count; i++)
    if (stride[i] != 1) return false;
  return true;
}

/* Sums of fewer terms take longer to become one float than the terms in f32. */
enum { LEAST_TERMS = 80 };

/* A product of v, dequantised codes of 16 bits, that runs on them as two of 8. */
static bool multiplies_codes(const hn_pass_context *ctx, const hone_node *n, const hn_value *v) {
  const bool conv = hn_is_op(n, "Conv"), gemm = hn_is_op(n, "Gemm");
  if (!(conv || gemm || hn_is_op(n, "MatMul")) || n->graph != v->graph || n->in[0] != v || !n->in[1] ||
      n->in[1] == v || v->desc.rank < 2)
    return false;
  const hone_node *dq = n->in[1]->producer;
  if (!hn_is_op(dq, "DequantizeLinear") || dq->graph != n->graph || n->in[1]->users.len != 1 ||
      !constant_codes(dq->in[0]) || !hn_known(dq->in[1]) || hone_node_int(dq, "block_size", 0))
    return false;
  if (gemm && (hone_node_float(n, "alpha", 1) != 1 || hone_node_float(n, "beta", 1) != 1 ||
               hone_node_int(n, "transA", 0)))
    return false;
  const hone_tensor_desc *w = &dq->in[0]->desc;
  if (!hone_desc_known(w)) return false;
  if (!conv)
    return w->rank == 2 && w->dim[gemm && hone_node_int(n, "transB", 0) != 0] >= LEAST_TERMS &&
           ctx->options->codes_rate > 2;
  if (w->rank < 3 || w->dim[1] == 1 || hone_desc_count(w) < LEAST_TERMS * w->dim[0])
    return false; /* also one filter a channel */
  return ctx->options->codes_rate > (for_winograd(n, w) ? 3 : 2);
}

typedef struct pair {
  hone_node *q, *n;
  float scale;
  double zero;
  bool number; /* what is rounded is one for certain */
} pair;

/* Whether everyone who reads v multiplies its codes. */
static bool all_multiply(const hn_pass_context *ctx, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++)
    if (!multiplies_codes(ctx, v->users.ptr[i].node, v)) return false;
  return v->users.len && !v->is_output;
}

static bool is_pair(hone_node *n, pair *p) {
  float again;
  double zero_again;
  if (!hn_is_op(n, "DequantizeLinear") || !n->in[0] || !n->out[0]) return false;
  hone_node *q = n->in[0]->producer;
  if (!hn_is_op(q, "QuantizeLinear") || q->graph != n->graph ||
      !parameters(n, n->in[0], n->out[0], &p->scale, &p->zero) ||
      !parameters(q, q->out[0], q->in[0], &again, &zero_again) || p->scale != again ||
      p->zero != zero_again || hn_known(q->in[0]))
    return false;
  p->q = q;
  p->n = n;
  p->number = bound_of(q->in[0], 6) < INFINITY;
  return true;
}

static hone_node *next(hn_pass_context *ctx, const pair *p, const char *op, hn_value *a, hn_value *b,
                       hn_value *c) {
  hone_tensor_desc d = p->n->out[0]->desc;
  if (strcmp(op, "Less") == 0) d.dtype = HONE_DTYPE_BOOL;
  return hn_make_node(ctx, p->n, op, (hn_value *const[]){a, b, c}, c ? 3 : b ? 2 : 1, &d);
}

/* `with` in v's place where codes are not multiplied. False: out of memory. */
static bool replace_others(hn_pass_context *ctx, hn_value *v, hn_value *with) {
  bool kept = false;
  for (size_t i = 0; i < v->users.len; i++) kept |= multiplies_codes(ctx, v->users.ptr[i].node, v);
  if (!kept || v->is_output) return hn_replace(ctx, v, with);
  for (size_t i = v->users.len; i-- > 0;) {
    const hn_use use = v->users.ptr[i];
    if (!multiplies_codes(ctx, use.node, v) && !hn_node_set_input(use.node, use.index, with))
      return hn_pass_memory(ctx), false;
  }
  return true;
}

static bool open_pair(hn_pass_context *ctx, const pair *p) {
  const hone_tensor_desc one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  double lo, hi;
  if (!hn_quant_range(p->q->out[0]->desc.dtype, &lo, &hi)) return true;
  hn_pass_record_add(ctx, true, (hone_node *const[]){p->q, p->n}, 2,
                     "codes of 16 bits -> what they leave of a number");
  const double ends[] = {lo - p->zero, hi - p->zero}, by = p->scale;
  hn_value *s = hn_make_floats(ctx, p->n->name, &one, &by),
           *least = hn_make_floats(ctx, p->n->name, &one, &ends[0]),
           *most = hn_make_floats(ctx, p->n->name, &one, &ends[1]);
  if (!s || !least || !most) return false;
  hone_node *last = next(ctx, p, "Div", p->q->in[0], s, NULL);
  if (last) last = next(ctx, p, "Round", last->out[0], NULL, NULL);
  hn_value *r = last ? last->out[0] : NULL;
  if (last && p->number) {
    last = next(ctx, p, "Clip", r, least, most);
  } else {
    if (last) last = next(ctx, p, "Less", least, r, NULL);
    if (last) last = next(ctx, p, "Where", last->out[0], r, least);
    if (last) last = next(ctx, p, "Min", last->out[0], most, NULL);
  }
  if (last) last = next(ctx, p, "Mul", last->out[0], s, NULL);
  if (!last || !hn_inherit(ctx, last, p->n) || !replace_others(ctx, p->n->out[0], last->out[0])) return false;
  hn_remove_unread(p->n, 2);
  return true;
}

/* All are found before the first is opened: pairs are what bounds the values behind them. */
static hn_pass_result run(hn_pass_context *ctx) {
  uint32_t count = 0;
  if (!ctx->options->lowered) return HN_PASS_NONE;
  pair *all = HN_NEW_ARRAY(ctx->scratch, pair, ctx->graph->n_nodes + 1), one;
  if (!all) return hn_pass_memory(ctx);
  for (hone_node *n = ctx->graph->first; n; n = n->next)
    if (is_pair(n, &one) && !all_multiply(ctx, n->out[0])) all[count++] = one;
  for (uint32_t i = 0; i < count; i++)
    if (!open_pair(ctx, &all[i])) return HN_PASS_FAIL;
  return HN_PASS_NONE;
}

HN_PASS(open_wide_codes) = {
    .name = "open_wide_codes",
    .level = 2,
    .about = "DequantizeLinear(QuantizeLinear(x)) of 16 bits -> Mul(Min(Where(lo < r, r, lo), hi), s)",
    .run = run};
