/* f(T(a), T(b))  ->  T(f(a, b))         one Transpose less
 * T'(f(T(x)))    ->  T'(T(f(x)))        merge_transposes then makes one of the two, or none
 *
 * For elementwise f whose other operands are single numbers, and for Transposes with the same permutation
 * that have no other reader. Moved only where a Transpose goes away: a lone one may be better where it is. */
#include "optimize/passes/common/elementwise.h"
#include "optimize/passes/common/pass.h"

static bool same_perm(const hone_node *a, const hone_node *b) {
  size_t na, nb;
  const int64_t *pa = hone_node_ints(a, "perm", &na), *pb = hone_node_ints(b, "perm", &nb);
  return pa && pb && na == nb && memcmp(pa, pb, na * sizeof *pa) == 0;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  enum { MAX_IN = 8 };
  if (!hn_is_elementwise(n) || n->n_in > MAX_IN || n->opset < 7) return HN_PASS_NONE;
  hone_node *first = NULL;
  uint32_t transposes = 0;
  hn_value *in[MAX_IN];
  for (uint32_t i = 0; i < n->n_in; i++) {
    hn_value *v = in[i] = n->in[i];
    double number;
    if (!v || hn_constant_scalar(v, &number)) {
      if (v && v->desc.rank > 1) return HN_PASS_NONE; /* could raise the rank */
      continue;
    }
    hone_node *t = v->producer;
    if (!t || !hn_is_op(t, "Transpose") || t->graph != n->graph) return HN_PASS_NONE;
    if (first && !same_perm(first, t)) return hn_pass_miss(ctx, "the Transposes differ");
    if (!hone_node_has(t, "perm") || t->in[0]->desc.rank < 0) return HN_PASS_NONE;
    /* The same Transpose may be read twice by this node. */
    for (size_t u = 0; u < v->users.len; u++)
      if (v->users.ptr[u].node != n || v->is_output) return HN_PASS_NONE;
    if (t != first) transposes++;
    if (!first) first = t;
    in[i] = t->in[0];
  }
  if (!transposes) return HN_PASS_NONE;
  hn_value *y = n->out[0];
  bool meets = hn_value_single_use(y) && hn_is_op(y->users.ptr[0].node, "Transpose");
  if (transposes < 2 && !meets) return HN_PASS_NONE;
  /* Equal shapes, or broadcasting would pair other dimensions: ranks must agree. */
  for (uint32_t i = 0; i < n->n_in; i++)
    if (in[i] && n->in[i] != in[i] && in[i]->desc.rank != first->in[0]->desc.rank)
      return hn_pass_miss(ctx, "the ranks differ");
  hone_tensor_desc unknown = {.dtype = y->desc.dtype, .rank = -1};
  hone_node *f = hn_make_node(ctx, n, n->op_type, in, n->n_in, &unknown);
  if (!f || !hn_node_copy_attrs(f, n)) return hn_pass_memory(ctx);
  hone_node *t = hn_make_node(ctx, n, "Transpose", (hn_value *const[]){f->out[0]}, 1, &y->desc);
  if (!t || !hn_node_copy_attrs(t, first) || !hn_inherit(ctx, f, n) || !hn_inherit(ctx, t, first))
    return hn_pass_memory(ctx);
  for (uint32_t i = 0; i < n->n_in; i++)
    if (in[i] != n->in[i] && !hn_inherit(ctx, t, n->in[i]->producer)) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%s moved before the Transpose, %u saved", n->op_type, transposes);
  if (!hn_replace(ctx, y, t->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(n, 1);
  return HN_PASS_HIT;
}

HN_PASS(sink_transposes) = {.name = "sink_transposes",
                            .level = 2,
                            .about = "f(T(a), T(b)) -> T(f(a, b)) where a Transpose goes away",
                            .visit = visit};
