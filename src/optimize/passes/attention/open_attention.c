/* Attention(q, k, v, mask, past...)  ->  MatMul(Softmax(scale MatMul(q, k') + mask), v)
 *
 * The operator, spelled out as exporters did before it was one: lowering makes one step of that
 * (match/attention.h). Heads that share keys are a dimension of their own, over which keys and values
 * broadcast. Keys that a query must not see get the least finite number; a query that sees none, which the
 * definition gives zeros, is looked for where the mask is not known. */
#include "optimize/passes/common/pass.h"

#include <float.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { MOST_PAIRS = 1 << 26 };

typedef struct heads {
  bool packed; /* [batch, tokens, heads x size] */
  int64_t batch, heads, tokens, size;
} heads;

typedef struct plan {
  heads of[3];
  int64_t before, keys, each; /* each: heads of Q for one of K */
  bool causal;
  int64_t left, right;
  hone_node *n;
} plan;

static heads heads_of(const hone_node *n, const hn_value *v, const char *attr) {
  const int64_t *d = v->desc.dim, count = hone_node_int(n, attr, 1);
  if (v->desc.rank == 4) return (heads){false, d[0], d[1], d[2], d[3]};
  return (heads){true, d[0], count, d[1], d[2] / count};
}

static bool wanted(const hone_node *n, uint32_t i) {
  return i < n->n_out && n->out[i] && hn_value_needed(n->out[i]);
}

/* A cache that nothing is in yet. */
static bool no_past(const hone_tensor_desc *d, uint32_t i) {
  return (i == PAST_KEY || i == PAST_VALUE) && d->rank == 4 && d->dim[2] == 0;
}

static const char *why_not(const hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++) {
    const hone_tensor_desc *d = n->in[i] ? &n->in[i]->desc : NULL;
    if (!d) continue;
    if (!hone_desc_known(d) || (hone_desc_count(d) < 1 && !no_past(d, i)))
      return "a shape is not known, or empty";
    if (i != MASK && i != LENGTHS && d->dtype != HONE_DTYPE_F32) return "an operand is not f32";
  }
  const hn_value *mask = hn_in(n, MASK);
  if (mask && mask->desc.dtype != HONE_DTYPE_F32 && mask->desc.dtype != HONE_DTYPE_BOOL)
    return "the mask is neither f32 nor bool";
  if (hn_in(n, LENGTHS)) return "every input of the batch has its own number of keys";
  return wanted(n, 3) ? "the scores are read, too" : NULL;
}

static void read(hone_node *n, plan *p) {
  const hn_value *past = hn_in(n, PAST_KEY);
  *p = (plan){.n = n,
              .of = {heads_of(n, n->in[Q], "q_num_heads"), heads_of(n, n->in[K], "kv_num_heads"),
                     heads_of(n, n->in[V], "kv_num_heads")},
              .before = past ? past->desc.dim[2] : 0,
              .causal = hone_node_int(n, "is_causal", 0) != 0,
              .left = hone_node_int(n, "left_window_size", -1),
              .right = hone_node_int(n, "right_window_size", -1)};
  p->keys = p->before + p->of[K].tokens;
  p->each = p->of[Q].heads / p->of[K].heads;
}

/* ---- nodes. NULL: out of memory. */

static hn_value *make(hn_pass_context *ctx, const plan *p, const char *op, hn_value *const *in, uint32_t n_in,
                      hone_dtype type, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(type, rank, dim);
  return hn_make_newest(ctx, p->n, op, in, n_in, &like);
}

static hn_value *shaped(hn_pass_context *ctx, const plan *p, hn_value *v, int32_t rank, const int64_t *dim) {
  const hone_tensor_desc like = hone_desc(v->desc.dtype, rank, dim);
  if (hn_same_shape(&like, &v->desc)) return v;
  hn_value *shape = hn_make_ints(ctx, v->name, dim, rank);
  return shape ? make(ctx, p, "Reshape", (hn_value *const[]){v, shape}, 2, v->desc.dtype, rank, dim) : NULL;
}

static hn_value *transposed(hn_pass_context *ctx, const plan *p, hn_value *v, const int64_t *perm) {
  int64_t dim[HONE_MAX_RANK];
  const int32_t rank = v->desc.rank;
  for (int32_t i = 0; i < rank; i++) dim[i] = v->desc.dim[perm[i]];
  hn_value *t = make(ctx, p, "Transpose", &v, 1, v->desc.dtype, rank, dim);
  if (t && !hn_node_set_ints(t->producer, "perm", perm, (size_t)rank)) return hn_pass_memory(ctx), NULL;
  return t;
}

/* As [batch, heads, tokens, size]. */
static hn_value *apart(hn_pass_context *ctx, const plan *p, hn_value *v, const heads *h) {
  if (!h->packed) return v;
  v = shaped(ctx, p, v, 4, (const int64_t[]){h->batch, h->tokens, h->heads, h->size});
  return v ? transposed(ctx, p, v, (const int64_t[]){0, 2, 1, 3}) : NULL;
}

/* Keys or values with those of earlier calls before them, which may also be handed on. */
static hn_value *with_past(hn_pass_context *ctx, const plan *p, int which) {
  hone_node *n = p->n;
  const heads *h = &p->of[which];
  hn_value *v = apart(ctx, p, n->in[which], h), *past = hn_in(n, which == K ? PAST_KEY : PAST_VALUE);
  const int64_t dim[4] = {h->batch, h->heads, p->keys, h->size};
  if (v && past && p->before) {
    v = make(ctx, p, "Concat", (hn_value *const[]){past, v}, 2, HONE_DTYPE_F32, 4, dim);
    if (v && !hn_node_set_int(v->producer, "axis", 2)) return hn_pass_memory(ctx), NULL;
  }
  const uint32_t present = which == K ? 1 : 2;
  if (!v || !wanted(n, present)) return v;
  hn_value *kept = make(ctx, p, "Identity", &v, 1, HONE_DTYPE_F32, 4, dim);
  return kept && hn_replace(ctx, n->out[present], kept) ? v : NULL;
}

/* [batch, heads, a, b] with the heads that share keys as a dimension of their own; heads 1: of all. */
static hn_value *grouped(hn_pass_context *ctx, const plan *p, hn_value *v) {
  const int64_t *d = v->desc.dim;
  if (p->each == 1 || v->desc.rank < 3) return v;
  const int32_t lead = v->desc.rank - 3;
  const bool all = d[lead] == p->of[Q].heads;
  const int64_t dim[5] = {lead ? d[0] : 1, all ? p->of[K].heads : d[lead], all ? p->each : 1, d[lead + 1],
                          d[lead + 2]};
  return shaped(ctx, p, v, 5, dim);
}

/* ---- masks */

static bool sees(const plan *p, int64_t q, int64_t k) {
  const int64_t place = p->before + q;
  return !(p->causal && k > place) && !(p->left >= 0 && place - k > p->left) &&
         !(p->right >= 0 && k - place > p->right);
}

/* Which keys a query sees by its place: bool[queries, keys]. *blind: some see none. */
static hn_value *places(hn_pass_context *ctx, const plan *p, bool *blind) {
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_BOOL, 2, (const int64_t[]){p->of[Q].tokens, p->keys});
  void *data;
  hn_value *v = hn_make_room(ctx, p->n->out[0]->name, &d, &data);
  for (int64_t q = 0; q < p->of[Q].tokens && v; q++) {
    bool any = false;
    for (int64_t k = 0; k < p->keys; k++) any |= ((uint8_t *)data)[q * p->keys + k] = sees(p, q, k);
    *blind |= !any;
  }
  return v;
}

/* Whether every query is known to see a key, by a constant mask alone. */
static bool leaves_some(const hn_value *mask) {
  const hone_tensor *t = hn_known(mask);
  if (!t) return false;
  const int64_t n = t->desc.dim[t->desc.rank - 1], rows = hone_desc_count(&t->desc) / n;
  for (int64_t r = 0; r < rows; r++) {
    bool any = false;
    for (int64_t k = r * n; k < (r + 1) * n && !any; k++)
      any = t->desc.dtype == HONE_DTYPE_BOOL ? ((const uint8_t *)t->data)[k] != 0
                                             : !(((const float *)t->data)[k] <= -INFINITY); /* NaN is none */
    if (!any) return false;
  }
  return true;
}

static hn_value *number(hn_pass_context *ctx, const plan *p, double v) {
  const hone_tensor_desc one = hone_desc(HONE_DTYPE_F32, 0, NULL);
  return hn_make_floats(ctx, p->n->out[0]->name, &one, &v);
}

/* For each query whether the mask leaves it no key: [..., queries, 1]. NaN leaves it one. */
static hn_value *blind_by(hn_pass_context *ctx, const plan *p, hn_value *mask) {
  int64_t dim[HONE_MAX_RANK];
  const int32_t rank = mask->desc.rank;
  for (int32_t i = 0; i < rank; i++) dim[i] = i == rank - 1 ? 1 : mask->desc.dim[i];
  hn_value *v = mask;
  if (mask->desc.dtype == HONE_DTYPE_BOOL) {
    v = make(ctx, p, "Cast", &v, 1, HONE_DTYPE_F32, rank, mask->desc.dim);
    if (v && !hn_node_set_int(v->producer, "to", HONE_DTYPE_F32)) return hn_pass_memory(ctx), NULL;
  }
  const bool axes = hn_model_opset(ctx->model, "") >= 18;
  const int64_t last = rank - 1;
  hn_value *in[2] = {v, v && axes ? hn_make_ints(ctx, mask->name, &last, 1) : NULL};
  if (!v || (axes && !in[1])) return NULL;
  v = make(ctx, p, "ReduceMax", in, axes ? 2 : 1, HONE_DTYPE_F32, rank, dim);
  if (v && !axes && !hn_node_set_ints(v->producer, "axes", &last, 1)) return hn_pass_memory(ctx), NULL;
  hn_value *least = v ? number(ctx, p, mask->desc.dtype == HONE_DTYPE_BOOL ? 1 : -FLT_MAX) : NULL;
  return least ? make(ctx, p, "Less", (hn_value *const[]){v, least}, 2, HONE_DTYPE_BOOL, rank, dim) : NULL;
}

typedef struct masks {
  hn_value *added; /* f32 */
  hn_value *keeps; /* bool: what a query sees by its place and by the mask */
  hn_value *blind; /* bool[..., queries, 1]: whether a query sees nothing; NULL: each sees something */
} masks;

static void broadcast(const hone_tensor_desc *a, const hone_tensor_desc *b, int32_t *rank, int64_t *dim) {
  hone_tensor_desc all = *a;
  hn_broadcast_dims(&all, b, NULL);
  *rank = all.rank;
  memcpy(dim, all.dim, sizeof all.dim);
}

static bool make_masks(hn_pass_context *ctx, const plan *p, masks *m) {
  hn_value *mask = hn_in(p->n, MASK), *by_place = NULL;
  bool blind = false;
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
  *m = (masks){0};
  if (p->causal || p->left >= 0 || p->right >= 0) {
    by_place = places(ctx, p, &blind);
    if (!by_place) return false;
  }
  if (mask && !(mask = grouped(ctx, p, mask))) return false;
  const bool checked = mask && !by_place && leaves_some(mask);
  if (mask && mask->desc.dtype == HONE_DTYPE_BOOL) {
    m->keeps = mask;
    if (by_place) {
      broadcast(&mask->desc, &by_place->desc, &rank, dim);
      m->keeps = make(ctx, p, "And", (hn_value *const[]){mask, by_place}, 2, HONE_DTYPE_BOOL, rank, dim);
    }
    return m->keeps && (checked || (m->blind = blind_by(ctx, p, m->keeps)));
  }
  m->keeps = by_place;
  if (!mask) return !blind || (m->blind = blind_by(ctx, p, by_place));
  hn_value *low = number(ctx, p, -FLT_MAX), *with = mask;
  m->added = low ? make(ctx, p, "Max", (hn_value *const[]){mask, low}, 2, HONE_DTYPE_F32, mask->desc.rank,
                        mask->desc.dim)
                 : NULL;
  if (!m->added || checked) return m->added != NULL;
  if (by_place) {
    hn_value *out = number(ctx, p, -INFINITY);
    broadcast(&mask->desc, &by_place->desc, &rank, dim);
    with = out ? make(ctx, p, "Where", (hn_value *const[]){by_place, mask, out}, 3, HONE_DTYPE_F32, rank, dim)
               : NULL;
  }
  return with && (m->blind = blind_by(ctx, p, with));
}

/* ---- all of it */

static hn_value *scores(hn_pass_context *ctx, const plan *p, hn_value *q, hn_value *k, const masks *m) {
  const hone_node *n = p->n;
  const int32_t rank = q->desc.rank;
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < rank; i++) {
    perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    dim[i] = i == rank - 1 ? p->keys : q->desc.dim[i];
  }
  const double cap = (double)hone_node_float(n, "softcap", 0),
               scale = hone_node_has(n, "scale") ? (double)hone_node_float(n, "scale", 1)
                                                 : 1 / sqrt((double)p->of[Q].size);
  k = transposed(ctx, p, k, perm);
  hn_value *v = k ? make(ctx, p, "MatMul", (hn_value *const[]){q, k}, 2, HONE_DTYPE_F32, rank, dim) : NULL,
           *by = v ? number(ctx, p, scale) : NULL;
  v = by ? make(ctx, p, "Mul", (hn_value *const[]){v, by}, 2, HONE_DTYPE_F32, rank, dim) : NULL;
  if (v && cap > 0) {
    hn_value *c = number(ctx, p, cap);
    v = c ? make(ctx, p, "Div", (hn_value *const[]){v, c}, 2, HONE_DTYPE_F32, rank, dim) : NULL;
    if (v) v = make(ctx, p, "Tanh", &v, 1, HONE_DTYPE_F32, rank, dim);
    if (v) v = make(ctx, p, "Mul", (hn_value *const[]){v, c}, 2, HONE_DTYPE_F32, rank, dim);
  }
  if (v && m->added) v = make(ctx, p, "Add", (hn_value *const[]){v, m->added}, 2, HONE_DTYPE_F32, rank, dim);
  if (v && m->keeps) {
    hn_value *out = number(ctx, p, -FLT_MAX);
    v = out ? make(ctx, p, "Where", (hn_value *const[]){m->keeps, v, out}, 3, HONE_DTYPE_F32, rank, dim)
            : NULL;
  }
  if (!v) return NULL;
  v = make(ctx, p, "Softmax", &v, 1, HONE_DTYPE_F32, rank, dim);
  if (v && !hn_node_set_int(v->producer, "axis", rank - 1)) return hn_pass_memory(ctx), NULL;
  return v;
}

static hn_value *rewrite(hn_pass_context *ctx, const plan *p) {
  const heads *of = p->of;
  int64_t dim[5] = {of[Q].batch, of[K].heads, p->each, of[Q].tokens, of[V].size};
  masks m;
  hn_value *q = apart(ctx, p, p->n->in[Q], &of[Q]), *k = q ? with_past(ctx, p, K) : NULL,
           *v = k ? with_past(ctx, p, V) : NULL;
  if (!v || !make_masks(ctx, p, &m)) return NULL;
  const bool groups = p->each > 1;
  if (groups) {
    q = shaped(ctx, p, q, 5, (const int64_t[]){of[Q].batch, of[K].heads, p->each, of[Q].tokens, of[Q].size});
    if (q) k = shaped(ctx, p, k, 5, (const int64_t[]){of[K].batch, of[K].heads, 1, p->keys, of[K].size});
    if (k) v = shaped(ctx, p, v, 5, (const int64_t[]){of[V].batch, of[V].heads, 1, p->keys, of[V].size});
    if (!q || !k || !v) return NULL;
  } else {
    dim[1] = of[Q].heads, dim[2] = of[Q].tokens, dim[3] = of[V].size;
  }
  const int32_t rank = groups ? 5 : 4;
  hn_value *w = scores(ctx, p, q, k, &m),
           *y = w ? make(ctx, p, "MatMul", (hn_value *const[]){w, v}, 2, HONE_DTYPE_F32, rank, dim) : NULL;
  if (y && of[Q].packed) {
    y = transposed(ctx, p, y, groups ? (const int64_t[]){0, 3, 1, 2, 4} : (const int64_t[]){0, 2, 1, 3});
    if (y && m.blind) { /* the same order */
      const int32_t r = m.blind->desc.rank;
      int64_t full[5], *perm = groups ? (int64_t[]){0, 3, 1, 2, 4} : (int64_t[]){0, 2, 1, 3};
      for (int32_t i = 0; i < rank; i++) full[i] = i < rank - r ? 1 : m.blind->desc.dim[i - rank + r];
      m.blind = shaped(ctx, p, m.blind, rank, full);
      if (m.blind) m.blind = transposed(ctx, p, m.blind, perm);
      if (!m.blind) return NULL;
    }
  }
  if (y && m.blind) {
    hn_value *none = number(ctx, p, 0);
    y = none ? make(ctx, p, "Where", (hn_value *const[]){m.blind, none, y}, 3, HONE_DTYPE_F32, rank,
                    y->desc.dim)
             : NULL;
  }
  return y ? shaped(ctx, p, y, p->n->out[0]->desc.rank, p->n->out[0]->desc.dim) : NULL;
}

static hn_pass_result visit(hn_pass_context *ctx, hone_node *n) {
  if (!ctx->options->lowered || !hn_is_op(n, "Attention") || !n->op || n->n_in < 3) return HN_PASS_NONE;
  const char *why = why_not(n);
  if (why) return hn_pass_miss(ctx, "%s", why);
  plan p;
  read(n, &p);
  const hn_value *mask = hn_in(n, MASK);
  if (mask && (mask->desc.rank < 1 || mask->desc.dim[mask->desc.rank - 1] < p.keys))
    if (mask->desc.rank < 1 || mask->desc.dim[mask->desc.rank - 1] != 1 || p.keys != 1)
      return hn_pass_miss(ctx, "the mask is shorter than the keys");
  if (p.of[Q].tokens > MOST_PAIRS / p.keys) return hn_pass_miss(ctx, "a mask would be too large");
  hn_value *y = rewrite(ctx, &p);
  if (!y) return HN_PASS_FAIL;
  hn_pass_hit(ctx, "two products around a Softmax");
  if (!hn_replace(ctx, n->out[0], y)) return HN_PASS_FAIL;
  hn_remove_unread(n, 0);
  return HN_PASS_HIT;
}

HN_PASS(open_attention) = {
    .name = "open_attention",
    .level = 1,
    .about = "Attention -> MatMul, Softmax, MatMul, which lowering fuses",
    .visit = visit,
    .roots = HN_ROOTS("Attention"),
};
