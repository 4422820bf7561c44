/* Conv(DequantizeLinear(x, s), DequantizeLinear(w, t))    ->  Conv(DequantizeLinear(x, 1),
 *                                                                  DequantizeLinear(w, s t))
 * QuantizeLinear(f(Conv(x, DequantizeLinear(w, t)) + b), s) -> QuantizeLinear(f(Conv(x,
 *                                                                  DequantizeLinear(w, t / s)) + b / s), 1)
 *
 * where s has a number a channel, as NNCF gives what depthwise convolutions read: each channel goes into one
 * filter (depthwise) or comes out of one, whose own scale takes s in. f is nothing or a Relu. What is left
 * are codes of one scale, which kernels, tables and moves of codes take. One zero point; the same codes, but
 * where a quotient lies in the middle between two. */
#include "optimize/passes/common/codes.h"

static float number(const hn_value *v, int64_t i) {
  float f;
  memcpy(&f, (const char *)v->constant->data + (hone_desc_count(&v->desc) == 1 ? 0 : i) * (int64_t)sizeof f,
         sizeof f);
  return f;
}

static bool fixed_f32(const hn_value *v) {
  return hn_known(v) && !v->producer && v->desc.dtype == HONE_DTYPE_F32;
}

/* Whether n, a QuantizeLinear or DequantizeLinear of v, has a scale for each of v's channels, and the same
 * zero point, *zero, for all. */
static bool scale_a_channel(const hone_node *n, const hn_value *v, uint8_t *zero) {
  const hn_value *s = n->in[1], *z = hn_zero_of(n);
  int64_t axis = hone_node_int(n, "axis", 1);
  if (axis < 0) axis += v->desc.rank;
  if (!fixed_f32(s) || s->desc.rank != 1 || v->desc.rank < 3 || axis != 1 || s->desc.dim[0] < 2 ||
      s->desc.dim[0] != v->desc.dim[1] || hone_node_int(n, "block_size", 0) || (z && !hn_known(z)))
    return false;
  for (int64_t i = 0; i < s->desc.dim[0]; i++)
    if (!(number(s, i) > 0x1p-100f && number(s, i) < 0x1p100f)) return false;
  *zero = z ? *(const uint8_t *)z->constant->data : 0;
  for (int64_t i = 0; z && i < hone_desc_count(&z->desc); i++)
    if (((const uint8_t *)z->constant->data)[i] != *zero) return false;
  return true;
}

/* Constant codes of a convolution's weights: their DequantizeLinear. */
static const hone_node *weights_of(const hone_node *conv, int64_t filters) {
  const hone_node *w = hn_codes_behind(conv->in[1], false);
  if (!w || !hn_known(w->in[0]) || w->in[0]->producer || conv->in[1]->desc.rank < 3 ||
      w->in[0]->desc.dim[0] != filters)
    return NULL;
  const int64_t scales = hone_desc_count(&w->in[1]->desc);
  return scales == 1 || (scales == filters && hone_node_int(w, "axis", 1) == 0) ? w : NULL;
}

/* v times or over s, one number each. */
static hn_value *scaled(hn_pass_context *ctx, const hn_value *v, const hn_value *s, bool over) {
  const int64_t n = s->desc.dim[0];
  double *made = HN_NEW_ARRAY(ctx->scratch, double, n);
  if (!made) return hn_pass_memory(ctx), NULL;
  for (int64_t i = 0; i < n; i++)
    made[i] = (double)(over ? number(v, i) / number(s, i) : number(v, i) * number(s, i));
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
  return hn_make_floats(ctx, v->name, &d, made);
}

/* The same codes with another scale a filter. */
static hn_value *weights(hn_pass_context *ctx, hone_node *at, const hone_node *w, hn_value *scale) {
  hn_value *zero = hn_zero_of(w);
  const int64_t n = scale->desc.dim[0];
  if (zero && hone_desc_count(&zero->desc) != n) {
    const hone_tensor_desc d = hone_desc(zero->desc.dtype, 1, &n);
    void *data;
    hn_value *all = hn_make_room(ctx, zero->name, &d, &data);
    if (!all) return NULL;
    memset(data, *(const uint8_t *)zero->constant->data, (size_t)n);
    zero = all;
  }
  hone_node *dq = hn_make_node(ctx, at, "DequantizeLinear", (hn_value *const[]){w->in[0], scale, zero},
                               zero ? 3 : 2, &w->out[0]->desc);
  if (!dq || !hn_inherit(ctx, dq, w)) return NULL;
  return hn_node_set_int(dq, "axis", 0) ? dq->out[0] : (hn_pass_memory(ctx), NULL);
}

/* A Q or DQ of scale 1. */
static hone_node *of_scale_one(hn_pass_context *ctx, hone_node *at, const hone_node *like, hn_value *v,
                               hone_dtype codes, uint8_t zero) {
  const hone_tensor_desc f = hone_desc(HONE_DTYPE_F32, 0, NULL), c = hone_desc(codes, 0, NULL);
  hn_value *one = hn_make_floats(ctx, like->name, &f, &(const double){1}),
           *z = one ? hn_make_constant(ctx, like->name, &c, &zero) : NULL;
  hone_node *n =
      z ? hn_make_node(ctx, at, like->op_type, (hn_value *const[]){v, one, z}, 3, &like->out[0]->desc) : NULL;
  return n && hn_inherit(ctx, n, like) ? n : NULL;
}

/* ---- what reads */

static hn_pass_result into_filters(hn_pass_context *ctx, hone_node *n) {
  const hone_node *x = hn_codes_behind(n->in[0], false);
  uint8_t zero;
  if (!x || !scale_a_channel(x, x->in[0], &zero)) return HN_PASS_NONE;
  const int64_t channels = x->in[1]->desc.dim[0];
  const hone_node *w = weights_of(n, channels);
  if (!w || w->in[0]->desc.dim[1] != 1 || hone_node_int(n, "group", 1) != channels)
    return hn_pass_miss(ctx, "several channels with scales of their own go into one filter");
  hone_node *old = n->in[0]->producer, *old_w = n->in[1]->producer;
  hn_value *s = scaled(ctx, w->in[1], x->in[1], false), *by = s ? weights(ctx, n, w, s) : NULL;
  hone_node *dq = by ? of_scale_one(ctx, n, x, x->in[0], x->in[0]->desc.dtype, zero) : NULL;
  if (!dq || !hn_set_input(ctx, n, 0, dq->out[0]) || !hn_set_input(ctx, n, 1, by)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "the input's scales are part of the filters'");
  hn_remove_unread(old, 0);
  hn_remove_unread(old_w, 0);
  return HN_PASS_HIT;
}

/* ---- what makes */

static const hone_node *made_for(const hn_value *v, const char *op) {
  const hone_node *p = v->producer;
  return !v->is_output && v->users.len == 1 && hn_is_op(p, op) && p->graph == v->graph ? p : NULL;
}

/* The bias over s; *out NULL: there is none. False: not a constant of one number a filter, or no memory. */
static bool bias_over(hn_pass_context *ctx, hone_node *at, const hn_value *b, hn_value *s, hn_value **out) {
  *out = NULL;
  if (!b) return true;
  if (fixed_f32(b)) return hone_desc_count(&b->desc) == s->desc.dim[0] && (*out = scaled(ctx, b, s, true));
  const hone_node *dq = hn_is_op(b->producer, "DequantizeLinear") ? b->producer : NULL;
  if (!dq || !hn_known(dq->in[0]) || dq->in[0]->desc.dtype != HONE_DTYPE_I32 || !fixed_f32(dq->in[1]) ||
      hone_desc_count(&b->desc) != s->desc.dim[0] || hone_node_int(dq, "block_size", 0) ||
      (hone_desc_count(&dq->in[1]->desc) != 1 && hone_desc_count(&dq->in[1]->desc) != s->desc.dim[0]))
    return false;
  const hn_value *zero = hn_zero_of(dq);
  for (int64_t i = 0; zero && i < hone_desc_count(&zero->desc); i++) {
    int32_t z;
    if (!hn_known(zero) || zero->desc.dtype != HONE_DTYPE_I32) return false;
    memcpy(&z, (const char *)zero->constant->data + i * 4, sizeof z);
    if (z) return false;
  }
  hn_value *scale = scaled(ctx, dq->in[1], s, true);
  hone_node *made =
      scale ? hn_make_node(ctx, at, "DequantizeLinear", (hn_value *const[]){dq->in[0], scale}, 2, &b->desc)
            : NULL;
  if (!made || !hn_inherit(ctx, made, dq)) return false;
  *out = made->out[0];
  return hn_node_set_int(made, "axis", 0) || (hn_pass_memory(ctx), false);
}

static hn_pass_result out_of_filters(hn_pass_context *ctx, hone_node *q) {
  uint8_t zero;
  const hone_dtype type = q->out[0] ? q->out[0]->desc.dtype : HONE_DTYPE_NONE;
  if ((type != HONE_DTYPE_U8 && type != HONE_DTYPE_I8) || !q->in[0] ||
      q->in[0]->desc.dtype != HONE_DTYPE_F32 || !scale_a_channel(q, q->in[0], &zero))
    return HN_PASS_NONE;
  const hone_node *relu = made_for(q->in[0], "Relu"), *conv = made_for(relu ? relu->in[0] : q->in[0], "Conv");
  const hone_node *w =
      conv && hn_codes_behind(conv->in[0], false) ? weights_of(conv, q->in[1]->desc.dim[0]) : NULL;
  if (!w) return hn_pass_miss(ctx, "no convolution on codes with a Relu at most is in front of it");
  hn_value *s = q->in[1], *b, *t = scaled(ctx, w->in[1], s, true), *by = t ? weights(ctx, q, w, t) : NULL;
  if (!by) return HN_PASS_FAIL;
  if (!bias_over(ctx, q, hn_in(conv, 2), s, &b)) {
    hn_remove_unread(by->producer, 0);
    return ctx->status != HONE_OK ? HN_PASS_FAIL : hn_pass_miss(ctx, "the bias has not one number a filter");
  }
  hone_node *made =
      hn_make_node(ctx, q, "Conv", (hn_value *const[]){conv->in[0], by, b}, b ? 3 : 2, &conv->out[0]->desc);
  if (!made || !hn_inherit(ctx, made, conv)) return HN_PASS_FAIL;
  if (!hn_node_copy_attrs(made, conv)) return hn_pass_memory(ctx);
  if (relu) {
    hone_node *r = hn_make_node(ctx, q, "Relu", &made->out[0], 1, &relu->out[0]->desc);
    if (!r || !hn_inherit(ctx, r, relu)) return HN_PASS_FAIL;
    made = r;
  }
  hone_node *one = of_scale_one(ctx, q, q, made->out[0], type, zero);
  if (!one) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "the result's scales are part of the filters'");
  if (!hn_replace(ctx, q->out[0], one->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(q, 3);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered) return HN_PASS_NONE;
  if (hn_is_op(n, "Conv")) return into_filters(ctx, n);
  return hn_is_op(n, "QuantizeLinear") ? out_of_filters(ctx, n) : HN_PASS_NONE;
}

HN_PASS(scales_of_channels) = {.name = "scales_of_channels",
                               .level = 2,
                               .about = "scales of channels that one filter reads or makes -> its own scale",
                               .visit = visit,
                               .roots = HN_ROOTS("Conv", "QuantizeLinear")};
