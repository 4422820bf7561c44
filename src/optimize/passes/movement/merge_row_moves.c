/* Gathers, Transposes and Reshapes that move whole rows, one behind the other  ->  Reshape(Gather(Reshape(x),
 * order))
 *
 * Windows of pixels that are rolled before they are parted (Swin) or turned after it (MaxViT) are copied two
 * or three times. All of it is an order of rows, the innermost dimension being left alone, which is the same
 * for every image. */
#include "optimize/passes/common/pass.h"

enum { MOST = 12, SHORTEST = 16, ROWS = 1 << 18 };

typedef struct moves {
  hone_node *node[MOST]; /* the last one first */
  uint32_t n, copies;
} moves;

static bool known(const hone_tensor_desc *d) {
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] < 1 || d->dim[i] > INT32_MAX) return false;
  return d->rank >= 2 && d->rank <= HONE_MAX_RANK && d->dim[d->rank - 1] >= SHORTEST;
}

/* 0: it does something else than moving rows; 1: it only names dimensions; 2: it copies. */
static int kind_of(const hone_node *n) {
  size_t count;
  if (n->n_out != 1 || !n->out[0] || !hn_in(n, 0)) return 0;
  const hone_tensor_desc *x = &n->in[0]->desc, *y = &n->out[0]->desc;
  if (!known(x) || !known(y) || x->dim[x->rank - 1] != y->dim[y->rank - 1]) return 0;
  if (hn_is_op(n, "Reshape")) return 1;
  if (hn_is_op(n, "Transpose")) {
    const int64_t *perm = hone_node_ints(n, "perm", &count);
    return perm && count == (size_t)x->rank && perm[count - 1] == x->rank - 1 ? 2 : 0;
  }
  if (hn_is_op(n, "Gather")) {
    const hone_tensor *index = hn_known(hn_in(n, 1));
    const int64_t axis = hone_node_int(n, "axis", 0);
    return index && index->desc.rank == 1 && index->desc.dtype == HONE_DTYPE_I64 && y->rank == x->rank &&
                   (axis < 0 ? axis + x->rank : axis) < x->rank - 1
               ? 2
               : 0;
  }
  return 0;
}

static int64_t rows_of(const hone_tensor_desc *d) {
  int64_t n = 1;
  for (int32_t i = 0; i + 1 < d->rank; i++) n = n > ROWS ? n : n * d->dim[i];
  return n;
}

static hone_node *only_reader(const hn_value *v) {
  return hn_value_single_use(v) ? v->users.ptr[0].node : NULL;
}

/* Does another move follow? It is looked at then. */
static bool goes_on(const hone_node *n) {
  for (hone_node *next = only_reader(n->out[0]); next && next->graph == n->graph && next->in[0] == n->out[0];
       n = next, next = only_reader(n->out[0])) {
    const int kind = kind_of(next);
    if (kind != 1) return kind == 2;
  }
  return false;
}

static void collect(hone_node *last, moves *m) {
  *m = (moves){0};
  for (hone_node *n = last; n && n->graph == last->graph && m->n < MOST;) {
    const int kind = kind_of(n);
    if (!kind || (n != last && !hn_value_single_use(n->out[0]))) break;
    m->node[m->n++] = n, m->copies += kind == 2;
    n = n->in[0]->producer;
  }
  while (m->n && kind_of(m->node[m->n - 1]) == 1) m->n--; /* what only names dimensions in front */
}

/* Which row of x each row of the node's result is, from the same of its input. */
static void follow(const hone_node *n, const int64_t *from, int64_t *to) {
  const hone_tensor_desc *x = &n->in[0]->desc, *y = &n->out[0]->desc;
  const bool turns = hn_is_op(n, "Transpose");
  const hone_tensor *index = turns ? NULL : hn_known(n->in[1]);
  int64_t step[HONE_MAX_RANK], at[HONE_MAX_RANK] = {0}, s = 1, axis = hone_node_int(n, "axis", 0);
  size_t count;
  const int64_t *perm = hone_node_ints(n, "perm", &count), *order = index ? index->data : NULL;
  axis = axis < 0 ? axis + x->rank : axis;
  for (int32_t i = x->rank - 2; i >= 0; i--) step[i] = s, s *= x->dim[i];
  for (int64_t r = 0, all = rows_of(y); r < all; r++) {
    int64_t source = 0;
    for (int32_t i = 0; i + 1 < y->rank; i++) {
      int64_t k = at[i];
      if (!turns && i == axis) {
        memcpy(&k, &order[k], sizeof k); /* at any alignment */
        k = k < 0 ? k + x->dim[i] : k;
      }
      source += k * step[turns ? perm[i] : i];
    }
    to[r] = from[source];
    for (int32_t i = y->rank - 2; i >= 0 && ++at[i] == y->dim[i]; i--) at[i] = 0;
  }
}

static bool in_range(const hone_node *n) {
  if (!hn_is_op(n, "Gather")) return true;
  const hone_tensor *index = hn_known(n->in[1]);
  const int64_t axis = hone_node_int(n, "axis", 0), rank = n->in[0]->desc.rank;
  const int64_t size = n->in[0]->desc.dim[axis < 0 ? axis + rank : axis];
  for (int64_t i = 0; i < hn_count(index); i++) {
    const int64_t k = (int64_t)hn_get_f64(index, i);
    if (k < -size || k >= size) return false;
  }
  return true;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *last) {
  moves m;
  if (kind_of(last) != 2 || goes_on(last)) return HN_PASS_NONE;
  collect(last, &m);
  if (m.copies < 2) return HN_PASS_NONE;
  hn_value *x = m.node[m.n - 1]->in[0], *y = last->out[0];
  const int64_t rows = rows_of(&x->desc), results = rows_of(&y->desc), wide = y->desc.dim[y->desc.rank - 1];
  int64_t images = x->desc.dim[0];
  int64_t most = rows;
  for (uint32_t k = 0; k < m.n; k++) {
    const int64_t n = rows_of(&m.node[k]->out[0]->desc);
    if (!in_range(m.node[k])) return HN_PASS_NONE;
    most = n > most ? n : most;
  }
  if (most > ROWS) return hn_pass_miss(ctx, "more than %d rows", (int)ROWS);
  int64_t *a = HN_NEW_ARRAY(ctx->scratch, int64_t, most), *b = HN_NEW_ARRAY(ctx->scratch, int64_t, most);
  if (!a || !b) return hn_pass_memory(ctx);
  for (int64_t r = 0; r < rows; r++) a[r] = r;
  for (uint32_t k = m.n; k-- > 0;)
    if (kind_of(m.node[k]) == 2) {
      follow(m.node[k], a, b);
      int64_t *const swap = a;
      a = b, b = swap;
    }
  /* The same order in every image, or all rows together. */
  if (results % images) images = 1;
  const int64_t own = results / images, mine = rows / images;
  for (int64_t r = 0; r < results && images > 1; r++)
    if (a[r] - r / own * mine != a[r % own] || a[r % own] >= mine) images = 1;
  const int64_t each = results / images, flat[] = {images, rows / images, wide};
  int64_t shape[HONE_MAX_RANK];
  for (int32_t i = 0; i < y->desc.rank; i++) shape[i] = y->desc.dim[i];
  hn_value *in[] = {x, hn_make_ints(ctx, y->name, flat, 3)}, *order = hn_make_ints(ctx, y->name, a, each),
           *form = hn_make_ints(ctx, y->name, shape, y->desc.rank);
  const hone_tensor_desc unknown = {.dtype = x->desc.dtype, .rank = -1};
  if (!in[1] || !order || !form) return hn_pass_memory(ctx);
  hone_node *first = hn_make_node(ctx, last, "Reshape", in, 2, &unknown);
  hone_node *gather =
      first ? hn_make_node(ctx, last, "Gather", (hn_value *const[]){first->out[0], order}, 2, &unknown)
            : NULL;
  hone_node *back =
      gather ? hn_make_node(ctx, last, "Reshape", (hn_value *const[]){gather->out[0], form}, 2, &y->desc)
             : NULL;
  if (!back || !hn_node_set_int(gather, "axis", 1)) return hn_pass_memory(ctx);
  for (uint32_t k = 0; k < m.n; k++)
    if (!hn_inherit(ctx, gather, m.node[k])) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "%u copies of '%.80s' are one", m.copies, x->name);
  if (!hn_replace(ctx, y, back->out[0])) return HN_PASS_FAIL;
  hn_remove_unread(last, (int)m.n);
  return HN_PASS_HIT;
}

HN_PASS(merge_row_moves) = {
    .name = "merge_row_moves",
    .level = 2,
    .about = "Gather, Transpose, Reshape of whole rows, several -> one Gather",
    .visit = visit,
};
