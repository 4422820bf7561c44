/* Reshape(Reshape(x) + a + b), in x's shape  ->  x + Reshape(a + b)
 *
 * Relative positions of pictures are added to scores as those of rows and of columns (SAM, ViTDet, MViTv2),
 * in a view that has the rows and columns of queries and keys apart. Added up beforehand they are a mask, and
 * scores go from their product to Softmax without being written. */
#include "optimize/passes/common/pass.h"

enum { MOST = 4, FAR = 6 };

static hone_node *reader(const hn_value *v) {
  hone_node *n = hn_value_single_use(v) ? v->users.ptr[0].node : NULL;
  return n && n->graph == v->graph ? n : NULL;
}

static bool is_reshape(const hone_node *n) {
  return n && hn_is_op(n, "Reshape") && n->in[0] && n->n_out && n->out[0];
}

/* Whether v, perhaps masked or scaled, enters a Softmax. */
static bool are_scores(const hn_value *v) {
  for (int i = 0; i < FAR; i++) {
    const hone_node *n = reader(v);
    if (!n || !n->n_out || !n->out[0]) return false;
    if (hn_is_op(n, "Softmax")) return true;
    if (!hn_is_op(n, "Add") && !hn_is_op(n, "Mul") && !hn_is_op(n, "Div") && !hn_is_op(n, "Where") &&
        !is_reshape(n))
      return false;
    v = n->out[0];
  }
  return false;
}

/* The Reshape at the upper end of a chain of Adds that only the next reads; what they add, in `added`. */
static hone_node *upper(const hn_value *v, hn_value **added, int *n_added) {
  for (;;) {
    hone_node *n = v->producer;
    if (!n || n->graph != v->graph || !reader(v)) return NULL;
    if (is_reshape(n)) return *n_added ? n : NULL;
    if (!hn_is_op(n, "Add") || *n_added == MOST) return NULL;
    /* The scores lie on the side that is a chain of the same. */
    int way = -1;
    for (int i = 0; i < 2; i++) {
      const hone_node *p = n->in[i]->producer;
      if (p && p->graph == n->graph && hn_same_shape(&n->in[i]->desc, &v->desc) && reader(n->in[i]) &&
          (hn_is_op(p, "Add") || is_reshape(p)) && way < 0)
        way = i;
    }
    if (way < 0) return NULL;
    added[(*n_added)++] = n->in[1 - way];
    v = n->in[way];
  }
}

/* Several as one of `full`'s dimensions; the smaller ones first. */
static hn_value *summed(hn_pass_context *ctx, hone_node *n, hn_value **added, int count,
                        const hone_tensor_desc *full) {
  hn_value *v = added[count - 1];
  for (int i = count - 2; i >= 0 && v; i--) {
    hone_tensor_desc like = v->desc;
    if (hn_broadcast_dims(&like, &added[i]->desc, NULL)) return NULL;
    v = hn_make_newest(ctx, n, "Add", (hn_value *const[]){v, added[i]}, 2, &like);
  }
  if (!v || hn_same_shape(&v->desc, full)) return v;
  hn_value *shape = hn_make_ints(ctx, v->name, full->dim, full->rank);
  return shape ? hn_make_newest(ctx, n, "Expand", (hn_value *const[]){v, shape}, 2, full) : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !is_reshape(n) || !n->in[0]->producer) return HN_PASS_NONE;
  if (!hn_is_op(n->in[0]->producer, "Add")) return HN_PASS_NONE;
  const hone_tensor_desc *y = &n->out[0]->desc, *t = &n->in[0]->desc;
  hn_value *added[MOST];
  int count = 0;
  if (!hone_desc_known(y) || !hone_desc_known(t) || y->dtype != HONE_DTYPE_F32 || y->rank < 3 || t->rank < 3)
    return HN_PASS_NONE;
  /* Where rows and keys stay as they are the view is one of the batch alone, and masks are as they should. */
  if (t->dim[t->rank - 1] == y->dim[y->rank - 1] && t->dim[t->rank - 2] == y->dim[y->rank - 2])
    return HN_PASS_NONE;
  hone_node *up = upper(n->in[0], added, &count);
  if (!up || !hn_same_shape(&up->in[0]->desc, y) || !are_scores(n->out[0])) return HN_PASS_NONE;
  for (int i = 0; i < count; i++)
    if (!hone_desc_known(&added[i]->desc)) return hn_pass_miss(ctx, "what is added has an unknown shape");
  hn_value *sum = summed(ctx, n, added, count, t), *x = up->in[0];
  hn_value *shape = sum ? hn_make_ints(ctx, sum->name, y->dim, y->rank) : NULL;
  hn_value *mask = shape ? hn_make_newest(ctx, n, "Reshape", (hn_value *const[]){sum, shape}, 2, y) : NULL,
           *v = mask ? hn_make_newest(ctx, n, "Add", (hn_value *const[]){x, mask}, 2, y) : NULL;
  if (!v) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%d terms of scores are a mask", count);
  if (!hn_replace(ctx, n->out[0], v)) return HN_PASS_FAIL;
  hn_remove_unread(n, MOST + 2);
  return HN_PASS_HIT;
}

HN_PASS(add_to_scores) = {
    .name = "add_to_scores",
    .level = 2,
    .about = "scores + relative positions of rows and columns -> scores + a mask",
    .visit = visit,
    .roots = HN_ROOTS("Reshape"),
};
