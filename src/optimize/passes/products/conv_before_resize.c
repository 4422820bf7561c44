/* Conv(Resize(x), W)                    ->  Resize(Conv(x, W))                              1x1, x smaller
 * Conv(Concat(Resize(x), ..., z), W)    ->  Conv(z, W_z) + Resize(Conv(x, W_x)) + ...
 *
 * Resizing mixes pixels of a channel, a 1x1 convolution channels of a pixel: their order is free. Heads that
 * bring the maps of several scales together (SegFormer, feature pyramids) multiply each map at its own size
 * then, and gather nothing. */
#include "optimize/passes/common/pass.h"

#include <math.h>

enum { MOST = 8, FEW_CHANNELS = 32 /* below, the product saved weighs little beside one more sum */ };

typedef struct part {
  hn_value *value;
  hone_node *resize; /* NULL: stays as large as it is */
  int64_t from, channels;
} part;

typedef struct parts {
  part list[MOST];
  uint32_t n, resized;
} parts;

static bool all_are(const hone_node *n, const char *name, int64_t wanted) {
  size_t count;
  const int64_t *v = hone_node_ints(n, name, &count);
  for (size_t i = 0; v && i < count; i++)
    if (v[i] != wanted) return false;
  return true;
}

/* A 1x1 convolution by constants without strides, padding and groups. */
static bool is_mixing(const hone_node *n) {
  const hone_tensor *w = hn_known_desc(hn_in(n, 1)), *b = hn_known_desc(hn_in(n, 2));
  if (!hn_is_op(n, "Conv") || !n->in[0] || !w || w->desc.dtype != HONE_DTYPE_F32 || w->desc.rank < 3 ||
      (hn_in(n, 2) && (!b || b->desc.dtype != HONE_DTYPE_F32)))
    return false;
  for (int32_t d = 2; d < w->desc.rank; d++)
    if (w->desc.dim[d] != 1) return false;
  return hone_node_int(n, "group", 1) == 1 && all_are(n, "strides", 1) && all_are(n, "pads", 0);
}

/* A Resize of places alone, by numbers that are constants, of which nothing but `reader` sees the result. */
static bool is_plain_resize(const hone_node *r) {
  const char *mode = hone_node_string(r, "coordinate_transformation_mode", "half_pixel");
  if (!hn_is_op(r, "Resize") || r->opset < 11 || !r->in[0] || !hn_value_single_use(r->out[0])) return false;
  if (strcmp(mode, "tf_crop_and_resize") == 0) return false; /* puts numbers of its own at some places */
  const hone_tensor_desc *x = &r->in[0]->desc, *y = &r->out[0]->desc;
  if (!hone_desc_known(x) || !hone_desc_known(y) || x->dtype != HONE_DTYPE_F32 || x->rank < 3 ||
      x->dim[0] != y->dim[0] || x->dim[1] != y->dim[1])
    return false;
  const hone_tensor *scales = hn_known(hn_in(r, 2)), *sizes = hn_known(hn_in(r, 3));
  const bool has_axes = hone_node_has(r, "axes");
  size_t n_axes;
  const int64_t *axes = hone_node_ints(r, "axes", &n_axes);
  for (size_t i = 0; i < n_axes && axes; i++)
    if (axes[i] == 1 || axes[i] == 1 - x->rank) return false;
  if (scales && hn_count(scales) > 0)
    return has_axes || (hn_count(scales) == x->rank && hn_get_f64(scales, 1) == 1);
  return sizes && (has_axes || hn_count(sizes) == x->rank);
}

static double pixels(const hone_tensor_desc *d) {
  double n = 1;
  for (int32_t k = 2; k < d->rank; k++) n *= (double)d->dim[k];
  return n;
}

/* Is the product so much smaller before the Resize that it pays? `out`: channels of the result. */
static bool pays(const hone_node *resize, int64_t out) {
  const hone_tensor_desc *x = &resize->in[0]->desc, *y = &resize->out[0]->desc;
  return x->dim[1] >= FEW_CHANNELS && out <= x->dim[1] && pixels(y) >= 2 * pixels(x);
}

static bool all_finite(const hone_tensor *t) {
  if (!t) return false;
  for (int64_t i = 0, n = hn_count(t); i < n; i++)
    if (!isfinite(hn_f32_at(t->data, i))) return false;
  return true;
}

/* What the convolution reads: its operand, or what that puts together. */
static bool read_parts(const hone_node *conv, parts *p) {
  hn_value *x = conv->in[0];
  const hone_node *concat = x->producer;
  const int64_t out = hn_known_desc(conv->in[1])->desc.dim[0];
  int64_t from = 0;
  *p = (parts){0};
  if (!concat || concat->graph != conv->graph || !hone_desc_known(&x->desc)) return false;
  const bool one = !hn_is_op(concat, "Concat");
  const int64_t axis = hone_node_int(concat, "axis", 1);
  if (!one && ((axis != 1 && axis != 1 - x->desc.rank) || !hn_value_single_use(x) || concat->n_in > MOST))
    return false;
  for (uint32_t i = 0; i < (one ? 1 : concat->n_in); i++) {
    hn_value *v = one ? x : concat->in[i];
    if (!v || !hone_desc_known(&v->desc)) return false;
    hone_node *r = v->producer;
    const bool moves = r && r->graph == conv->graph && is_plain_resize(r) && pays(r, out);
    p->list[p->n++] = (part){v, moves ? r : NULL, from, v->desc.dim[1]};
    p->resized += moves;
    from += v->desc.dim[1];
  }
  return p->resized > 0;
}

/* Columns of the weights. */
static hn_value *weights_of(hn_pass_context *ctx, const hone_node *conv, const part *list, uint32_t n) {
  const hone_tensor *w = hn_known(conv->in[1]);
  hone_tensor_desc d = w->desc;
  const int64_t rows = d.dim[0], columns = d.dim[1];
  void *room;
  d.dim[1] = 0;
  for (uint32_t i = 0; i < n; i++) d.dim[1] += list[i].channels;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_value *v = hn_make_room(ctx, conv->in[1]->name, &d, &room);
  float *to = room;
  for (int64_t r = 0; v && r < rows; r++)
    for (uint32_t i = 0; i < n; i++) {
      memcpy(to, (const char *)w->data + (size_t)(r * columns + list[i].from) * sizeof *to,
             (size_t)list[i].channels * sizeof *to);
      to += list[i].channels;
    }
  return v;
}

/* The convolution of some of the parts, which `x` holds; with the bias or without. */
static hn_value *mix(hn_pass_context *ctx, hone_node *conv, hn_value *x, const part *list, uint32_t n,
                     bool biased) {
  hone_tensor_desc d = x->desc;
  d.dim[1] = conv->out[0]->desc.dim[1];
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hn_value *in[3] = {x, weights_of(ctx, conv, list, n), biased ? hn_in(conv, 2) : NULL};
  hone_node *y = in[1] ? hn_make_node(ctx, conv, "Conv", in, in[2] ? 3 : 2, &d) : NULL;
  if (!y || !hn_inherit(ctx, y, conv)) return NULL;
  return hn_node_copy_attrs(y, conv) ? y->out[0] : (hn_pass_memory(ctx), NULL);
}

/* The same Resize of `x`, which has other channels than its own operand. */
static hn_value *resized(hn_pass_context *ctx, hone_node *conv, const hone_node *r, hn_value *x) {
  hn_value *in[4] = {x, hn_in(r, 1), hn_in(r, 2), hn_in(r, 3)};
  hone_tensor_desc d = r->out[0]->desc;
  int64_t sizes[HONE_MAX_RANK];
  d.dim[1] = x->desc.dim[1];
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  if (in[3] && !hone_node_has(r, "axes")) {
    const int64_t n = hn_known_ints(in[3], sizes, HONE_MAX_RANK);
    if (n > 1) {
      sizes[1] = d.dim[1];
      if (!(in[3] = hn_make_ints(ctx, in[3]->name, sizes, n))) return NULL;
    }
  }
  hone_node *y = hn_make_node(ctx, conv, "Resize", in, r->n_in < 4 ? r->n_in : 4, &d);
  if (!y || !hn_inherit(ctx, y, r)) return NULL;
  return hn_node_copy_attrs(y, r) ? y->out[0] : (hn_pass_memory(ctx), NULL);
}

/* What is not resized, put together: *list becomes these parts. */
static hn_value *rest_of(hn_pass_context *ctx, hone_node *conv, const parts *p, part *list, uint32_t *n) {
  hn_value *in[MOST];
  hone_tensor_desc d = conv->in[0]->desc;
  *n = 0, d.dim[1] = 0;
  for (uint32_t i = 0; i < p->n; i++)
    if (!p->list[i].resize) {
      in[*n] = p->list[i].value;
      list[(*n)++] = p->list[i];
      d.dim[1] += p->list[i].channels;
    }
  if (*n < 2) return *n ? in[0] : NULL;
  hone_desc_set_layout(&d, HONE_LAYOUT_ROW_MAJOR, 0);
  hone_node *concat = hn_make_node(ctx, conv, "Concat", in, *n, &d);
  if (!concat || !hn_inherit(ctx, concat, conv->in[0]->producer)) return NULL;
  return hn_node_set_int(concat, "axis", 1) ? concat->out[0] : (hn_pass_memory(ctx), NULL);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *conv) {
  parts p;
  part list[MOST];
  uint32_t n;
  /* On accelerators a Concat costs nothing, and products wait for memory: SegFormer's head on one H200 was
   * slower by 3 % at a batch of 1 and by 10 % at 16. */
  if (ctx->options->lowered && !ctx->options->processor) return HN_PASS_NONE;
  if (!is_mixing(conv) || !read_parts(conv, &p)) return HN_PASS_NONE;
  if (!hn_known(conv->in[1])) return HN_PASS_NONE; /* its scaled numbers leave f32's range */
  /* Sums of pixels would make NaN of the infinities that they make. */
  if (!all_finite(hn_known(conv->in[1])) || (hn_in(conv, 2) && !all_finite(hn_known(conv->in[2]))))
    return hn_pass_miss(ctx, "weights or bias of '%.80s' are not finite", conv->name);
  hn_value *rest = rest_of(ctx, conv, &p, list, &n), *y = NULL;
  if (ctx->status != HONE_OK) return HN_PASS_FAIL;
  if (rest && !(y = mix(ctx, conv, rest, list, n, true))) return HN_PASS_FAIL;
  for (uint32_t i = 0; i < p.n; i++) {
    const part *one = &p.list[i];
    if (!one->resize) continue;
    /* Resizing a row of equal numbers leaves it as it is: the bias may come before it. */
    hn_value *small = mix(ctx, conv, one->resize->in[0], one, 1, !y),
             *large = small ? resized(ctx, conv, one->resize, small) : NULL;
    if (!large) return HN_PASS_FAIL;
    hone_node *sum =
        y ? hn_make_node(ctx, conv, "Add", (hn_value *const[]){y, large}, 2, &conv->out[0]->desc) : NULL;
    if (y && (!sum || !hn_inherit(ctx, sum, conv))) return HN_PASS_FAIL;
    y = sum ? sum->out[0] : large;
  }
  hn_pass_hit(ctx, "%u of %u operands of '%.80s' are resized behind it", p.resized, p.n, conv->name);
  if (!hn_replace(ctx, conv->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(conv, 2);
  return HN_PASS_HIT;
}

HN_PASS(conv_before_resize) = {
    .name = "conv_before_resize",
    .level = 2,
    .about = "Conv(Concat(Resize(x), z), W) -> Resize(Conv(x, W_x)) + Conv(z, W_z), 1x1",
    .visit = visit,
    .roots = HN_ROOTS("Conv"),
};
