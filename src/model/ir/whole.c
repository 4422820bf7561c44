/* Operations on whole graphs: order, invariants, cloning. */
#include "model/ir/graph.h"

#include "base/error.h"

#include <stdatomic.h>
#include <string.h>

/* ------------------------------------------------------------------ order */

enum { NEW = 0, OPEN = 1, DONE = 2 };

/* Visits what a node reads (its bodies' captures included) before the node; an explicit stack, since graphs
 * may be as deep as they are long. */
typedef struct frame {
  hone_node *node;
  uint32_t next; /* which dependency comes next */
} frame;

typedef HN_VEC(hone_node *) node_list;

/* Direct producers in `g` that `n` depends on: of its inputs and of everything that its bodies capture. */
static bool dependencies(const hn_graph *g, const hone_node *n, node_list *out) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && n->in[i]->producer && n->in[i]->graph == g && !hn_vec_push(out, n->in[i]->producer))
      return false;
  for (uint32_t k = 0; k < n->n_attr; k++) {
    if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
    const hn_graph *body = n->attr[k].g;
    for (const hone_node *b = body->first; b; b = b->next)
      if (!dependencies(g, b, out)) return false;
    for (size_t i = 0; i < body->outputs.len; i++) {
      const hn_value *v = body->outputs.ptr[i];
      if (v->graph == g && v->producer && !hn_vec_push(out, v->producer)) return false;
    }
  }
  return true;
}

hone_status hn_graph_sort(hn_graph *g, hone_error *error) {
  hone_status status = HONE_OK;
  node_list given = {0}, order = {0}, deps = {0};
  HN_VEC(frame) stack = {0};
  HN_VEC(size_t) base = {0}; /* where a frame's dependencies start in deps */
  for (hone_node *n = g->first; n; n = n->next) {
    n->mark = NEW;
    if (!hn_vec_push(&given, n)) goto memory;
  }
  for (size_t i = 0; i < given.len; i++) {
    if (given.ptr[i]->mark != NEW) continue;
    if (!hn_vec_push(&stack, (frame){given.ptr[i], 0}) || !hn_vec_push(&base, deps.len)) goto memory;
    given.ptr[i]->mark = OPEN;
    if (!dependencies(g, given.ptr[i], &deps)) goto memory;
    while (stack.len) {
      frame *f = &stack.ptr[stack.len - 1];
      size_t at = base.ptr[base.len - 1] + f->next++;
      if (at >= deps.len) {
        f->node->mark = DONE;
        if (!hn_vec_push(&order, f->node)) goto memory;
        deps.len = base.ptr[--base.len];
        stack.len--;
        continue;
      }
      hone_node *d = deps.ptr[at];
      if (d->mark == DONE) continue;
      if (d->mark == OPEN) {
        status = hn_fail(error, HONE_ERROR_INPUT, "the graph has a cycle through node '%s' (%s)", d->name,
                         d->op_type);
        hn_error_hint(error, "a node may not depend on its own result");
        goto done;
      }
      d->mark = OPEN;
      if (!hn_vec_push(&stack, (frame){d, 0}) || !hn_vec_push(&base, deps.len)) goto memory;
      if (!dependencies(g, d, &deps)) goto memory;
    }
  }
  for (size_t i = 0; i < order.len; i++) hn_node_move(order.ptr[i], NULL);
  for (hone_node *n = g->first; n; n = n->next) {
    n->mark = 0;
    for (uint32_t k = 0; k < n->n_attr && status == HONE_OK; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) status = hn_graph_sort(n->attr[k].g, error);
  }
  goto done;
memory:
  status = hn_fail_memory(error, given.len * sizeof(void *), "sorting the graph");
done:
  hn_vec_free(&given);
  hn_vec_free(&order);
  hn_vec_free(&deps);
  hn_vec_free(&stack);
  hn_vec_free(&base);
  return status;
}

/* ------------------------------------------------------------------ invariants */

static hone_status broken(hone_error *error, const char *what, const char *name) {
  return hn_fail(error, HONE_ERROR_INTERNAL, "graph invariant broken: %s at '%s'", what, name);
}

static hone_status check_graph(const hn_graph *g, hone_error *error) {
  uint32_t count = 0;
  for (hone_node *n = g->first; n; n = n->next, count++) {
    if (n->graph != g) return broken(error, "node in a foreign graph", n->name);
    if (n->next ? n->next->prev != n : g->last != n) return broken(error, "node list", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
      if (!n->in[i]) continue;
      bool found = false;
      for (size_t k = 0; k < n->in[i]->users.len; k++)
        found |= n->in[i]->users.ptr[k].node == n && n->in[i]->users.ptr[k].index == i;
      if (!found) return broken(error, "a reader is missing in the value's users", n->in[i]->name);
      const hn_value *v = n->in[i];
      if (!v->producer && !v->constant && !v->is_input)
        return broken(error, "a value that nothing makes is read", v->name);
      if (v->producer && v->graph == g && v->producer->mark != 0x5eed)
        return broken(error, "a value is read before it is made", v->name);
    }
    n->mark = 0x5eed;
    for (uint32_t i = 0; i < n->n_out; i++)
      if (n->out[i] && (n->out[i]->producer != n || n->out[i]->producer_index != i))
        return broken(error, "producer of an output", n->out[i]->name);
    for (uint32_t k = 0; k < n->n_attr; k++) {
      if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
      hone_status status = check_graph(n->attr[k].g, error);
      if (status != HONE_OK) return status;
    }
  }
  if (count != g->n_nodes) return broken(error, "node count", g->name);
  for (size_t i = 0; i < g->outputs.len; i++) {
    const hn_value *v = g->outputs.ptr[i];
    if (!v->producer && !v->constant && !v->is_input && v->graph == g)
      return broken(error, "an output that nothing makes", v->name);
    if (v->graph == g && hn_map_get(&g->by_name, v->name) != v) return broken(error, "name map", v->name);
  }
  for (size_t i = 0; i < g->values.len; i++)
    for (size_t k = 0; k < g->values.ptr[i]->users.len; k++) {
      hn_use u = g->values.ptr[i]->users.ptr[k];
      if (u.index >= u.node->n_in || u.node->in[u.index] != g->values.ptr[i])
        return broken(error, "a user that does not read the value", g->values.ptr[i]->name);
    }
  return HONE_OK;
}

static void clear_marks(const hn_graph *g) {
  for (hone_node *n = g->first; n; n = n->next) {
    n->mark = 0;
    for (uint32_t k = 0; k < n->n_attr; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) clear_marks(n->attr[k].g);
  }
}

hone_status hn_model_check(const hn_model *m, hone_error *error) {
  clear_marks(m->graph);
  hone_status status = check_graph(m->graph, error);
  clear_marks(m->graph);
  return status;
}

/* ------------------------------------------------------------------ cloning */

/* `to` indexed by value id of the original. */
static hone_status clone_graph(const hn_graph *from, hn_graph *to, hn_value **map, hone_error *error) {
  hn_arena *a = &to->model->arena;
  for (size_t i = 0; i < from->values.len; i++) {
    const hn_value *v = from->values.ptr[i];
    /* Values that nothing makes or reads any more are not carried over. */
    if (!v->producer && !v->is_input && !v->is_output && v->users.len == 0) continue;
    hn_value *w = hn_value_create_named(to, v->name);
    if (!w) goto memory;
    w->foreign = v->foreign;
    w->desc = v->desc;
    w->declared = v->declared;
    w->constant = v->constant;
    w->deferred = v->deferred;
    map[v->id] = w;
  }
  for (size_t i = 0; i < from->inputs.len; i++)
    if (!hn_graph_add_input(to, map[from->inputs.ptr[i]->id])) goto memory;
  for (const hone_node *n = from->first; n; n = n->next) {
    hn_value **in = HN_NEW_ARRAY(a, hn_value *, n->n_in), **out = HN_NEW_ARRAY(a, hn_value *, n->n_out);
    if (!in || !out) goto memory;
    for (uint32_t i = 0; i < n->n_in; i++) in[i] = n->in[i] ? map[n->in[i]->id] : NULL;
    for (uint32_t i = 0; i < n->n_out; i++) out[i] = n->out[i] ? map[n->out[i]->id] : NULL;
    hone_node *c = hn_node_create_like(to, n, in, out);
    if (!c) goto memory;
    for (uint32_t k = 0; k < n->n_attr; k++) {
      if (n->attr[k].type != HONE_ATTR_GRAPH) continue;
      hn_graph *body = hn_graph_create(to->model, to, n->attr[k].g->name);
      if (!body) goto memory;
      hone_status status = clone_graph(n->attr[k].g, body, map, error);
      if (status != HONE_OK) return status;
      if (!hn_node_set_graph(c, n->attr[k].name, body)) goto memory;
    }
  }
  for (size_t i = 0; i < from->outputs.len; i++)
    if (!hn_graph_add_output(to, map[from->outputs.ptr[i]->id])) goto memory;
  return HONE_OK;
memory:
  return hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to copy the graph");
}

hone_status hn_model_clone(hn_model *m, hn_model **out, hone_error *error) {
  *out = NULL;
  hn_model *c = hn_model_create(m->path);
  hn_value **map = hn_calloc(m->next_value_id, sizeof *map);
  hone_status status = HONE_OK;
  if (!c || !map) {
    status = hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to copy the model");
    goto done;
  }
  c->borrowed_from = hn_model_retain(m);
  c->operators = hn_listing_keep(m->operators);
  c->ir_version = m->ir_version;
  c->producer = m->producer;
  c->next_name = m->next_name;
  bool ok = (c->graph->name = hn_arena_strdup(&c->arena, m->graph->name)) != NULL;
  for (size_t i = 0; i < m->opsets.len; i++) ok = ok && hn_vec_push(&c->opsets, m->opsets.ptr[i]);
  for (size_t i = 0; i < m->symbols.len; i++) ok = ok && hn_vec_push(&c->symbols, m->symbols.ptr[i]);
  for (size_t i = 0; i < m->source.len; i++) ok = ok && hn_vec_push(&c->source, m->source.ptr[i]);
  status = ok ? clone_graph(m->graph, c->graph, map, error)
              : hn_fail(error, HONE_ERROR_MEMORY, "cannot allocate memory to copy the model");
done:
  hn_free(map);
  if (status == HONE_OK)
    *out = c;
  else
    hn_model_destroy(c);
  return status;
}
