/* Patterns of several nodes that become one unit, by the operator that they spell out. */
#include "optimize/lower/pattern_units.h"

#include "base/error.h"

hn_unit *hn_pattern_unit(hn_lowering *l, const hn_pattern_hit *h) {
  hn_unit *u = HN_NEW(l->temp, hn_unit);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, h->n_nodes);
  if (!u || !nodes) return NULL;
  for (uint32_t i = 0; i < h->n_nodes; i++) nodes[i] = h->nodes[i];
  *u = (hn_unit){.kind = HN_UNIT_NODE,
                 .anchor = hn_anchor_of(l, h->node),
                 .node = h->node,
                 .n_in = h->node->n_in,
                 .in = h->node->in,
                 .out = h->node->out[0],
                 .n_nodes = h->n_nodes,
                 .nodes = nodes,
                 .order = l->by_value[h->root->out[0]->id]->order};
  if (!u->anchor) return NULL;
  if (!h->pointwise) return u;
  /* An elementwise function that lowering cannot take as such (f16, unknown dimensions) stays as its nodes.
   */
  if (!hn_pointwise_of(h->node, u)) {
    u->node = NULL;
    return u;
  }
  u->kind = HN_UNIT_POINTWISE;
  u->op = h->op;
  u->alpha = h->alpha;
  u->beta = h->beta;
  return u;
}

static void hear(void *self, const hone_pattern_desc *pattern, const hone_match *match, bool hit,
                 const char *reason) {
  hn_lowering *l = self;
  if (hit) return;
  hn_miss m = {.fusion = hn_pattern_is_custom(pattern) ? HN_FUSION_custom : HN_FUSION_patterns,
               .why = HN_MISS_MATCHER,
               .said = hn_arena_printf(&l->plan->arena, "nearly %s, matched %u of %u nodes: %s",
                                       pattern->name, match->pattern->n_lines - match->n_other,
                                       match->pattern->n_lines, reason)};
  for (uint32_t i = 0; i < match->pattern->n_lines && m.n_nodes < HN_MISS_NODES; i++)
    m.node[m.n_nodes++] = match->node[i];
  hn_miss_add(&l->plan->misses, &m);
}

/* An elementwise function of a type or of dimensions that lowering cannot take as such. */
static void near_function(hn_lowering *l, const hn_pattern_hit *h) {
  const hn_value *v = h->root->out[0];
  hn_miss m = {.fusion = HN_FUSION_patterns,
               .why = hone_desc_known(&v->desc) ? HN_MISS_TYPE : HN_MISS_UNKNOWN,
               .value = v};
  for (uint32_t i = 0; i < h->n_nodes && m.n_nodes < HN_MISS_NODES; i++) m.node[m.n_nodes++] = h->nodes[i];
  hn_miss_add(&l->plan->misses, &m);
}

static bool wanted(void *self, const hn_pattern_hit *h) {
  hn_lowering *l = self;
  if (h->custom) return hn_custom_wanted(l, h);
  return l->plan->level >= 2 && hn_fuses(l->plan, HN_FUSION_patterns);
}

hone_status hn_lower_patterns(hn_lowering *l, hone_error *error) {
  hn_pattern_hits hits;
  const bool builtin = l->plan->level >= 2 && hn_fuses(l->plan, HN_FUSION_patterns),
             custom = l->plan->level >= 1 && hn_fuses(l->plan, HN_FUSION_custom) && hn_patterns_custom();
  if (l->plan->reference || l->plan->separate || !(builtin || custom)) return HONE_OK;
  hone_status status =
      hn_patterns_match(l->plan->model->graph, &hits, &(hn_pattern_listener){l, hear, wanted}, error);
  for (size_t i = 0; i < hits.len && status == HONE_OK; i++) {
    const hn_pattern_hit *h = &hits.ptr[i];
    hn_unit *u = hn_pattern_unit(l, h), *root = l->by_value[h->root->out[0]->id];
    if (!u) {
      status = hn_fail_memory(error, sizeof *u, "lowering");
      break;
    }
    if (!u->node) {
      near_function(l, h);
      continue;
    }
    for (uint32_t k = 0; k < h->n_nodes; k++)
      for (uint32_t o = 0; o < h->nodes[k]->n_out; o++) {
        hn_unit **made = h->nodes[k]->out[o] ? &l->by_value[h->nodes[k]->out[o]->id] : NULL;
        if (!made || !*made) continue;
        if (*made != root) (*made)->into = root; /* for the sweep below */
        *made = root;
      }
    *root = *u; /* in its place in the list */
  }
  size_t kept = 0;
  for (size_t i = 0; i < l->units.len; i++)
    if (!l->units.ptr[i]->into) l->units.ptr[kept++] = l->units.ptr[i];
  l->units.len = kept;
  hn_vec_free(&hits);
  return status;
}
