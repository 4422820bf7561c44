/* shape arithmetic of known dimensions  ->  constant
 * Reshape(x, shape arithmetic)          ->  Reshape(x, {0, 12, -1})
 *
 * A dimension that inference knows is a number even when others are symbols: Gather(Shape(x), 1) is a
 * constant although the batch is not. A Reshape whose shape has one unknown entry, or only such that are x's
 * own dimension at the same place, needs no arithmetic at run time and stays as dynamic as it was. */
#include "optimize/passes/common/dims.h"
#include "optimize/passes/common/pass.h"

/* The value is made of numbers alone: it becomes a constant. */
static hn_pass_result fold_value(hn_pass_context *ctx, hone_node *n) {
  hn_dim e[HN_DIMS_MAX];
  hn_value *v = n->n_out == 1 ? n->out[0] : NULL;
  if (!v || v->is_output || v->constant || v->desc.rank > 1 || v->desc.rank < 0) return HN_PASS_NONE;
  int32_t len = hn_dims_of(v, e);
  if (len < 0 || (v->desc.rank == 0 && len != 1)) return HN_PASS_NONE;
  hone_tensor *t = HN_NEW(&ctx->model->arena, hone_tensor);
  int64_t *data = HN_NEW_ARRAY(&ctx->model->arena, int64_t, len + 1), dims = len;
  if (!t || !data) return hn_pass_memory(ctx);
  for (int32_t i = 0; i < len; i++) {
    if (!e[i].known) return HN_PASS_NONE;
    if (v->desc.dtype == HONE_DTYPE_I64)
      data[i] = e[i].value;
    else
      ((int32_t *)data)[i] = (int32_t)e[i].value;
  }
  t->desc = hone_desc(v->desc.dtype, v->desc.rank, &dims);
  t->data = data;
  bool constants = n->n_in > 0;
  for (uint32_t i = 0; i < n->n_in; i++) constants &= !n->in[i] || hn_known(n->in[i]);
  hn_value_set_folded(v, t, constants && !hn_is_op(n, "Shape") && !hn_is_op(n, "Size") ? n : NULL);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i]) n->in[i]->folds++;
  ctx->given = v;
  hn_pass_hit(ctx, "%s of known dimensions", n->op_type);
  hn_node_remove(n);
  return HN_PASS_HIT;
}

/* e is x's dimension i, whatever it will be. */
static bool own_dimension(const hn_dim *e, const hn_value *x, int32_t i) {
  if (!e->of || e->known || i >= x->desc.rank) return false;
  if (e->of == x && e->axis == i) return true;
  int64_t d = e->of->desc.dim[e->axis];
  return d <= -2 && d == x->desc.dim[i];
}

static hn_pass_result fold_reshape(hn_pass_context *ctx, hone_node *n) {
  hn_dim e[HN_DIMS_MAX];
  int64_t shape[HN_DIMS_MAX];
  hn_value *x = hn_in(n, 0), *s = hn_in(n, 1);
  if (!x || !s || s->constant || n->opset < 5) return HN_PASS_NONE;
  int32_t len = hn_dims_of(s, e);
  if (len < 0 || len > HONE_MAX_RANK) return HN_PASS_NONE;
  bool allow_zero = hone_node_int(n, "allowzero", 0) != 0;
  int32_t unknown = 0, zeros = 0;
  for (int32_t i = 0; i < len; i++) {
    if (e[i].known) {
      shape[i] = e[i].value;
      unknown += shape[i] == -1;
      if (shape[i] == 0 && allow_zero)
        return hn_pass_miss(ctx, "the shape has a zero that stands for no elements");
    } else if (own_dimension(&e[i], x, i) && !allow_zero) {
      shape[i] = 0;
      zeros++;
    } else {
      shape[i] = -1;
      unknown++;
    }
  }
  if (unknown > 1) return hn_pass_miss(ctx, "%d entries of the shape are known at run time only", unknown);
  /* -1 is computed from the other entries, which fails beside dimensions that may be 0: those models run
   * either way. */
  hn_value *c = hn_make_ints(ctx, s->name, shape, len);
  if (!c || !hn_set_input(ctx, n, 1, c)) return HN_PASS_FAIL;
  if (s->producer) hn_remove_unread(s->producer, 32);
  return hn_pass_hit(ctx, "shape computed beforehand, %d of %d entries left to the run", unknown + zeros,
                     len);
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (hn_is_op(n, "Reshape")) {
    hn_pass_result r = fold_reshape(ctx, n);
    if (r != HN_PASS_NONE) return r;
  }
  return n->op && !(n->op->flags & HONE_OP_CONTROL) ? fold_value(ctx, n) : HN_PASS_NONE;
}

HN_PASS(fold_shapes) = {.name = "fold_shapes",
                        .level = 1,
                        .about = "arithmetic on known dimensions -> constant, Reshape with 0 and -1",
                        .visit = visit};
