/* Does a custom operator take the place of the nodes that its pattern describes? */
#include "optimize/lower/pattern_units.h"

static void missed(hn_lowering *l, const hn_pattern_hit *h, hn_miss m) {
  m.fusion = HN_FUSION_custom;
  for (uint32_t i = 0; i < h->n_nodes && m.n_nodes < HN_MISS_NODES; i++) m.node[m.n_nodes++] = h->nodes[i];
  hn_miss_add(&l->plan->misses, &m);
}

static hn_unit *unit_of(const hn_lowering *l, const hone_node *n) {
  return n->n_out && n->out[0] ? l->by_value[n->out[0]->id] : NULL;
}

/* Does a product make the first input for these nodes alone? Then a function of it is its epilogue, and costs
 * next to nothing. */
static bool behind_product(const hn_lowering *l, const hn_pattern_hit *h) {
  const hn_value *x = h->node->n_in ? h->node->in[0] : NULL;
  const hn_unit *u = x && x->producer && !x->constant ? l->by_value[x->id] : NULL;
  if (!u || u->kind != HN_UNIT_NODE || x->is_output || !hn_fusable_anchor(u)) return false;
  for (size_t i = 0; i < x->users.len; i++) {
    bool inside = false;
    for (uint32_t k = 0; k < h->n_nodes; k++) inside = inside || h->nodes[k] == x->users.ptr[i].node;
    if (!inside) return false;
  }
  return true;
}

/* The time of the nodes without the pattern, as far as it can be told beforehand: products and the like by
 * their own tactics with elementwise functions as their epilogues, or those alone as one loop. False: some of
 * it has no tactic. */
static bool time_apart(hn_lowering *l, const hn_pattern_hit *h, hn_estimate *sum) {
  hn_unit *group[HN_PATTERN_LINES];
  uint32_t n = 0, others = 0;
  hn_estimate e;
  *sum = (hn_estimate){.measured = true};
  for (uint32_t k = 0; k < h->n_nodes; k++) {
    hn_unit *u = unit_of(l, h->nodes[k]);
    if (!u || u->kind == HN_UNIT_VIEW) continue;
    if (u->kind == HN_UNIT_POINTWISE) {
      group[n++] = u;
      continue;
    }
    others++;
    if (!hn_lower_predict(l, u, &e)) return false;
    sum->seconds += e.seconds;
    sum->predicted += e.predicted;
    sum->measured = sum->measured && e.measured;
  }
  if (!n || others || (h->rival && behind_product(l, h))) return true;
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
