/* Turning by positions that exporters spell out, where a tactic takes it: its nodes become one unit. */
#include "optimize/lower/lowering.h"
#include "optimize/match/rotary.h"

#include "base/error.h"

#include <string.h>

/* Carries the attributes for the tactics; not part of the graph. */
static hone_node *make_node(const hn_rotary_hit *h) {
  hone_node *n = HN_NEW(&h->root->graph->model->arena, hone_node);
  if (!n) return NULL;
  *n = (hone_node){.graph = h->root->graph,
                   .op_type = "SpelledRotary",
                   .domain = "",
                   .name = h->root->name,
                   .opset = h->root->opset};
  return hn_node_set_int(n, "interleaved", h->neighbours) ? n : NULL;
}

static bool make_unit(hn_lowering *l, const hn_rotary_hit *h) {
  hn_unit *root = l->by_value[h->root->out[0]->id];
  hn_rotary_hit *kept = HN_NEW(l->temp, hn_rotary_hit);
  hn_value **in = HN_NEW_ARRAY(l->temp, hn_value *, HN_ROTARY_INPUTS);
  const hone_node **nodes = HN_NEW_ARRAY(l->temp, const hone_node *, h->nodes.n);
  hone_node *node = make_node(h);
  if (!kept || !in || !nodes || !node) return false;
  *kept = *h;
  for (uint32_t i = 0; i < HN_ROTARY_INPUTS; i++) in[i] = h->in[i].base;
  uint32_t n = 0;
  for (; n < h->nodes.n; n++) {
    const hn_unit *part = l->by_value[h->nodes.at[n]->out[0]->id];
    if (part->n_nodes != 1 || part->into) return true; /* another pattern has it */
    uint32_t at = n;
    for (; at > 0 && l->by_value[nodes[at - 1]->out[0]->id]->order > part->order; at--)
      nodes[at] = nodes[at - 1];
    nodes[at] = h->nodes.at[n];
  }
  const hn_unit u = {.kind = HN_UNIT_PATTERN,
                     .anchor = "SpelledRotary",
                     .node = node,
                     .n_in = HN_ROTARY_INPUTS,
                     .in = in,
                     .view = kept->in,
                     .out = h->root->out[0],
                     .order = root->order,
                     .n_nodes = n,
                     .nodes = nodes};
  if (hn_lower_hidden(l, &u) || !hn_lower_takes(l, &u)) return true;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t o = 0; o < nodes[i]->n_out; o++) {
      hn_unit **made = nodes[i]->out[o] ? &l->by_value[nodes[i]->out[o]->id] : NULL;
      if (!made || !*made) continue;
      if (*made != root) (*made)->into = root; /* for the sweep below */
      *made = root;
    }
  *root = u; /* in its place in the list */
  return true;
}

hone_status hn_lower_rotary(hn_lowering *l, hone_error *error) {
  hn_rotary_hit hit;
  if (l->plan->reference || l->plan->separate || l->plan->level < 2 || !hn_fuses(l->plan, HN_FUSION_patterns))
    return HONE_OK;
  for (size_t i = 0; i < l->units.len; i++) {
    const hn_unit *u = l->units.ptr[i];
    if (u->into || u->kind != HN_UNIT_POINTWISE || !u->node || strcmp(u->node->op_type, "Add") != 0) continue;
    if (hn_rotary_match((hone_node *)(uintptr_t)u->node, &hit) == HN_MATCH_YES && !make_unit(l, &hit))
      return hn_fail_memory(error, sizeof hit, "lowering");
  }
  size_t kept = 0;
  for (size_t i = 0; i < l->units.len; i++)
    if (!l->units.ptr[i]->into) l->units.ptr[kept++] = l->units.ptr[i];
  l->units.len = kept;
  return HONE_OK;
}
