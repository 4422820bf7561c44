/* Transpose(Reshape(x: N,C,H,W -> N,C,HW)): N,HW,C   ->  Reshape(Transpose(x): N,H,W,C)
 * Reshape(Transpose(x: N,HW,C): N,C,HW): N,C,H,W     ->  Transpose(Reshape(x): N,H,W,C)
 *
 * For one to three spatial dimensions. What lies channels-last is renamed by such a Transpose, not copied,
 * and its neighbours are spared the copies to row-major and back. */
#include "optimize/passes/common/pass.h"

/* The permutation between channels first and last of N,C,L or N,L,C. */
static bool swaps(const hone_node *n) {
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  return hn_is_op(n, "Transpose") && count == 3 && perm[0] == 0 && perm[1] == 2 && perm[2] == 1;
}

static bool reshapes(const hone_node *n) {
  return n && n->op && (n->op->flags & HONE_OP_VIEW) && n->n_in && n->in[0] && n->out[0];
}

/* Whether `flat` (N,C,L) is `wide` (N,C,spatial...) with joined spatial dimensions. */
static bool joins(const hone_tensor_desc *wide, const hone_tensor_desc *flat) {
  if (!hone_desc_known(wide) || !hone_desc_known(flat) || flat->rank != 3 || wide->rank < 4 || wide->rank > 5)
    return false;
  return wide->dim[0] == flat->dim[0] && wide->dim[1] == flat->dim[1] &&
         hone_desc_count(wide) == hone_desc_count(flat);
}

/* What reads n alone parts the pixels again: the second rule is for that one. */
static bool parts_again(const hone_node *n) {
  const hone_node *next = hn_value_single_use(n->out[0]) ? n->out[0]->users.ptr[0].node : NULL;
  return next && next->graph == n->graph && reshapes(next) && joins(&next->out[0]->desc, &n->out[0]->desc);
}

/* A Transpose that does not put channels first may be part of an attention, which writes in its order. */
static bool moved(const hn_value *x) {
  const hone_node *n = x->producer;
  if (!n || !hn_is_op(n, "Transpose")) return false;
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count);
  for (size_t i = 1; i < count; i++)
    if (perm[i] != (int64_t)(i == 1 ? count - 1 : i - 1)) return true;
  return !count || perm[0] != 0;
}

/* n's result in its shape, made by `op` and then the other of the two; `between` is what lies between. */
static hn_pass_result rewrite(hn_pass_context *ctx, hone_node *n, hn_value *x, bool transpose_first,
                              const hone_tensor_desc *between) {
  const hone_tensor_desc *reshaped = transpose_first ? &n->out[0]->desc : between;
  int64_t perm[HONE_MAX_RANK] = {0};
  const int32_t rank = between->rank;
  for (int32_t i = 1; i < rank; i++)
    perm[i] = transpose_first ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
  hn_value *v = x, *shape = hn_make_ints(ctx, n->out[0]->name, reshaped->dim, reshaped->rank);
  if (!shape) return HN_PASS_FAIL;
  for (int i = 0; i < 2; i++) {
    const bool transpose = (i == 0) == transpose_first;
    hone_node *made = hn_make_node(ctx, n, transpose ? "Transpose" : "Reshape", (hn_value *const[]){v, shape},
                                   transpose ? 1 : 2, i ? &n->out[0]->desc : between);
    if (!made || (transpose && !hn_node_set_ints(made, "perm", perm, (size_t)rank)))
      return hn_pass_memory(ctx);
    if (!hn_inherit(ctx, made, n)) return HN_PASS_FAIL;
    v = made->out[0];
  }
  hn_pass_hit(ctx, "a Transpose between channels first and last");
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hone_node *above = n->n_in && n->in[0] ? n->in[0]->producer : NULL;
  if (!above || above->graph != n->graph || !n->out[0] || n->opset < 5) return HN_PASS_NONE;
  hone_tensor_desc between = n->out[0]->desc;
  if (swaps(n) && reshapes(above) && joins(&above->in[0]->desc, &above->out[0]->desc) && !parts_again(n) &&
      !moved(above->in[0])) {
    const hone_tensor_desc *wide = &above->in[0]->desc;
    between = *wide;
    for (int32_t i = 1; i < wide->rank; i++) between.dim[i] = wide->dim[i == wide->rank - 1 ? 1 : i + 1];
    return rewrite(ctx, n, above->in[0], true, &between);
  }
  if (reshapes(n) && swaps(above) && hn_value_single_use(n->in[0]) &&
      joins(&n->out[0]->desc, &n->in[0]->desc)) {
    const hone_tensor_desc *wide = &n->out[0]->desc;
    for (int32_t i = 1; i < wide->rank; i++) between.dim[i] = wide->dim[i == wide->rank - 1 ? 1 : i + 1];
    return rewrite(ctx, n, above->in[0], false, &between);
  }
  return HN_PASS_NONE;
}

HN_PASS(spread_transposes) = {
    .name = "spread_transposes",
    .level = 2,
    .about = "Transpose(Reshape(x)) -> Reshape(Transpose(x)) and back, where that is between channels first "
             "and last",
    .visit = visit,
};
