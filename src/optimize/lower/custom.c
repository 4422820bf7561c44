/* Does a custom operator take the place of the nodes that its pattern describes? */
#include "optimize/lower/pattern_units.h"

#include "optimize/match/read.h"

static void missed(hn_lowering *l, const hn_pattern_hit *h, hn_miss m) {
  m.fusion = HN_FUSION_custom;
  for (uint32_t i = 0; i < h->n_nodes && m.n_nodes < HN_MISS_NODES; i++) m.node[m.n_nodes++] = h->nodes[i];
  hn_miss_add(&l->plan->misses, &m);
}

static hn_unit *unit_of(const hn_lowering *l, const hone_node *n) {
  return n->n_out && n->out[0] ? l->by_value[n->out[0]->id] : NULL;
}

static bool inside(const hn_pattern_hit *h, const hone_node *n) {
  for (uint32_t k = 0; k < h->n_nodes; k++)
    if (h->nodes[k] == n) return true;
  return false;
}

/* Does a product make this input for the pattern's nodes alone? */
static bool of_product(const hn_lowering *l, const hn_pattern_hit *h, const hn_value *x) {
  const hn_unit *u = x && x->producer && !x->constant ? l->by_value[x->id] : NULL;
  if (!u || u->kind != HN_UNIT_NODE || x->is_output || !hn_fusable_anchor(u)) return false;
  for (size_t i = 0; i < x->users.len; i++)
    if (!inside(h, x->users.ptr[i].node)) return false;
  return true;
}

/* One node after the other, each of what the one before made and of nothing else that was made here: what an
 * epilogue takes node by node. */
static bool is_chain(const hn_pattern_hit *h) {
  for (uint32_t k = 1; k < h->n_nodes; k++) {
    uint32_t before = 0, others = 0;
    for (uint32_t i = 0; i < h->nodes[k]->n_in; i++) {
      const hn_value *x = h->nodes[k]->in[i];
      if (!x || !x->producer || !inside(h, x->producer)) continue;
      if (x->producer == h->nodes[k - 1])
        before++;
      else
        others++;
    }
    if (before != 1 || others) return false;
  }
  return true;
}

/* Functions of what a product makes are its epilogue, and cost next to nothing: a chain of them, or what
 * another pattern takes for one function. */
static bool behind_product(const hn_lowering *l, const hn_pattern_hit *h) {
  if (!h->rival && !is_chain(h)) return false;
  for (uint32_t i = 0; i < h->node->n_in; i++) {
    const hn_value *x = h->node->in[i];
    if (!of_product(l, h, x)) continue;
    uint32_t read = 0;
    for (uint32_t k = 0; k < h->nodes[0]->n_in; k++) read += h->nodes[0]->in[k] == x;
    if (h->rival ? i == 0 : read == 1 && x->users.len == 1) return true;
  }
  return false;
}

static bool reads(const hone_node *n, const hn_unit *of) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && n->in[i]->producer == of->node) return true;
  return false;
}

/* The elementwise functions of a match as loops: those that are connected, and of one shape, are one. */
static void add_loops(hn_lowering *l, hn_unit *const *group, uint32_t n, hn_estimate *sum) {
  bool done[HN_PATTERN_LINES] = {false};
  for (uint32_t last = n; last-- > 0;) {
    hn_unit *part[HN_PATTERN_LINES];
    uint32_t first = HN_PATTERN_LINES;
    if (done[last]) continue;
    part[--first] = group[last];
    for (uint32_t k = last; k-- > 0;) {
      bool mine = false;
      for (uint32_t i = first; i < HN_PATTERN_LINES && !done[k]; i++)
        mine |= reads(part[i]->node, group[k]) && hn_same_shape(&part[i]->out->desc, &group[k]->out->desc);
      if (!mine) continue;
      done[k] = true;
      part[--first] = group[k];
    }
    hn_estimate e;
    hn_unit loop = *group[last];
    if (HN_PATTERN_LINES - first > 1) {
      loop.n_absorbed = HN_PATTERN_LINES - first;
      loop.absorbed = part + first;
    }
    if (!hn_lower_predict(l, &loop, &e)) continue;
    sum->seconds += e.seconds;
    sum->predicted += e.predicted;
    sum->measured = sum->measured && e.measured;
  }
}

/* The time of the nodes without the pattern, as far as it can be told beforehand: products and the like by
 * their own tactics with elementwise functions as their epilogues; those alone as one loop, between other
 * nodes as several. False: some of it has no tactic. */
static bool time_apart(hn_lowering *l, const hn_pattern_hit *h, hn_estimate *sum) {
  hn_unit *group[HN_PATTERN_LINES];
  uint32_t n = 0, others = 0;
  bool product = false;
  hn_estimate e;
  for (uint32_t k = 0; k < h->n_nodes; k++)
    if (hn_is_op(h->nodes[k], "Softmax"))
      for (uint32_t i = 0; i < h->n_nodes; i++)
        if (hn_attention_predict(l, h->nodes[k], h->nodes[i], sum)) return true;
  *sum = (hn_estimate){.measured = true};
  for (uint32_t k = 0; k < h->n_nodes; k++) {
    hn_unit *u = unit_of(l, h->nodes[k]);
    if (!u || u->kind == HN_UNIT_VIEW) continue;
    if (u->kind == HN_UNIT_POINTWISE) {
      group[n++] = u;
      continue;
    }
    others++;
    product |= hn_fusable_anchor(u);
    if (!hn_lower_predict(l, u, &e)) return false;
    sum->seconds += e.seconds;
    sum->predicted += e.predicted;
    sum->measured = sum->measured && e.measured;
  }
  if (!n || product || behind_product(l, h)) return true;
  if (others) {
    add_loops(l, group, n, sum);
    return true;
  }
  hn_unit loop = *group[n - 1];
  if (n > 1) {
    loop.n_absorbed = n;
    loop.absorbed = group;
  }
  return hn_lower_predict(l, &loop, sum);
}

static const hn_value *unknown_value(const hn_pattern_hit *h) {
  for (uint32_t k = 0; k < h->n_nodes; k++)
    for (uint32_t i = 0; i < h->nodes[k]->n_out; i++) {
      const hn_value *v = h->nodes[k]->out[i];
      if (v && !hone_desc_known(&v->desc)) return v;
    }
  return NULL;
}

bool hn_custom_wanted(hn_lowering *l, const hn_pattern_hit *h) {
  hn_estimate together, apart;
  if (!hn_fuses(l->plan, HN_FUSION_custom)) return false;
  if (h->pointwise) return l->plan->level >= 2; /* costs what any function does */
  const hn_value *unknown = unknown_value(h);
  hn_unit *u = unknown ? NULL : hn_pattern_unit(l, h);
  if (!u || !hn_lower_predict(l, u, &together)) {
    missed(l, h, (hn_miss){.why = unknown ? HN_MISS_UNKNOWN : HN_MISS_TACTIC, .value = unknown});
    return false;
  }
  if (!time_apart(l, h, &apart)) return true;
  l->plan->weighed = true;
  if (l->plan->chains != HONE_CHAINS_FASTER) return l->plan->chains == HONE_CHAINS_ALWAYS;
  const bool measured = together.measured && apart.measured;
  const double one = measured ? together.seconds : together.predicted,
               several = measured ? apart.seconds : apart.predicted;
  if (one < several) return true;
  missed(l, h, (hn_miss){.why = HN_MISS_SLOWER, .together = one, .apart = several});
  return false;
}
