/* Einsum(a, b)  ->  MatMul of a as [batch..., M, K] and b as [batch..., K, N]
 *
 * Letters of both operands and the result are the batch, those of both alone are summed (K), the others are
 * rows (M) or columns (N). Transpose and Reshape bring the operands there and the result back, where it does
 * not lie so already. */
#include "model/ops/product/equation.h"
#include "optimize/passes/common/pass.h"

typedef struct letters {
  int32_t n;
  uint8_t label[2 * HONE_MAX_RANK];
} letters;

typedef struct plan {
  letters batch, rows, columns, summed;
  int64_t size[HN_EINSUM_LABELS];
} plan;

static int32_t place(const uint8_t *list, int32_t n, uint8_t label) {
  for (int32_t i = 0; i < n; i++)
    if (list[i] == label) return i;
  return -1;
}

static int64_t product(const plan *p, const letters *l) {
  int64_t n = 1;
  for (int32_t i = 0; i < l->n; i++) n *= p->size[l->label[i]];
  return n;
}

/* Why not, or NULL. */
static const char *sort(const hone_node *n, const hn_einsum *e, plan *p) {
  memset(p, 0, sizeof *p);
  for (int k = 0; k < 2; k++) {
    const hn_einsum_term *t = &e->in[k], *other = &e->in[1 - k];
    const hone_tensor_desc *d = &n->in[k]->desc;
    for (int32_t i = 0; i < t->n; i++) {
      const uint8_t label = t->label[i];
      const bool shared = place(other->label, other->n, label) >= 0,
                 kept = place(e->out.label, e->out.n, label) >= 0;
      if (place(t->label, i, label) >= 0) return "a diagonal is taken";
      if (d->dim[i] < 1 || d->dim[i] != e->dim[label]) return "a dimension is empty or broadcast";
      if (!shared && !kept) return "a letter is summed in one operand alone";
      p->size[label] = d->dim[i];
      if (!shared || kept || k) continue;
      p->summed.label[p->summed.n++] = label;
    }
  }
  for (int32_t i = 0; i < e->out.n; i++) {
    const uint8_t label = e->out.label[i];
    const bool a = place(e->in[0].label, e->in[0].n, label) >= 0,
               b = place(e->in[1].label, e->in[1].n, label) >= 0;
    letters *to = a && b ? &p->batch : a ? &p->rows : &p->columns;
    to->label[to->n++] = label;
  }
  if (!p->summed.n) return "nothing is summed";
  return p->batch.n + 2 > HONE_MAX_RANK ? "too many dimensions" : NULL;
}

static letters join(const letters *a, const letters *b, const letters *c) {
  letters r = *a;
  for (int32_t i = 0; i < b->n; i++) r.label[r.n++] = b->label[i];
  for (int32_t i = 0; c && i < c->n; i++) r.label[r.n++] = c->label[i];
  return r;
}

/* v, whose dimensions carry `from`, in the order `to`. */
static hn_value *turned(hn_pass_context *ctx, hone_node *n, hn_value *v, const letters *from,
                        const letters *to) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  bool same = true;
  for (int32_t i = 0; i < to->n; i++) {
    perm[i] = place(from->label, from->n, to->label[i]);
    dim[i] = v->desc.dim[perm[i]];
    same = same && perm[i] == i;
  }
  if (same) return v;
  const hone_tensor_desc like = hone_desc(v->desc.dtype, to->n, dim);
  hone_node *t = hn_make_node(ctx, n, "Transpose", &v, 1, &like);
  if (!t || !hn_inherit(ctx, t, n)) return NULL;
  if (!hn_node_set_ints(t, "perm", perm, (size_t)to->n)) return hn_pass_memory(ctx), NULL;
  return t->out[0];
}

static hn_value *shaped(hn_pass_context *ctx, hone_node *n, hn_value *v, const int64_t *dim, int32_t rank) {
  const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, dim);
  if (hn_same_shape(&like, &v->desc)) return v;
  hn_value *shape = hn_make_ints(ctx, v->name, dim, rank);
  hone_node *r = shape ? hn_make_node(ctx, n, "Reshape", (hn_value *const[]){v, shape}, 2, &like) : NULL;
  return r && hn_inherit(ctx, r, n) ? r->out[0] : NULL;
}

/* Operand v as [batch..., one, other]. */
static hn_value *matrix(hn_pass_context *ctx, hone_node *n, hn_value *v, const hn_einsum_term *t,
                        const plan *p, const letters *one, const letters *other) {
  letters from = {.n = t->n}, to = join(&p->batch, one, other);
  int64_t dim[HONE_MAX_RANK];
  memcpy(from.label, t->label, (size_t)t->n);
  for (int32_t i = 0; i < p->batch.n; i++) dim[i] = p->size[p->batch.label[i]];
  dim[p->batch.n] = product(p, one), dim[p->batch.n + 1] = product(p, other);
  v = turned(ctx, n, v, &from, &to);
  return v ? shaped(ctx, n, v, dim, p->batch.n + 2) : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  hn_einsum e;
  plan p;
  if (!hn_is_op(n, "Einsum") || n->n_in != 2 || !n->in[0] || !n->in[1]) return HN_PASS_NONE;
  const hone_tensor_desc *in[2] = {&n->in[0]->desc, &n->in[1]->desc};
  /* Einsum has types of fewer bits, too, which MatMul has not. Wide ones have products on processors; GPUs
   * have kernels of their Einsum, and a file that is written may go to either. */
  const uint32_t narrow =
                     HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16) | HONE_TYPES(HONE_DTYPE_BF16),
                 wide = HONE_TYPES(HONE_DTYPE_F64) | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_U32) |
                        HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_U64),
                 products = ctx->options->lowered && ctx->options->processor ? narrow | wide : narrow;
  if (!in[0]->dtype || !(products & HONE_TYPES(in[0]->dtype))) return HN_PASS_NONE;
  if (!hone_desc_known(in[0]) || !hone_desc_known(in[1])) return hn_pass_miss(ctx, "shapes are not known");
  if (hn_einsum_parse(n, in, 2, &e, NULL)) return HN_PASS_NONE;
  const char *why = sort(n, &e, &p);
  if (why) return hn_pass_miss(ctx, "%s", why);
  int64_t dim[2 * HONE_MAX_RANK];
  for (int32_t i = 0; i < p.batch.n; i++) dim[i] = p.size[p.batch.label[i]];
  dim[p.batch.n] = product(&p, &p.rows), dim[p.batch.n + 1] = product(&p, &p.columns);
  hn_value *y = n->out[0];
  const hone_tensor_desc like = hone_desc(in[0]->dtype, p.batch.n + 2, dim);
  hn_value *a = matrix(ctx, n, n->in[0], &e.in[0], &p, &p.rows, &p.summed);
  hn_value *b = a ? matrix(ctx, n, n->in[1], &e.in[1], &p, &p.summed, &p.columns) : NULL;
  hone_node *m = b ? hn_make_node(ctx, n, "MatMul", (hn_value *const[]){a, b}, 2, &like) : NULL;
  if (!m || !hn_inherit(ctx, m, n)) return HN_PASS_FAIL;
  const letters made = join(&p.batch, &p.rows, &p.columns);
  letters want = {.n = e.out.n};
  memcpy(want.label, e.out.label, (size_t)e.out.n);
  for (int32_t i = 0; i < made.n; i++) dim[i] = p.size[made.label[i]];
  hn_value *r = shaped(ctx, n, m->out[0], dim, made.n);
  if (r) r = turned(ctx, n, r, &made, &want);
  if (!r) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "a product with %d dimensions of batch", (int)p.batch.n);
  if (!hn_replace(ctx, y, r)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(einsum_to_matmul) = {
    .name = "einsum_to_matmul",
    .level = 2,
    .about = "Einsum(a, b) -> MatMul, between Transpose and Reshape where they are needed",
    .visit = visit,
    .roots = HN_ROOTS("Einsum"),
};
