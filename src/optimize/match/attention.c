#include "optimize/match/attention.h"

#include "optimize/match/read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { Q, K, V, MASK = HN_ATTENTION_MASK, MAX_CHAIN = 16 };
enum { ADDED, KEEPS, DROPS }; /* kinds of masks */

#define NEAR(why, ...) (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), HN_MATCH_NEAR)

/* The only node that reads v; NULL when there are others. */
static hone_node *reader(const hn_value *v) {
  hone_node *n = hn_value_single_use(v) ? v->users.ptr[0].node : NULL;
  return n && n->graph == v->graph ? n : NULL;
}

static bool is_view(const hone_node *n) {
  return n->op && (n->op->flags & HONE_OP_VIEW) && n->n_in && n->in[0] && n->n_out && n->out[0];
}

/* A view that leaves the last two dimensions as they are. */
static bool regroups(const hone_node *n) {
  if (!is_view(n)) return false;
  const hone_tensor_desc *a = &n->in[0]->desc, *b = &n->out[0]->desc;
  return a->rank >= 2 && b->rank >= 2 && a->dim[a->rank - 1] == b->dim[b->rank - 1] &&
         a->dim[a->rank - 2] == b->dim[b->rank - 2];
}

static bool computed(const hn_value *v) { return v && !v->constant && v->desc.dtype == HONE_DTYPE_F32; }

/* Does a product with a computed matrix stand at the upper end of v? (Constant queries are learned ones;
 * constant keys are the weights of a layer.) */
static bool leads_to_product(const hn_value *v, int depth) {
  const hone_node *n = v && depth < MAX_CHAIN && !v->is_output ? v->producer : NULL;
  if (!n || n->graph != v->graph || n->domain[0] || !n->n_in) return false;
  if (hn_is_op(n, "MatMul")) return n->in[0]->desc.dtype == HONE_DTYPE_F32 && computed(n->in[1]);
  if (regroups(n)) return leads_to_product(n->in[0], depth + 1);
  if (hn_is_op(n, "Mul") || hn_is_op(n, "Add"))
    return leads_to_product(n->in[0], depth + 1) || leads_to_product(n->in[1], depth + 1);
  if (hn_is_op(n, "Div") || hn_is_op(n, "Tanh")) return leads_to_product(n->in[0], depth + 1);
  if (hn_is_op(n, "Where"))
    return leads_to_product(n->in[1], depth + 1) || leads_to_product(n->in[2], depth + 1);
  hn_head_mix mix;
  hn_value *from;
  return hn_head_mix_above(v, &mix, NULL, &from) && leads_to_product(from, depth + 1);
}

typedef struct chain {
  hone_node *product;
  double scale;     /* of the product */
  double cap;       /* what Tanh of the scores is multiplied by; 0: there is none */
  uint32_t n_masks; /* in the order from Softmax upwards */
  hn_value *mask[3];
  const hn_value *at[3]; /* the scores where it is applied */
  int64_t kind[3];
  double value[3];
  hn_head_mix mix;
  uint32_t masks_behind; /* between the mix and Softmax */
} chain;

static bool add_mask(chain *c, hn_value *mask, const hn_value *at, int64_t kind, double value) {
  if (c->n_masks == sizeof c->mask / sizeof *c->mask) return false;
  c->mask[c->n_masks] = mask;
  c->at[c->n_masks] = at;
  c->kind[c->n_masks] = kind;
  c->value[c->n_masks++] = value;
  return true;
}

/* From the scores that Softmax reads up to their product. */
static hn_match_result walk_up(hn_value *v, chain *c, hn_node_list *nodes, hone_reason *why) {
  c->scale = 1;
  for (int depth = 0; depth < MAX_CHAIN; depth++) {
    hone_node *n = v->producer;
    double x;
    if (!reader(v)) return NEAR(why, "'%.80s' is read elsewhere, too", v->name);
    if (!hn_node_list_add(nodes, n)) return HN_MATCH_NO;
    if (hn_is_op(n, "MatMul")) {
      c->product = n;
      return HN_MATCH_YES;
    }
    if (regroups(n)) {
      v = n->in[0];
      continue;
    }
    hn_value *mixed;
    if (!c->mix.heads && c->cap == 0 && hn_head_mix_above(v, &c->mix, nodes, &mixed)) {
      const uint32_t heads = c->mix.heads;
      for (uint32_t i = 0; i < heads * heads + heads; i++)
        c->mix.factor[i] = (float)(c->mix.factor[i] * c->scale);
      c->scale = 1;
      c->masks_behind = c->n_masks;
      v = mixed;
      continue;
    }
    if (hn_is_op(n, "Tanh")) {
      if (c->cap != 0 || c->mix.heads || c->scale == 0)
        return NEAR(why, "'%.80s' bends scores once more, or heads that are mixed", n->name);
      c->cap = c->scale, c->scale = 1;
      v = n->in[0];
      continue;
    }
    const bool where = hn_is_op(n, "Where");
    if (c->cap != 0 && (where || hn_is_op(n, "Add")))
      return NEAR(why, "'%.80s' masks scores that Tanh bends", n->name);
    if (!where && !hn_is_op(n, "Mul") && !hn_is_op(n, "Div") && !hn_is_op(n, "Add"))
      return NEAR(why, "'%.80s' mixes heads once more", n->name);
    const int first = where ? 1 : 0;
    const int way = leads_to_product(n->in[first], 0) ? first : first + 1;
    hn_value *scores = n->in[way], *other = n->in[2 * first + 1 - way];
    if (!hn_same_shape(&scores->desc, &v->desc)) return NEAR(why, "'%.80s' makes the scores larger", n->name);
    if (hn_is_op(n, "Mul") || hn_is_op(n, "Div")) {
      if (!hn_constant_scalar(other, &x)) return NEAR(why, "'%.80s' scales by no constant number", n->name);
      c->scale *= hn_is_op(n, "Div") ? 1 / x : x;
    } else if (where) {
      if (!hn_constant_scalar(other, &x)) return NEAR(why, "'%.80s' fills in no constant number", n->name);
      if (!add_mask(c, n->in[0], v, way == 1 ? KEEPS : DROPS, x * c->scale))
        return NEAR(why, "more than three masks");
    } else if (!add_mask(c, other, v, ADDED, c->scale))
      return NEAR(why, "more than three masks");
    v = scores;
  }
  return HN_MATCH_NO;
}

/* Fits the tactics' form: matrices with even distances, in the last dimension without gaps if `dense`. */
static bool even(const hn_modes *m, bool dense) {
  int64_t row, col;
  return hn_modes_single(m, m->rank - 2, &row) && hn_modes_single(m, m->rank - 1, &col) &&
         (!dense || m->dim[m->rank - 1] == 1 || col == 1);
}

/* v broadcast to batch x rows x cols as far up as it can be read in place. */
static bool operand(hn_value *v, const hone_tensor_desc *like, int64_t rows, int64_t cols, bool dense,
                    double *scale, hn_node_list *via, hn_modes *out) {
  int64_t dim[HONE_MAX_RANK];
  const int32_t rank = like->rank;
  const uint32_t nodes = via->n;
  const double before = scale ? *scale : 1;
  memcpy(dim, like->dim, sizeof dim);
  dim[rank - 2] = rows;
  dim[rank - 1] = cols;
  if (hn_modes_trace(v, scale, via, out) && hn_modes_expand(out, rank, dim) && even(out, dense)) return true;
  via->n = nodes;
  if (scale) *scale = before;
  return hn_modes_of(v, out) && hn_modes_expand(out, rank, dim) && even(out, dense);
}

/* Behind the second product: the Transpose that brings the heads together, if it is the only reader. y's
 * modes get their distances in what it makes. */
static hone_node *walk_down(hone_node *product, hn_node_list *nodes, hn_modes *y) {
  hn_modes m;
  hn_value *v = product->out[0];
  hone_node *way[MAX_CHAIN], *n;
  uint32_t steps = 0;
  if (!hn_modes_of(v, y)) return NULL;
  m = *y;
  while ((n = reader(v)) && steps < MAX_CHAIN) {
    way[steps++] = n;
    if (n->n_out != 1 || !n->out[0] || n->in[0] != v || !hone_desc_known(&n->out[0]->desc)) return product;
    if (hn_is_op(n, "Transpose")) break;
    if (!is_view(n) || !hn_modes_reshape(&m, n->out[0]->desc.rank, n->out[0]->desc.dim)) return product;
    v = n->out[0];
  }
  if (!n || !hn_is_op(n, "Transpose") || !hn_modes_transpose(&m, n)) return product;
  /* m's modes are in the order of the result, their strides those of y: exchange the two. */
  hn_modes t = {.base = n->out[0], .rank = 1, .dim = {hone_desc_count(&v->desc)}, .n = m.n};
  int64_t stride = 1;
  for (uint32_t i = m.n; i-- > 0;) {
    uint32_t before = 0;
    for (uint32_t k = 0; k < m.n; k++) before += m.mode[k].stride > m.mode[i].stride;
    t.mode[before] = (hn_mode){m.mode[i].size, stride, 0};
    stride *= m.mode[i].size;
  }
  if (!hn_modes_reshape(&t, y->rank, y->dim) || !even(&t, true)) return product;
  for (uint32_t i = 0; i < steps; i++)
    if (!hn_node_list_add(nodes, way[i])) return product;
  *y = t;
  return n;
}

static void describe(const hn_modes *m, const int64_t *size, int32_t n, const hn_mode_strides *s,
                     bool transposed, hone_tensor_desc *out) {
  int64_t dim[HONE_MAX_RANK], stride[2];
  const int32_t r = m->rank;
  for (int32_t i = 0; i < n; i++) dim[i] = size[i];
  for (int i = 0; i < 2; i++) {
    const int32_t from = r - 2 + (transposed ? 1 - i : i);
    dim[n + i] = m->dim[from];
    hn_modes_single(m, from, &stride[i]);
  }
  *out = hone_desc(m->base->desc.dtype, n + 2, dim);
  for (int32_t i = 0; i < n; i++) out->stride[i] = s->stride[i];
  out->stride[n] = stride[0];
  out->stride[n + 1] = stride[1];
  out->layout = HONE_LAYOUT_STRIDED;
}

static bool softmax_of_rows(const hone_node *n) {
  if (!hn_is_op(n, "Softmax") || !n->in[0] || !n->out[0]) return false;
  const hone_tensor_desc *d = &n->in[0]->desc;
  const int64_t axis = hone_node_int(n, "axis", n->opset < 13 ? 1 : -1);
  return d->dtype == HONE_DTYPE_F32 && hone_desc_known(d) && d->rank >= 2 &&
         (axis == -1 || axis == d->rank - 1);
}

/* Where(IsNaN(p), 0, p) when that alone reads p: a row that sees no key gets weights of 0. */
static hone_node *cleared(const hn_value *p, hn_node_list *nodes) {
  double x;
  if (p->is_output || p->users.len != 2) return NULL;
  for (int i = 0; i < 2; i++) {
    hone_node *is_nan = p->users.ptr[i].node, *where = p->users.ptr[1 - i].node;
    if (is_nan->graph == p->graph && where->graph == p->graph && hn_is_op(is_nan, "IsNaN") &&
        hn_is_op(where, "Where") && reader(is_nan->out[0]) == where && where->in[0] == is_nan->out[0] &&
        where->in[2] == p && hn_constant_scalar(where->in[1], &x) && x == 0 && !signbit(x) && where->out[0] &&
        hn_same_shape(&where->out[0]->desc, &p->desc) && hn_node_list_add(nodes, is_nan))
      return where;
  }
  return NULL;
}

/* The MatMul that weighs v by what Softmax makes, or by a mix of it. *nan_to_zero: by 0 where that is no
 * number.
 */
static hone_node *weighing(const hone_node *softmax, hn_node_list *nodes, hn_head_mix *mix,
                           bool *nan_to_zero) {
  const hn_value *p = softmax->out[0];
  *nan_to_zero = false;
  for (int depth = 0; depth < MAX_CHAIN; depth++) {
    hone_node *n = reader(p);
    if (!n && (n = cleared(p, nodes))) {
      if (!hn_node_list_add(nodes, n)) return NULL;
      *nan_to_zero = true;
      p = n->out[0];
      continue;
    }
    if (!n || !n->n_out || !n->out[0] || !hn_node_list_add(nodes, n)) return NULL;
    if (hn_is_op(n, "MatMul")) return n->in[0] == p && n->in[1] != p ? n : NULL;
    const hn_value *mixed = mix->heads ? NULL : hn_head_mix_below(p, mix, nodes);
    if (mixed) {
      p = mixed;
      continue;
    }
    if (!regroups(n) || n->in[0] != p) return NULL;
    p = n->out[0];
  }
  return NULL;
}

static bool read_by_product(const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++)
    if (hn_is_op(v->users.ptr[i].node, "MatMul") && v->users.ptr[i].node->in[0] == v) return true;
  return false;
}

hn_match_result hn_attention_match(hone_node *softmax, hn_attention_hit *hit, hone_reason *why) {
  chain c = {0};
  hn_node_list via = {0};
  hn_modes m[HN_ATTENTION_INPUTS], y;
  *hit = (hn_attention_hit){0};
  if (!softmax_of_rows(softmax)) return HN_MATCH_NO;
  hone_node *second = weighing(softmax, &hit->nodes, &hit->behind, &hit->nan_to_zero);
  if ((!second && !read_by_product(softmax->out[0])) || !leads_to_product(softmax->in[0], 0))
    return HN_MATCH_NO;
  if (!second) {
    hit->nodes.n = 0;
    hn_node_list_add(&hit->nodes, softmax);
    return NEAR(why, "'%.80s' is read elsewhere, too, or is an output", softmax->out[0]->name);
  }
  hn_node_list_add(&hit->nodes, softmax);
  hn_match_result r = walk_up(softmax->in[0], &c, &hit->nodes, why);
  if (r != HN_MATCH_YES) return r;
  const hone_tensor_desc *first = &c.product->out[0]->desc, *out = &second->out[0]->desc,
                         *q = &c.product->in[0]->desc;
  hn_value *v = second->in[1];
  if (!computed(v) || !hone_desc_known(first) || !hone_desc_known(out) || !hone_desc_known(q) ||
      q->rank < 2 || c.product->in[1]->desc.rank < 2 || v->desc.rank < 2 || first->rank < 2 || out->rank < 2)
    return NEAR(why, "not two products of computed matrices of known shape");
  const int64_t rows = first->dim[first->rank - 2], keys = first->dim[first->rank - 1],
                depth = q->dim[q->rank - 1], depth_v = out->dim[out->rank - 1];
  if (out->dim[out->rank - 2] != rows) return NEAR(why, "the two products differ in rows");
  hit->before = c.mix;
  hit->masks_before = c.n_masks - c.masks_behind;
  if (hit->before.heads && hit->behind.heads && hit->before.heads != hit->behind.heads)
    return NEAR(why, "%u heads are mixed before Softmax, %u behind it", hit->before.heads, hit->behind.heads);
  if (c.cap != 0 && hit->behind.heads) return NEAR(why, "heads are mixed, and scores bent by Tanh");
  if (hit->nan_to_zero && (hit->before.heads || hit->behind.heads))
    return NEAR(why, "heads are mixed, and rows that see no key are cleared");
  double scale = c.scale;
  if (!operand(c.product->in[0], first, rows, depth, true, &scale, &via, &m[Q]) ||
      !operand(c.product->in[1], first, depth, keys, false, &scale, &via, &m[K]) ||
      !operand(v, out, keys, depth_v, true, NULL, &via, &m[V]))
    return NEAR(why, "an operand is empty or has too many dimensions");
  hit->n_in = MASK + c.n_masks;
  for (uint32_t i = 0; i < c.n_masks; i++) {
    /* From the product downwards: the last one found is applied first. */
    const uint32_t k = c.n_masks - 1 - i;
    if (!operand(c.mask[k], &c.at[k]->desc, rows, keys, false, NULL, &via, &m[MASK + i]))
      return NEAR(why, "'%.80s' does not broadcast to the scores", c.mask[k]->name);
    hit->mask_kind[i] = c.kind[k];
    hit->mask_value[i] = (float)c.value[k];
  }
  hit->root = walk_down(second, &hit->nodes, &y);
  if (!hit->root) return NEAR(why, "an operand is empty or has too many dimensions");
  const hn_modes *all[HN_ATTENTION_INPUTS + 1];
  hn_mode_strides strides[HN_ATTENTION_INPUTS + 1];
  int64_t size[HONE_MAX_RANK];
  for (uint32_t i = 0; i < hit->n_in; i++) all[i] = &m[i];
  all[hit->n_in] = &y;
  const int32_t n = hn_modes_common(all, hit->n_in + 1, size, strides);
  if (n < 0) return NEAR(why, "a mask or operand is spread over the batch in another way");
  for (uint32_t i = 0; i < hit->n_in; i++) {
    hit->in[i] = (hn_strided){.base = m[i].base, .offset = m[i].offset};
    describe(&m[i], size, n, &strides[i], i == K, &hit->in[i].desc);
  }
  describe(&y, size, n, &strides[hit->n_in], false, &hit->out);
  hit->scale = (float)scale;
  hit->cap = (float)c.cap;
  hn_nodes_own(&hit->nodes, &via, hit->in, hit->n_in);
  return HN_MATCH_YES;
}

static const hone_node *softmax_above(const hn_value *v) {
  for (int depth = 0; v && depth < MAX_CHAIN; depth++) {
    const hone_node *n = v->producer;
    if (!n || n->graph != v->graph || !n->n_in) return NULL;
    if (hn_is_op(n, "Softmax")) return n;
    hn_head_mix mix;
    hn_value *from;
    if (hn_head_mix_above(v, &mix, NULL, &from)) {
      v = from;
      continue;
    }
    const bool where = hn_is_op(n, "Where") && n->n_in == 3; /* that clears weights */
    if (!where && !hn_is_op(n, "MatMul") && !hn_is_op(n, "Transpose") && !is_view(n)) return NULL;
    v = n->in[where ? 2 : 0];
  }
  return NULL;
}

static const hone_node *softmax_below(const hn_value *v) {
  for (int depth = 0; v && depth < MAX_CHAIN; depth++) {
    const hone_node *n = reader(v);
    if (!n || !n->n_out) return NULL;
    if (hn_is_op(n, "Softmax")) return n;
    if (hn_is_op(n, "MatMul") && n->in[1] == v) {
      const hone_node *above = softmax_above(n->in[0]);
      if (above) return above;
    }
    v = n->out[0];
  }
  return NULL;
}

bool hn_attention_moves(hone_node *n) {
  hn_attention_hit hit;
  hone_reason why;
  if (!n->n_out || !n->out[0]) return false;
  const hone_node *around[] = {softmax_below(n->out[0]), softmax_above(n->out[0])};
  for (size_t i = 0; i < sizeof around / sizeof *around; i++)
    if (around[i] && hn_attention_match((hone_node *)(uintptr_t)around[i], &hit, &why) == HN_MATCH_YES &&
        hn_node_list_has(&hit.nodes, n))
      return true;
  return false;
}
