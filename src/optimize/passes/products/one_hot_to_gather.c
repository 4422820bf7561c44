/* MatMul(OneHot(i, D, [0, 1]), W)            ->  Gather(T, Clip(i, -D - 1, D) + D + 1)    T: 0, W, W, 0
 * MatMul(Cast(Equal(i, [0, 1, ... D - 1])), W)  ->  Gather(T, Clip(i, -1, D) + 1)         T: 0, W, 0
 *
 * A product with rows that hold a single 1 looks up rows of W, a constant matrix. An index without a place
 * among the D is a row of zeros in both: the rows around W. OneHot counts negative ones from the end. Where W
 * holds what is not finite the product does not, as zeros times that are no numbers. */
#include "optimize/passes/common/pass.h"

#include <math.h>

enum { MOST = 1 << 22 }; /* elements of T */

/* What makes v, through Casts. */
static hone_node *behind_casts(const hn_value *v) {
  hone_node *n = v ? v->producer : NULL;
  while (n && hn_is_op(n, "Cast") && n->in[0]) n = n->in[0]->producer;
  return n;
}

static bool is_integer(hone_dtype t) { return t == HONE_DTYPE_I32 || t == HONE_DTYPE_I64; }

/* 0, 1, 2... along the last of its dimensions. */
static bool counts(const hone_tensor *t, int64_t depth) {
  const hone_tensor_desc *d = &t->desc;
  if (!is_integer(d->dtype) || d->rank < 1 || d->dim[d->rank - 1] != depth || hn_count(t) != depth)
    return false;
  for (int64_t i = 0; i < depth; i++)
    if (hn_get_i64(t, i) != i) return false;
  return true;
}

/* The indices that `n` compares or spreads, with *last where they have a dimension of 1 for it. */
static hn_value *indices(const hone_node *n, int64_t depth, bool *last) {
  *last = hn_is_op(n, "Equal");
  if (hn_is_op(n, "OneHot")) {
    int64_t of[2];
    const hone_tensor *values = hn_known(hn_in(n, 2));
    hn_value *i = n->in[0];
    const int64_t axis = hone_node_int(n, "axis", -1);
    if (hn_known_ints(hn_in(n, 1), of, 1) != 1 || of[0] != depth || !values || hn_count(values) != 2)
      return NULL;
    for (int64_t k = 0; k < 2; k++)
      if (hn_get_f64(values, k) != (double)k) return NULL;
    return i && i->desc.rank >= 0 && (axis == -1 || axis == i->desc.rank) ? i : NULL;
  }
  for (uint32_t k = 0; *last && k < 2; k++) {
    hn_value *i = n->in[1 - k];
    const hone_tensor *t = hn_known(n->in[k]);
    if (t && counts(t, depth) && i && i->desc.rank >= t->desc.rank && i->desc.rank > 0 &&
        i->desc.dim[i->desc.rank - 1] == 1)
      return i;
  }
  return NULL;
}

/* Rows of zeros around `times` times those of w. */
static hn_value *table(hn_pass_context *ctx, const char *stem, const hone_tensor *w, int64_t times) {
  const int64_t rows = w->desc.dim[0], n = w->desc.dim[1];
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){2 + times * rows, n});
  void *room;
  hn_value *t = hn_make_room(ctx, stem, &d, &room);
  if (!t) return NULL;
  float *to = room;
  memset(to, 0, (size_t)n * sizeof *to);
  for (int64_t k = 0; k < times; k++)
    memcpy(to + (1 + k * rows) * n, w->data, (size_t)(rows * n) * sizeof *to);
  memset(to + (1 + times * rows) * n, 0, (size_t)n * sizeof *to);
  return t;
}

static hn_value *number(hn_pass_context *ctx, const char *stem, hone_dtype type, int64_t v) {
  const hone_tensor_desc d = hone_desc(type, 0, NULL);
  const int32_t narrow = (int32_t)v;
  return hn_make_constant(ctx, stem, &d, type == HONE_DTYPE_I64 ? (const void *)&v : &narrow);
}

static hn_value *apply(hn_pass_context *ctx, hone_node *n, const char *op, hn_value *const *in, uint32_t n_in,
                       const hone_tensor_desc *like) {
  hone_node *made = hn_make_node(ctx, n, op, in, n_in, like);
  return made && hn_inherit(ctx, made, n) ? made->out[0] : NULL;
}

static hn_value *places(hn_pass_context *ctx, hone_node *n, hn_value *i, int64_t depth, bool last) {
  const char *stem = n->out[0]->name;
  const hone_dtype type = i->desc.dtype;
  const int64_t before = last ? 1 : depth + 1;
  hn_value *lo = number(ctx, stem, type, -before), *hi = lo ? number(ctx, stem, type, depth) : NULL,
           *by = hi ? number(ctx, stem, type, before) : NULL;
  if (!by) return NULL;
  hn_value *within = apply(ctx, n, "Clip", (hn_value *const[]){i, lo, hi}, 3, &i->desc);
  hn_value *at = within ? apply(ctx, n, "Add", (hn_value *const[]){within, by}, 2, &i->desc) : NULL;
  if (!at || !last) return at;
  hone_tensor_desc without = i->desc;
  without.rank--;
  hn_value *axis = hn_make_ints(ctx, stem, &(int64_t){-1}, 1);
  return axis ? apply(ctx, n, "Squeeze", (hn_value *const[]){at, axis}, 2, &without) : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  const hone_tensor *w = hn_is_op(n, "MatMul") ? hn_known_desc(hn_in(n, 1)) : NULL;
  hone_node *hot = w && n->in[0] ? behind_casts(n->in[0]) : NULL;
  bool last;
  if (!hot || w->desc.rank != 2 || w->desc.dtype != HONE_DTYPE_F32) return HN_PASS_NONE;
  hn_value *i = indices(hot, w->desc.dim[0], &last);
  if (!i || i->graph != n->graph) return HN_PASS_NONE;
  if (!is_integer(i->desc.dtype) || n->out[0]->desc.rank != i->desc.rank + !last)
    return hn_pass_miss(ctx, "the indices are no integers, or broadcast");
  const int64_t opset = hn_model_opset(ctx->model, ""), times = last ? 1 : 2;
  if (opset < (last ? 13 : 12)) return hn_pass_miss(ctx, "opset %d has no Clip of integers", (int)opset);
  if ((w->desc.dim[0] * times + 2) * w->desc.dim[1] > MOST)
    return hn_pass_miss(ctx, "the table would have more than %d elements", (int)MOST);
  if (!(w = hn_known(n->in[1]))) return HN_PASS_NONE;
  for (int64_t k = 0; k < hn_count(w); k++)
    if (!isfinite(((const float *)w->data)[k])) return hn_pass_miss(ctx, "the weights are not all finite");
  hn_value *t = table(ctx, n->in[1]->name, w, times),
           *at = t ? places(ctx, n, i, w->desc.dim[0], last) : NULL;
  hn_value *y = at ? apply(ctx, n, "Gather", (hn_value *const[]){t, at}, 2, &n->out[0]->desc) : NULL;
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "rows of a table of %d", (int)(w->desc.dim[0] * times + 2));
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 4);
  return HN_PASS_HIT;
}

HN_PASS(one_hot_to_gather) = {.name = "one_hot_to_gather",
                              .level = 2,
                              .about = "MatMul(OneHot(i), W) -> Gather(W, i)",
                              .visit = visit,
                              .roots = HN_ROOTS("MatMul")};
