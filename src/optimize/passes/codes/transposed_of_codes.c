/* ConvTranspose(x, w) + b  ->  DepthToSpace(Conv(x, w') + b')     x, w dequantised, kernels as large as their
 *                                                                 strides
 *
 * No two of such kernels meet, so each output pixel is a product of one input pixel: a 1x1 convolution, whose
 * channels are (row, column, channel) of what a pixel becomes. Products of codes have kernels, transposed
 * convolutions of codes none. On processors. */
#include "optimize/passes/common/codes.h"

typedef struct transposed {
  const hone_node *w, *b; /* DequantizeLinear; b: NULL where the bias is floats, or none */
  const hn_value *bias;
  int64_t in, out, block;
} transposed;

static bool all_are(const hone_node *n, const char *attribute, int64_t value) {
  size_t count = 0;
  const int64_t *v = hone_node_ints(n, attribute, &count);
  for (size_t i = 0; v && i < count; i++)
    if (v[i] != value) return false;
  return true;
}

static bool count_is(const hn_value *v, int64_t channels) {
  const int64_t n = hone_desc_count(&v->desc);
  return n == 1 || n == channels;
}

/* One parameter, or one a channel along `axis`. */
static bool parameters_fit(const hone_node *dq, int64_t channels, int64_t axis) {
  const hn_value *zero = hn_zero_of(dq);
  int64_t is = hone_node_int(dq, "axis", 1);
  if (is < 0) is += dq->in[0]->desc.rank;
  return hn_known(dq->in[0]) && hn_known(dq->in[1]) && count_is(dq->in[1], channels) &&
         (!zero || (hn_known(zero) && hone_desc_count(&zero->desc) == hone_desc_count(&dq->in[1]->desc))) &&
         (hone_desc_count(&dq->in[1]->desc) == 1 || is == axis);
}

static bool read_bias(const hone_node *n, transposed *t) {
  t->bias = hn_in(n, 2);
  if (!t->bias) return true;
  if (t->bias->desc.rank != 1 || t->bias->desc.dim[0] != t->out) return false;
  if (hn_known(t->bias)) return t->bias->desc.dtype == HONE_DTYPE_F32;
  const hone_node *dq = t->bias->producer;
  if (!hn_is_op(dq, "DequantizeLinear") || dq->graph != n->graph || t->bias->desc.dtype != HONE_DTYPE_F32 ||
      dq->in[1]->desc.dtype != HONE_DTYPE_F32 || hone_node_int(dq, "block_size", 0) != 0 ||
      !parameters_fit(dq, t->out, 0))
    return false;
  t->b = dq;
  return true;
}

static bool read(const hone_node *n, transposed *t) {
  const hone_tensor_desc *x = &n->in[0]->desc, *y = &n->out[0]->desc;
  const char *pad = hone_node_string(n, "auto_pad", "NOTSET");
  if (!hn_codes_behind(n->in[0], true) || !(t->w = hn_codes_behind(n->in[1], false)) || x->rank != 4 ||
      !hone_desc_known(x) || !hone_desc_known(y) || n->in[1]->desc.rank != 4)
    return false;
  const int64_t *w = n->in[1]->desc.dim;
  t->in = w[0], t->out = w[1], t->block = w[2];
  /* Weights that are there bound the block; without any it is what a file says. */
  return hone_node_int(n, "group", 1) == 1 && t->in > 0 && t->out > 0 && t->block > 1 && w[3] == t->block &&
         x->dim[1] == t->in && y->dim[2] == x->dim[2] * t->block && y->dim[3] == x->dim[3] * t->block &&
         hone_node_ints(n, "strides", &(size_t){0}) && all_are(n, "strides", t->block) &&
         all_are(n, "dilations", 1) && all_are(n, "pads", 0) && all_are(n, "output_padding", 0) &&
         (!strcmp(pad, "NOTSET") || !strcmp(pad, "VALID")) && parameters_fit(t->w, t->out, 1) &&
         read_bias(n, t);
}

/* The constant v, its elements as often behind each other as a pixel becomes pixels; one alone stays. */
static hn_value *repeated(hn_pass_context *ctx, const transposed *t, const hn_value *v) {
  const size_t bytes = (size_t)hone_desc_bytes(&v->desc), times = (size_t)(t->block * t->block);
  if (hone_desc_count(&v->desc) == 1 && t->out > 1)
    return hn_make_constant(ctx, v->name, &v->desc, hn_known(v)->data);
  const hone_tensor_desc d = hone_desc(v->desc.dtype, 1, (int64_t[]){t->out * (int64_t)times});
  char *all = hn_arena_alloc(ctx->scratch, bytes * times);
  if (!all) return hn_pass_memory(ctx), NULL;
  for (size_t i = 0; i < times; i++) memcpy(all + i * bytes, hn_known(v)->data, bytes);
  return hn_make_constant(ctx, v->name, &d, all);
}

/* [in][out][rows][columns] -> [rows][columns][out][in] */
static hn_value *turned(hn_pass_context *ctx, const transposed *t) {
  const hn_value *v = t->w->in[0];
  const int64_t taps = t->block * t->block, rows = taps * t->out;
  const hone_tensor_desc d = hone_desc(v->desc.dtype, 4, (int64_t[]){rows, t->in, 1, 1});
  const uint8_t *from = hn_known(v)->data;
  uint8_t *to = hn_arena_alloc(ctx->scratch, (size_t)(rows * t->in));
  if (!to) return hn_pass_memory(ctx), NULL;
  for (int64_t i = 0; i < t->in; i++)
    for (int64_t c = 0; c < t->out; c++)
      for (int64_t tap = 0; tap < taps; tap++)
        to[(tap * t->out + c) * t->in + i] = from[(i * t->out + c) * taps + tap];
  return hn_make_constant(ctx, v->name, &d, to);
}

/* `dq` on other codes. */
static hn_value *dequantised(hn_pass_context *ctx, hone_node *at, const transposed *t, const hone_node *dq,
                             hn_value *codes) {
  hn_value *scale = codes ? repeated(ctx, t, dq->in[1]) : NULL, *zero = NULL;
  if (!scale || (hn_zero_of(dq) && !(zero = repeated(ctx, t, hn_zero_of(dq))))) return NULL;
  hone_tensor_desc d = codes->desc;
  d.dtype = HONE_DTYPE_F32;
  hone_node *m =
      hn_make_node(ctx, at, "DequantizeLinear", (hn_value *const[]){codes, scale, zero}, zero ? 3 : 2, &d);
  if (!m || !hn_inherit(ctx, m, dq)) return NULL;
  if (hone_desc_count(&scale->desc) > 1 && !hn_node_set_int(m, "axis", 0)) return hn_pass_memory(ctx), NULL;
  return m->out[0];
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  transposed t = {0};
  if (!ctx->options->lowered || !ctx->options->processor || !hn_is_op(n, "ConvTranspose") || !read(n, &t))
    return HN_PASS_NONE;
  const hone_tensor_desc *x = &n->in[0]->desc;
  const hone_tensor_desc d =
      hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){x->dim[0], t.out * t.block * t.block, x->dim[2], x->dim[3]});
  hn_value *in[3] = {n->in[0], dequantised(ctx, n, &t, t.w, turned(ctx, &t)), NULL};
  if (!in[1]) return HN_PASS_FAIL;
  if (t.bias)
    in[2] = t.b ? dequantised(ctx, n, &t, t.b, repeated(ctx, &t, t.b->in[0])) : repeated(ctx, &t, t.bias);
  if (t.bias && !in[2]) return HN_PASS_FAIL;
  hone_node *conv = hn_make_node(ctx, n, "Conv", in, t.bias ? 3 : 2, &d);
  if (!conv || !hn_inherit(ctx, conv, n)) return HN_PASS_FAIL;
  hone_node *move = hn_make_node(ctx, n, "DepthToSpace", conv->out, 1, &n->out[0]->desc);
  if (!move || !hn_inherit(ctx, move, n)) return HN_PASS_FAIL;
  if (!hn_node_set_int(move, "blocksize", t.block)) return hn_pass_memory(ctx);
  hn_pass_hit(ctx, "a 1x1 convolution of codes");
  if (!hn_replace(ctx, n->out[0], move->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

HN_PASS(transposed_of_codes) = {.name = "transposed_of_codes",
                                .level = 2,
                                .about = "ConvTranspose of codes, kernel = stride -> DepthToSpace(1x1 Conv)",
                                .visit = visit,
                                .roots = HN_ROOTS("ConvTranspose")};
