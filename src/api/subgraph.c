/* Parts of a model: some nodes as a pattern. */
#include <hone/model.h>

#include "base/error.h"
#include "model/ir/text.h"
#include "optimize/passes/common/pass.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 24 }; /* lines of a pattern */

typedef struct part {
  hn_arena arena;
  hone_node *node[MOST];
  uint32_t n_nodes, n_values;
  const hn_value *of[MOST * 9];
  hone_subgraph_value value[MOST * 9];
  hone_subgraph_node public_node[MOST];
  hn_str pattern, inputs;
  char word[80];
} part;

static bool is_in(const part *p, const hone_node *n) {
  for (uint32_t i = 0; i < p->n_nodes; i++)
    if (p->node[i] == n) return true;
  return false;
}

static int32_t index_of(const part *p, const hn_value *v) {
  for (uint32_t i = 0; i < p->n_values; i++)
    if (p->of[i] == v) return (int32_t)i;
  return -1;
}

static bool is_named(const char *name, const char *const *names, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* By its own name, or as what passes have made of nodes that are all named. */
static bool is_meant(const hone_node *node, const char *const *names, uint32_t n) {
  const hn_model *m = node->graph->model;
  if (is_named(node->name, names, n)) return true;
  for (uint32_t i = 0; i < node->n_origin; i++)
    if (!is_named(m->source.ptr[node->origin[i]].name, names, n)) return false;
  return node->n_origin > 0;
}

/* The nodes in the order of the graph. */
static hone_status find_nodes(const hn_model *m, const char *const *names, uint32_t n, part *p,
                              hone_error *error) {
  for (hone_node *node = m->graph->first; node; node = node->next)
    if (is_meant(node, names, n) && p->n_nodes < MOST) p->node[p->n_nodes++] = node;
  for (uint32_t i = 0; i < n; i++) {
    bool found = false;
    for (size_t k = 0; k < m->source.len && !found; k++) found = strcmp(m->source.ptr[k].name, names[i]) == 0;
    for (uint32_t k = 0; k < p->n_nodes && !found; k++) found = strcmp(p->node[k]->name, names[i]) == 0;
    if (found) continue;
    hn_fail(error, HONE_ERROR_USAGE, "there is no node '%.200s'", names[i]);
    hn_error_hint(error, "hone inspect lists the nodes");
    return HONE_ERROR_USAGE;
  }
  return p->n_nodes ? HONE_OK : hn_fail(error, HONE_ERROR_USAGE, "nothing is left of these nodes");
}

/* Only the last node's result may be seen from outside. */
static hone_status one_result(const part *p, hone_error *error) {
  for (uint32_t k = 0; k < p->n_nodes; k++)
    for (uint32_t o = 0; o < p->node[k]->n_out; o++) {
      const hn_value *v = p->node[k]->out[o];
      const bool last = k + 1 == p->n_nodes && o == 0;
      if (!v || last) continue;
      const hone_node *outside = NULL;
      bool read = false;
      for (size_t u = 0; u < v->users.len; u++) {
        read = true;
        if (!is_in(p, v->users.ptr[u].node)) outside = v->users.ptr[u].node;
      }
      if (!outside && !v->is_output && (read || o)) continue;
      hn_fail(error, HONE_ERROR_USAGE, "the nodes have more than one result: '%.80s' of '%.80s' is %s%.80s%s",
              v->name, p->node[k]->name,
              outside        ? "read by '"
              : v->is_output ? "an output of the model"
                             : "read by none of them",
              outside ? outside->name : "", outside ? "'" : "");
      hn_error_expected(error, "nodes of which only the last makes something for others");
      return HONE_ERROR_USAGE;
    }
  return HONE_OK;
}

static hone_status add_value(part *p, const hn_value *v, int32_t node, hone_error *error) {
  if (!v || index_of(p, v) >= 0) return HONE_OK;
  const uint32_t i = p->n_values++;
  hone_subgraph_value *out = &p->value[i];
  p->of[i] = v;
  *out = (hone_subgraph_value){.desc = v->desc, .node = node, .name = "", .value = v->name};
  if (node < 0 && v->constant && !v->is_input && hone_desc_count(&v->constant->desc) == 1 &&
      v->constant->desc.dtype != HONE_DTYPE_STRING) {
    out->is_number = true;
    out->number = hn_get_f64(v->constant, 0);
    return HONE_OK;
  }
  if (node < 0 && !v->is_input) out->constant = v->constant;
  uint32_t n = 0;
  for (uint32_t k = 0; k < i; k++) n += (p->value[k].node < 0) == (node < 0) && !p->value[k].is_number;
  out->name = hn_arena_printf(&p->arena, "%c%u", node < 0 ? 'x' : 't', n);
  if (!out->name) return hn_fail_memory(error, 8, "a part of a model");
  if (node < 0) hn_str_printf(&p->inputs, "%s%%%s", p->inputs.len ? " " : "", out->name);
  return HONE_OK;
}

static const char *name_of(void *arg, const hn_value *v) {
  part *p = arg;
  const hone_subgraph_value *of = &p->value[index_of(p, v)];
  if (of->is_number)
    snprintf(p->word, sizeof p->word, "%.9g", of->number);
  else
    snprintf(p->word, sizeof p->word, "%%%s", of->name);
  return p->word;
}

static bool holds_graph(const hone_node *n) {
  for (uint32_t i = 0; i < n->n_attr; i++)
    if (n->attr[i].type == HONE_ATTR_GRAPH) return true;
  return false;
}

static hone_status describe(part *p, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t k = 0; k < p->n_nodes && status == HONE_OK; k++) {
    const hone_node *n = p->node[k];
    if (n->n_in > 8 || n->n_out > 1)
      return hn_fail(error, HONE_ERROR_USAGE, "node '%.200s' has too many operands or results for a pattern",
                     n->name);
    if (holds_graph(n))
      return hn_fail(error, HONE_ERROR_USAGE,
                     "node '%.200s' (%s) holds a graph: a pattern has no word for it", n->name, n->op_type);
    for (uint32_t i = 0; i < n->n_in && status == HONE_OK; i++) status = add_value(p, n->in[i], -1, error);
    if (status == HONE_OK) status = add_value(p, n->out[0], (int32_t)k, error);
    int32_t *in = HN_NEW_ARRAY(&p->arena, int32_t, n->n_in + 1);
    if (!in) return hn_fail_memory(error, n->n_in, "a part of a model");
    for (uint32_t i = 0; i < n->n_in; i++) in[i] = n->in[i] ? index_of(p, n->in[i]) : -1;
    p->public_node[k] = (hone_subgraph_node){n, n->n_in, in, index_of(p, n->out[0])};
    if (status == HONE_OK && !hn_node_print(n, name_of, p, &p->pattern))
      status = hn_fail_memory(error, p->pattern.len, "a part of a model");
  }
  if (status == HONE_OK && (p->inputs.failed || p->pattern.failed))
    status = hn_fail_memory(error, p->pattern.len, "a part of a model");
  return status;
}

hone_status hone_model_subgraph(hone_model *model, const char *const *nodes, uint32_t n, hone_subgraph *out,
                                hone_error *error) {
  if (out) *out = (hone_subgraph){0};
  if (!model || !nodes || !n || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_model_subgraph needs a model, names of nodes and a place for the result");
  if (n > MOST) return hn_fail(error, HONE_ERROR_USAGE, "a part of a model has at most %d nodes", MOST);
  for (uint32_t i = 0; i < n; i++)
    if (!nodes[i])
      return hn_fail(error, HONE_ERROR_USAGE, "hone_model_subgraph was given a node without a name");
  part *p = hn_calloc(1, sizeof *p);
  if (!p) return hn_fail_memory(error, sizeof *p, "a part of a model");
  out->impl = p;
  hone_status status = find_nodes(model, nodes, n, p, error);
  if (status == HONE_OK) status = one_result(p, error);
  if (status == HONE_OK) status = describe(p, error);
  if (status != HONE_OK) {
    hone_subgraph_free(out);
    return status;
  }
  *out = (hone_subgraph){p->n_nodes, p->n_values,    p->public_node,
                         p->value,   p->pattern.ptr, p->inputs.ptr ? p->inputs.ptr : "",
                         p};
  return HONE_OK;
}

void hone_subgraph_free(hone_subgraph *out) {
  part *p = out ? out->impl : NULL;
  if (!p) return;
  hn_arena_free(&p->arena);
  hn_str_free(&p->pattern);
  hn_str_free(&p->inputs);
  hn_free(p);
  *out = (hone_subgraph){0};
}
