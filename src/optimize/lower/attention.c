/* Attention, where a tactic takes it: its nodes become one unit, and a QuantizeLinear behind them as well,
 * and on accelerators what dequantises its operands: then it reads their codes. */
#include "optimize/lower/codes.h"
#include "optimize/match/attention.h"

#include "base/error.h"

#include <string.h>

enum { OPERANDS = 3 };

static bool mixes(const hn_attention_hit *h) { return h->before.heads || h->behind.heads; }

static bool set_mix(hone_node *n, const char *name, const hn_head_mix *m) {
  return !m->heads || (hn_node_set_int(n, "heads", m->heads) &&
                       hn_node_set_floats(n, name, m->factor, (size_t)m->heads * m->heads + m->heads));
}

/* Carries the attributes for the tactics; not part of the graph. */
static hone_node *make_node(const hn_lowering *l, const hn_attention_hit *h) {
  hone_node *n = HN_NEW(&h->root->graph->model->arena, hone_node);
  if (!n) return NULL;
  *n = (hone_node){.graph = h->root->graph,
                   .op_type = "FusedAttention",
                   .domain = "",
                   .name = h->root->name,
                   .opset = h->root->opset};
  const uint32_t masks = h->n_in - HN_ATTENTION_MASK;
  int64_t band[2 * HN_ATTENTION_INPUTS], finite[HN_ATTENTION_INPUTS] = {0};
  for (uint32_t i = 0; i < masks; i++) {
    bool so = false;
    if (l->plan->backend->asynchronous || mixes(h) ||
        !hn_attention_band(h, i, band + 2 * i, &so)) /* the processor's own */
      band[2 * i] = 1, band[2 * i + 1] = 0;
    finite[i] = so;
  }
  return hn_node_set_float(n, "scale", h->scale) && hn_node_set_float(n, "cap", h->cap) &&
                 hn_node_set_ints(n, "mask_kind", h->mask_kind, masks) &&
                 hn_node_set_floats(n, "mask_value", h->mask_value, masks) &&
                 hn_node_set_ints(n, "mask_band", band, (size_t)2 * masks) &&
                 hn_node_set_ints(n, "mask_finite", finite, masks) && set_mix(n, "mix_before", &h->before) &&
                 set_mix(n, "mix_behind", &h->behind) &&
                 (!mixes(h) || hn_node_set_int(n, "masks_before", h->masks_before)) &&
                 hn_node_set_int(n, "nan_to_zero", h->nan_to_zero)
             ? n
             : NULL;
}

static int by_order(const hn_lowering *l, const hone_node *a, const hone_node *b) {
  const uint32_t x = l->by_value[a->out[0]->id]->order, y = l->by_value[b->out[0]->id]->order;
  return x < y ? -1 : x > y;
}

static void near(hn_lowering *l, const hn_attention_hit *h, hn_miss m) {
  m.fusion = HN_FUSION_attention;
  for (uint32_t i = 0; i < h->nodes.n && m.n_nodes < HN_MISS_NODES; i++) m.node[m.n_nodes++] = h->nodes.at[i];
  hn_miss_add(&l->plan->misses, &m);
}

/* The scales and zero points of what is dequantised. */
static bool set_codes(hone_node *node, const hone_node *const *from) {
  float scale[OPERANDS];
  int64_t zero[OPERANDS];
  for (uint32_t i = 0; i < OPERANDS; i++) {
    float z;
    hn_codes_of(from[i], from[i]->in[0]->desc.dtype, &scale[i], &z);
    zero[i] = (int64_t)z;
  }
  return hn_node_set_floats(node, "codes_scale", scale, OPERANDS) &&
         hn_node_set_ints(node, "codes_zero", zero, OPERANDS);
}

/* What the nodes become, without them. from: what dequantises the operands, whose codes are read; or NULL. */
static bool describe(hn_lowering *l, const hn_attention_hit *h, const hone_node *const *from, hn_unit *u) {
  hn_attention_hit *kept = HN_NEW(l->temp, hn_attention_hit);
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, h->n_in);
  hone_node *node = make_node(l, h);
  if (!kept || !in || !node || (from && !set_codes(node, from))) return false;
  *kept = *h;
  for (uint32_t i = 0; i < h->n_in; i++) in[i] = h->in[i].base;
  *u = (hn_unit){.kind = HN_UNIT_PATTERN,
                 .anchor = "FusedAttention",
                 .node = node,
                 .n_in = h->n_in,
                 .in = in,
                 .view = kept->in,
                 .out = h->root->out[0],
                 .out_view = &kept->out,
                 .order = l->by_value[h->root->out[0]->id]->order};
  return true;
}

/* u with the QuantizeLinear that alone reads its result, for tactics that make codes; its place is that
 * one's. *taken: some tactic does. */
static bool describe_coded(hn_lowering *l, const hn_attention_hit *h, const hone_node *const *from,
                           hn_unit *u, hn_unit **place, bool *taken) {
  const hone_node *q = hn_only_reader(h->root->out[0]);
  hn_unit coded, *at = hn_to_codes(q) ? l->by_value[q->out[0]->id] : NULL;
  hone_tensor_desc *view = HN_NEW(l->temp, hone_tensor_desc);
  float scale, zero;
  *taken = false;
  if (!at || at->into || at->n_nodes != 1) return true;
  if (!view || !describe(l, h, from, &coded)) return false;
  hone_node *node = (hone_node *)(uintptr_t)coded.node; /* made for this */
  hn_codes_of(q, q->out[0]->desc.dtype, &scale, &zero);
  if (!hn_node_set_float(node, "y_scale", scale) || !hn_node_set_int(node, "y_zero", (int64_t)zero))
    return false;
  *view = *coded.out_view;
  view->dtype = q->out[0]->desc.dtype;
  coded.out = q->out[0], coded.out_view = view, coded.order = at->order;
  coded.nodes = u->nodes, coded.n_nodes = u->n_nodes + 1;
  u->nodes[u->n_nodes] = q;
  *taken = hn_lower_takes(l, &coded);
  if (!*taken) return true;
  *u = coded;
  *place = at;
  return true;
}

/* What the view reads as a part of the rows of another value, of which a Slice makes its base; unchanged
 * where it is none, or does not read whole rows of it as such. */
static void read_rows(hn_strided *view) {
  hn_modes part;
  if (!hn_is_op(view->base->producer, "Slice") || !hn_modes_part(view->base, &part)) return;
  const hone_tensor_desc *from = &part.base->desc, *to = &view->base->desc;
  const int32_t last = to->rank - 1;
  if (last < 0 || from->rank != to->rank || part.offset >= from->dim[last]) return;
  for (int32_t i = 0; i < last; i++)
    if (from->dim[i] != to->dim[i]) return;
  const int64_t row = to->dim[last], whole = from->dim[last];
  if (row < 1) return;
  int64_t within = view->offset % row; /* the last element of a row that is read */
  for (int32_t i = 0; i < view->desc.rank; i++)
    if (view->desc.stride[i] % row) within += view->desc.stride[i] * (view->desc.dim[i] - 1);
  int64_t step;
  if (within >= row || !hn_modes_single(&part, last, &step) || (row > 1 && step != 1)) return;
  for (int32_t i = 0; i < view->desc.rank; i++)
    if (view->desc.stride[i] % row == 0) view->desc.stride[i] = view->desc.stride[i] / row * whole;
  view->offset = view->offset / row * whole + view->offset % row + part.offset;
  view->base = part.base;
}

/* The hit as it reads the codes of Q, K and V, and what dequantises them; false where not all three are codes
 * of one type. */
static bool read_codes(const hn_lowering *l, hn_attention_hit *h, const hone_node *from[OPERANDS]) {
  for (uint32_t i = 0; i < OPERANDS; i++) {
    const hone_node *n = from[i] = hn_of_codes(h->in[i].base);
    if (!n || !l->plan->backend->asynchronous || n->in[0]->desc.dtype != from[0]->in[0]->desc.dtype)
      return false;
    h->in[i].base = n->in[0];
    h->in[i].desc.dtype = n->in[0]->desc.dtype;
    read_rows(&h->in[i]);
  }
  return true;
}

/* Whether nobody but these nodes reads v. */
static bool read_within(const hn_attention_hit *h, const hn_value *v) {
  for (size_t i = 0; i < v->users.len; i++)
    if (!hn_node_list_has(&h->nodes, v->users.ptr[i].node)) return false;
  return !v->is_output;
}

/* n among u's nodes, in the order of what they make; false where another pattern has it. */
static bool add_node(const hn_lowering *l, hn_unit *u, const hone_node *n) {
  const hn_unit *part = l->by_value[n->out[0]->id];
  if (part->n_nodes != 1 || part->into) return false;
  uint32_t at = u->n_nodes++;
  for (; at > 0 && by_order(l, u->nodes[at - 1], n) > 0; at--) u->nodes[at] = u->nodes[at - 1];
  u->nodes[at] = n;
  return true;
}

/* The unit, and where its place is, with what is quantised and dequantised around it as far as a tactic takes
 * that; false when memory is short. from: of codes (read_codes), or NULL. *miss: what is in the way. */
static bool choose_unit(hn_lowering *l, const hn_attention_hit *h, const hone_node *const *from, hn_unit *u,
                        hn_unit **place, bool *taken, hn_miss *miss) {
  /* each operand's DequantizeLinear and Slice, and the QuantizeLinear of the result */
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, h->nodes.n + 2 * OPERANDS + 1);
  *taken = false;
  if (!nodes || !describe(l, h, from, u)) return false;
  u->nodes = nodes, u->n_nodes = 0;
  for (uint32_t i = 0; i < h->nodes.n; i++)
    if (!add_node(l, u, h->nodes.at[i])) {
      *miss = (hn_miss){.why = HN_MISS_TAKEN, .other = h->nodes.at[i]};
      return true;
    }
  for (uint32_t i = 0; from && i < OPERANDS; i++) {
    bool there = !read_within(h, from[i]->out[0]);
    for (uint32_t k = 0; k < i; k++) there |= from[k] == from[i];
    if (!there && !add_node(l, u, from[i])) return true;
    const hn_value *codes = from[i]->in[0]; /* a part that is read where it lies */
    if (!there && h->in[i].base != codes && hn_only_reader(codes) && !add_node(l, u, codes->producer))
      return true;
  }
  const hone_node *hidden = hn_lower_hidden(l, u);
  if (hidden) {
    *miss = (hn_miss){.why = HN_MISS_TAKEN, .other = hidden};
    return true;
  }
  if (!describe_coded(l, h, from, u, place, taken)) return false;
  *taken = *taken || hn_lower_takes(l, u);
  if (!*taken) *miss = (hn_miss){.why = HN_MISS_TACTIC};
  return true;
}

static bool make_unit(hn_lowering *l, const hn_attention_hit *h) {
  hn_unit *u = HN_NEW(l->temp, hn_unit), *root = l->by_value[h->root->out[0]->id];
  hn_attention_hit coded = *h;
  const hone_node *from[OPERANDS];
  bool taken = false;
  hn_miss miss = {0};
  if (!u) return false;
  if (read_codes(l, &coded, from) && !choose_unit(l, &coded, from, u, &root, &taken, &miss)) return false;
  if (!taken && !choose_unit(l, h, NULL, u, &root, &taken, &miss)) return false;
  if (!taken) {
    near(l, h, miss);
    return true;
  }
  for (uint32_t i = 0; i < u->n_nodes; i++)
    for (uint32_t o = 0; o < u->nodes[i]->n_out; o++) {
      const hn_value *v = u->nodes[i]->out[o];
      hn_unit **made = v ? &l->by_value[v->id] : NULL;
      if (!made || !*made) continue;
      if (*made != root) (*made)->into = root; /* for the sweep below */
      *made = root;
    }
  *root = *u; /* in its place in the list */
  return true;
}

static bool fuses(const hn_lowering *l) {
  return !l->plan->reference && !l->plan->separate && l->plan->level >= 2 &&
         hn_fuses(l->plan, HN_FUSION_attention);
}

/* Accelerators' tactics know nothing of heads that are mixed, and of scores that are bent. */
static hn_match_result match(const hn_lowering *l, hone_node *softmax, hn_attention_hit *hit,
                             hone_reason *why) {
  const hn_match_result found = hn_attention_match(softmax, hit, why);
  return l->plan->backend->asynchronous && (mixes(hit) || hit->cap != 0) ? HN_MATCH_NO : found;
}

bool hn_attention_predict(hn_lowering *l, const hone_node *softmax, const hone_node *root, hn_estimate *e) {
  hn_attention_hit hit;
  hone_reason why;
  hn_unit u;
  return fuses(l) && match(l, (hone_node *)softmax, &hit, &why) == HN_MATCH_YES && hit.root == root &&
         describe(l, &hit, NULL, &u) && hn_lower_predict(l, &u, e);
}

hone_status hn_lower_attention(hn_lowering *l, hone_error *error) {
  if (!fuses(l)) return HONE_OK;
  hn_attention_hit hit;
  hone_reason why;
  for (size_t i = 0; i < l->units.len; i++) {
    const hn_unit *u = l->units.ptr[i];
    if (u->into || u->kind != HN_UNIT_NODE || strcmp(u->anchor, "Softmax") != 0) continue;
    const hn_match_result found = match(l, (hone_node *)u->node, &hit, &why);
    if (found == HN_MATCH_YES && !make_unit(l, &hit)) return hn_fail_memory(error, sizeof hit, "lowering");
    if (found == HN_MATCH_NEAR)
      near(l, &hit, (hn_miss){.why = HN_MISS_MATCHER, .said = hn_arena_strdup(&l->plan->arena, why.text)});
  }
  size_t kept = 0;
  for (size_t i = 0; i < l->units.len; i++)
    if (!l->units.ptr[i]->into) l->units.ptr[kept++] = l->units.ptr[i];
  l->units.len = kept;
  return HONE_OK;
}
