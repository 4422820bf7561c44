/* Layers that a plan runs in one step have one time, so they are decided together. */
#include "api/mixed/mixed.h"

#include "base/error.h"

typedef struct joining {
  hn_mixing *m;
  int32_t *of_node; /* by node of the file: the layer; -1: none */
  uint32_t n_nodes;
  uint32_t *parent; /* [layers] */
} joining;

static uint32_t root(const joining *j, uint32_t i) {
  while (j->parent[i] != i) i = j->parent[i];
  return i;
}

static void join_steps(joining *j, const hone_plan *plan) {
  hone_step_info s;
  for (uint32_t i = 0; hone_plan_step(plan, i, &s); i++) {
    int32_t first = -1;
    for (uint32_t k = 0; k < s.n_nodes; k++) {
      const int32_t l = s.nodes[k] < j->n_nodes ? j->of_node[s.nodes[k]] : -1;
      if (l < 0) continue;
      if (first >= 0) j->parent[root(j, (uint32_t)l)] = root(j, (uint32_t)first);
      first = l;
    }
  }
}

static bool fill_nodes(joining *j) {
  hn_mixing *m = j->m;
  j->n_nodes = hone_plan_source_nodes(m->wide.plan);
  j->of_node = hn_malloc((j->n_nodes + 1) * sizeof *j->of_node);
  j->parent = hn_malloc((m->layers.len + 1) * sizeof *j->parent);
  if (!j->of_node || !j->parent) return false;
  for (uint32_t i = 0; i < j->n_nodes; i++) j->of_node[i] = -1;
  for (size_t l = 0; l < m->layers.len; l++) {
    const hn_mix_layer *layer = &m->layers.ptr[l];
    j->parent[l] = (uint32_t)l;
    for (uint32_t k = 0; layer->unit >= 0 && k < layer->n_nodes; k++)
      if (layer->nodes[k] < j->n_nodes) j->of_node[layer->nodes[k]] = (int32_t)l;
  }
  return true;
}

/* Numbers the units in the order of their first layers. */
static bool number(joining *j) {
  hn_mixing *m = j->m;
  m->unit = HN_NEW_ARRAY(&m->arena, hn_mix_unit, m->layers.len + 1);
  int32_t *of_root = hn_malloc((m->layers.len + 1) * sizeof *of_root);
  if (!m->unit || !of_root) {
    hn_free(of_root);
    return false;
  }
  for (size_t l = 0; l < m->layers.len; l++) of_root[l] = -1;
  for (size_t l = 0; l < m->layers.len; l++) {
    hn_mix_layer *layer = &m->layers.ptr[l];
    if (layer->unit < 0) continue;
    int32_t *unit = &of_root[root(j, (uint32_t)l)];
    if (*unit < 0) {
      *unit = (int32_t)m->n_units++;
      m->unit[*unit].follows = true;
    }
    layer->unit = *unit;
    if (hone_quantisation_of(layer->op_type) == HONE_QUANTISATION_PRODUCT) m->unit[*unit].follows = false;
  }
  hn_free(of_root);
  return true;
}

hone_status hn_mix_make_units(hn_mixing *m, const hn_mix_side *sides, hone_error *error) {
  joining j = {.m = m};
  bool good = fill_nodes(&j);
  for (int t = 0; good && t < HONE_MIXED_TYPES; t++)
    if (sides[t].plan) join_steps(&j, sides[t].plan);
  good = good && number(&j);
  hn_free(j.of_node);
  hn_free(j.parent);
  return good ? HONE_OK : hn_fail_memory(error, m->layers.len * sizeof(hn_mix_unit), "layers");
}

int32_t hn_mix_unit_of(const hn_mixing *m, const hone_step_info *s) {
  for (size_t l = 0; l < m->layers.len; l++)
    for (uint32_t k = 0; m->layers.ptr[l].unit >= 0 && k < m->layers.ptr[l].n_nodes; k++)
      for (uint32_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i] == m->layers.ptr[l].nodes[k]) return m->layers.ptr[l].unit;
  return -1;
}
