#include "model/ir/graph.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ models */

hn_model *hn_model_create(const char *path) {
  hn_model *m = hn_calloc(1, sizeof *m);
  if (!m) return NULL;
  atomic_store(&m->refs, 1);
  m->path = hn_arena_strdup(&m->arena, path ? path : "");
  m->producer = "";
  m->ir_version = 8;
  m->graph = m->path ? hn_graph_create(m, NULL, "main") : NULL;
  if (!m->graph) {
    hn_model_destroy(m);
    return NULL;
  }
  return m;
}

hn_model *hn_model_retain(hn_model *m) {
  if (m) atomic_fetch_add(&m->refs, 1);
  return m;
}

static void graph_free(hn_graph *g) {
  for (size_t i = 0; i < g->values.len; i++) hn_vec_free(&g->values.ptr[i]->users);
  hn_vec_free(&g->inputs);
  hn_vec_free(&g->outputs);
  hn_vec_free(&g->values);
  hn_map_free(&g->by_name);
}

/* All graphs of a model hang in one list through `all`, kept in the arena, so that destroying is not
 * recursive. */
typedef struct graph_entry {
  hn_graph graph; /* first: the graph pointer is the entry pointer */
  struct graph_entry *next;
} graph_entry;

void hn_model_destroy(hn_model *m) {
  if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
  for (graph_entry *e = m->graphs, *next; e; e = next) {
    next = e->next;
    graph_free(&e->graph);
  }
  for (size_t i = 0; i < m->files.len; i++) hn_file_unmap(&m->files.ptr[i]);
  hn_vec_free(&m->files);
  hn_vec_free(&m->opsets);
  hn_vec_free(&m->symbols);
  hn_vec_free(&m->source);
  hn_model *from = m->borrowed_from;
  hn_listing_drop(m->operators);
  hn_arena_free(&m->arena);
  hn_free(m);
  hn_model_destroy(from);
}

int64_t hn_model_opset(const hn_model *m, const char *domain) {
  if (hn_same_name(domain, "ai.onnx")) domain = "";
  for (size_t i = 0; i < m->opsets.len; i++)
    if (hn_same_name(m->opsets.ptr[i].domain, domain)) return m->opsets.ptr[i].version;
  return 0;
}

uint32_t hn_model_nodes(const hn_model *m) {
  uint32_t n = 0;
  for (const graph_entry *e = m->graphs; e; e = e->next) n += e->graph.n_nodes;
  return n;
}

int64_t hn_model_symbol(hn_model *m, const char *name) {
  for (size_t i = 0; i < m->symbols.len; i++)
    if (strcmp(m->symbols.ptr[i], name) == 0) return -2 - (int64_t)i;
  const char *copy = hn_arena_strdup(&m->arena, name);
  if (!copy || !hn_vec_push(&m->symbols, copy)) return HONE_DIM_UNKNOWN;
  return -1 - (int64_t)m->symbols.len;
}

const char *hn_model_symbol_name(const hn_model *m, int64_t dim) {
  uint64_t i = (uint64_t)(-2 - dim);
  return dim <= -2 && i < m->symbols.len ? m->symbols.ptr[i] : NULL;
}

/* ------------------------------------------------------------------ building */

hn_graph *hn_graph_create(hn_model *m, hn_graph *parent, const char *name) {
  graph_entry *e = HN_NEW(&m->arena, graph_entry);
  if (!e) return NULL;
  hn_graph *g = &e->graph;
  g->model = m;
  g->parent = parent;
  g->name = hn_arena_strdup(&m->arena, name ? name : "");
  if (!g->name) return NULL;
  e->next = m->graphs;
  m->graphs = e;
  return g;
}

static const char *fresh_name(hn_graph *g, const char *stem) {
  char buf[96];
  do {
    snprintf(buf, sizeof buf, "%.64s_%u", stem, g->model->next_name++);
  } while (hn_value_find(g, buf));
  return hn_arena_strdup(&g->model->arena, buf);
}

hn_value *hn_value_create(hn_graph *g, const char *name) {
  const char *own = name ? hn_arena_strdup(&g->model->arena, name) : fresh_name(g, "hn_value");
  return own ? hn_value_create_named(g, own) : NULL;
}

hn_value *hn_value_create_named(hn_graph *g, const char *name) {
  hn_value *v = HN_NEW(&g->model->arena, hn_value);
  if (!v) return NULL;
  v->name = name;
  v->graph = g;
  v->desc.rank = -1;
  v->id = g->model->next_value_id++;
  v->index = (uint32_t)g->values.len;
  if (!hn_vec_push(&g->values, v)) return NULL;
  if (!hn_map_set(&g->by_name, v->name, v)) {
    g->values.len--;
    return NULL;
  }
  return v;
}

hn_value *hn_value_find(const hn_graph *g, const char *name) {
  for (; g; g = g->parent) {
    hn_value *v = hn_map_get(&g->by_name, name);
    if (v) return v;
  }
  return NULL;
}

void hn_value_set_constant(hn_value *v, const hone_tensor *t) {
  v->constant = t;
  v->desc = t->desc;
  v->made = NULL;
}

void hn_value_set_folded(hn_value *v, const hone_tensor *t, const hone_node *made) {
  bool sized = !made;
  for (uint32_t i = 0; made && i < made->n_in; i++) sized |= made->in[i] && made->in[i]->sized;
  hn_value_set_constant(v, t);
  v->made = made;
  if (!sized || v->sized) return;
  v->sized = true;
  v->next_sized = v->graph->model->sized;
  v->graph->model->sized = v;
}

hn_value *hn_value_constant(hn_graph *g, const char *name, const hone_tensor_desc *desc, const void *data,
                            bool copy) {
  int64_t bytes = hone_desc_bytes(desc);
  if (bytes < 0) return NULL;
  hone_tensor *t = HN_NEW(&g->model->arena, hone_tensor);
  if (!t) return NULL;
  t->desc = *desc;
  hone_desc_set_layout(&t->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  t->data = (void *)data;
  if (copy) {
    t->data = hn_arena_aligned(&g->model->arena, (size_t)bytes, HN_MEM_ALIGN);
    if (!t->data) return NULL;
    if (bytes) memcpy(t->data, data, (size_t)bytes);
  }
  hn_value *v = hn_value_create(g, name);
  if (v) hn_value_set_constant(v, t);
  return v;
}

static bool add_use(hn_value *v, hone_node *n, uint32_t i) {
  v->uses++;
  return hn_vec_push(&v->users, (hn_use){n, i});
}

static void drop_use(hn_value *v, const hone_node *n, uint32_t i) {
  for (size_t k = 0; k < v->users.len; k++) {
    if (v->users.ptr[k].node != n || v->users.ptr[k].index != i) continue;
    memmove(v->users.ptr + k, v->users.ptr + k + 1, (v->users.len - k - 1) * sizeof *v->users.ptr);
    v->users.len--;
    return;
  }
}

static void link_before(hone_node *n, hone_node *before) {
  hn_graph *g = n->graph;
  n->next = before;
  n->prev = before ? before->prev : g->last;
  *(n->prev ? &n->prev->next : &g->first) = n;
  *(before ? &before->prev : &g->last) = n;
  g->n_nodes++;
}

static void unlink_node(hone_node *n) {
  hn_graph *g = n->graph;
  *(n->prev ? &n->prev->next : &g->first) = n->next;
  *(n->next ? &n->next->prev : &g->last) = n->prev;
  n->prev = n->next = NULL;
  g->n_nodes--;
}

/* Registers what a node reads and makes, and puts it in its place. False: it is nowhere. */
static bool connect(hone_node *n, hone_node *before) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] && !add_use(n->in[i], n, i)) {
      while (i-- > 0)
        if (n->in[i]) drop_use(n->in[i], n, i);
      return false;
    }
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i]) {
      n->out[i]->producer = n;
      n->out[i]->producer_index = i;
    }
  link_before(n, before);
  return true;
}

hone_node *hn_node_create(hn_graph *g, hone_node *before, const char *op_type, const char *domain,
                          const char *name, hn_value *const *in, uint32_t n_in, hn_value *const *out,
                          uint32_t n_out) {
  hn_arena *a = &g->model->arena;
  hone_node *n = HN_NEW(a, hone_node);
  if (!n) return NULL;
  n->graph = g;
  n->op_type = hn_arena_strdup(a, op_type);
  n->domain = hn_arena_strdup(a, domain ? domain : "");
  n->name =
      name && *name ? hn_arena_strdup(a, name) : hn_arena_printf(a, "%s_%u", op_type, g->model->next_name++);
  n->in = HN_NEW_ARRAY(a, hn_value *, n_in);
  n->out = HN_NEW_ARRAY(a, hn_value *, n_out);
  if (!n->op_type || !n->domain || !n->name || !n->in || !n->out) return NULL;
  n->opset = (int32_t)hn_model_opset(g->model, n->domain);
  if (n_in) memcpy(n->in, in, n_in * sizeof *in);
  if (n_out) memcpy(n->out, out, n_out * sizeof *out);
  n->n_in = n_in;
  n->n_out = n_out;
  return connect(n, before) ? n : NULL;
}

hone_node *hn_node_create_like(hn_graph *g, const hone_node *like, hn_value **in, hn_value **out) {
  hn_arena *a = &g->model->arena;
  hone_node *n = HN_NEW(a, hone_node);
  if (!n) return NULL;
  *n = *like;
  n->graph = g;
  n->in = in;
  n->out = out;
  n->prev = n->next = NULL;
  n->origin_room = n->mark = 0;
  uint32_t room = 1; /* as attr_slot counts on it */
  while (room < n->n_attr) room *= 2;
  n->attr = n->n_attr ? HN_NEW_ARRAY(a, hn_attr, room) : NULL;
  if (n->n_attr && !n->attr) return NULL;
  for (uint32_t i = 0; i < n->n_attr; i++) {
    n->attr[i] = like->attr[i];
    if (n->attr[i].type != HONE_ATTR_TENSOR) continue;
    n->attr[i].t = hn_arena_memdup(a, like->attr[i].t, sizeof *like->attr[i].t);
    if (!n->attr[i].t) return NULL;
  }
  return connect(n, NULL) ? n : NULL;
}

bool hn_graph_add_input(hn_graph *g, hn_value *v) {
  if (!hn_vec_push(&g->inputs, v)) return false;
  return v->is_input = true;
}

bool hn_graph_add_output(hn_graph *g, hn_value *v) {
  if (!hn_vec_push(&g->outputs, v)) return false;
  return v->is_output = true;
}

/* ------------------------------------------------------------------ attributes */

const hn_attr *hn_node_attr(const hone_node *n, const char *name) {
  for (uint32_t i = 0; i < n->n_attr; i++)
    if (hn_same_name(n->attr[i].name, name)) return &n->attr[i];
  return NULL;
}

static hn_attr *attr_slot(hone_node *n, const char *name) {
  hn_attr *old = (hn_attr *)hn_node_attr(n, name);
  if (old) return old;
  hn_arena *a = &n->graph->model->arena;
  if ((n->n_attr & (n->n_attr - 1)) == 0) { /* full at powers of two: double */
    hn_attr *more = HN_NEW_ARRAY(a, hn_attr, n->n_attr ? n->n_attr * 2 : 1);
    if (!more) return NULL;
    if (n->n_attr) memcpy(more, n->attr, n->n_attr * sizeof *more);
    n->attr = more;
  }
  char *copy = hn_arena_strdup(a, name);
  if (!copy) return NULL;
  hn_attr *slot = &n->attr[n->n_attr++];
  *slot = (hn_attr){.name = copy};
  return slot;
}

static bool set_attr(hone_node *n, const char *name, hn_attr v) {
  hn_attr *slot = attr_slot(n, name);
  if (!slot) return false;
  v.name = slot->name;
  *slot = v;
  return true;
}

bool hn_node_set_int(hone_node *n, const char *name, int64_t v) {
  return set_attr(n, name, (hn_attr){.type = HONE_ATTR_INT, .i = v});
}

bool hn_node_set_type(hone_node *n, const char *name, hone_dtype v) {
  return set_attr(n, name, (hn_attr){.type = HONE_ATTR_TYPE, .i = v});
}
bool hn_node_set_float(hone_node *n, const char *name, float v) {
  return set_attr(n, name, (hn_attr){.type = HONE_ATTR_FLOAT, .f = v});
}

bool hn_node_set_string(hone_node *n, const char *name, const char *v, size_t len) {
  const char *copy = hn_arena_strndup(&n->graph->model->arena, v, len);
  return copy && set_attr(n, name, (hn_attr){.type = HONE_ATTR_STRING, .s = {copy, len}});
}

static bool set_list(hone_node *n, const char *name, hone_attr_type type, const void *v, size_t count,
                     size_t size) {
  const void *copy = hn_arena_memdup(&n->graph->model->arena, v, count * size);
  return copy && set_attr(n, name, (hn_attr){.type = type, .list = {count, copy}});
}

bool hn_node_set_ints(hone_node *n, const char *name, const int64_t *v, size_t count) {
  return set_list(n, name, HONE_ATTR_INTS, v, count, sizeof *v);
}

bool hn_node_set_floats(hone_node *n, const char *name, const float *v, size_t count) {
  return set_list(n, name, HONE_ATTR_FLOATS, v, count, sizeof *v);
}

bool hn_node_set_strings(hone_node *n, const char *name, const hone_string *v, size_t count) {
  hn_arena *a = &n->graph->model->arena;
  hone_string *copy = HN_NEW_ARRAY(a, hone_string, count);
  for (size_t i = 0; copy && i < count; i++) {
    copy[i] = (hone_string){hn_arena_strndup(a, v[i].ptr, v[i].len), v[i].len};
    if (!copy[i].ptr) return false;
  }
  return copy && set_attr(n, name, (hn_attr){.type = HONE_ATTR_STRINGS, .list = {count, copy}});
}

bool hn_node_set_tensor(hone_node *n, const char *name, const hone_tensor *v) {
  hone_tensor *copy = hn_arena_memdup(&n->graph->model->arena, v, sizeof *v);
  return copy && set_attr(n, name, (hn_attr){.type = HONE_ATTR_TENSOR, .t = copy});
}

bool hn_node_set_graph(hone_node *n, const char *name, hn_graph *v) {
  v->parent_node = n;
  return set_attr(n, name, (hn_attr){.type = HONE_ATTR_GRAPH, .g = v});
}

void hn_node_drop_attr(hone_node *n, const char *name) {
  hn_attr *a = (hn_attr *)hn_node_attr(n, name);
  if (!a) return;
  /* The doubling rule of attr_slot counts on n_attr never shrinking below a power of two it has passed: copy.
   */
  hn_attr *fresh = HN_NEW_ARRAY(&n->graph->model->arena, hn_attr, n->n_attr * 2);
  if (!fresh) return;
  uint32_t k = 0;
  for (uint32_t i = 0; i < n->n_attr; i++)
    if (&n->attr[i] != a) fresh[k++] = n->attr[i];
  n->attr = fresh;
  n->n_attr = k;
}

bool hn_node_copy_attrs(hone_node *n, const hone_node *from) {
  for (uint32_t i = 0; i < from->n_attr; i++)
    if (!set_attr(n, from->attr[i].name, from->attr[i])) return false;
  return true;
}

/* ------------------------------------------------------------------ the public view of a node */

const char *hone_node_op(const hone_node *n) {
  if (!n) return NULL;
  return n->op_type;
}
const char *hone_node_domain(const hone_node *n) {
  if (!n) return NULL;
  return n->domain;
}
const char *hone_node_name(const hone_node *n) {
  if (!n) return NULL;
  return n->name;
}
int32_t hone_node_opset(const hone_node *n) {
  if (!n) return -1;
  return n->opset;
}
uint32_t hone_node_inputs(const hone_node *n) {
  if (!n) return 0;
  return n->n_in;
}
uint32_t hone_node_outputs(const hone_node *n) {
  if (!n) return 0;
  return n->n_out;
}
bool hone_node_has(const hone_node *n, const char *attr) {
  if (!n) return false;
  return hn_node_attr(n, attr) != NULL;
}

static const hn_attr *typed(const hone_node *n, const char *name, hone_attr_type type) {
  const hn_attr *a = hn_node_attr(n, name);
  return a && a->type == type ? a : NULL;
}

int64_t hone_node_int(const hone_node *n, const char *name, int64_t otherwise) {
  if (!n) return otherwise;
  const hn_attr *a = typed(n, name, HONE_ATTR_INT);
  if (!a) a = typed(n, name, HONE_ATTR_TYPE);
  return a ? a->i : otherwise;
}

float hone_node_float(const hone_node *n, const char *name, float otherwise) {
  if (!n) return otherwise;
  const hn_attr *a = typed(n, name, HONE_ATTR_FLOAT);
  return a ? a->f : otherwise;
}

const char *hone_node_string(const hone_node *n, const char *name, const char *otherwise) {
  if (!n) return otherwise;
  const hn_attr *a = typed(n, name, HONE_ATTR_STRING);
  return a ? a->s.ptr : otherwise;
}

hone_string hn_node_text(const hone_node *n, const char *name, const char *otherwise) {
  const hn_attr *a = n ? typed(n, name, HONE_ATTR_STRING) : NULL;
  return a ? a->s : (hone_string){otherwise, strlen(otherwise)};
}

static const void *list(const hone_node *n, const char *name, hone_attr_type type, size_t *count) {
  const hn_attr *a = typed(n, name, type);
  *count = a ? a->list.n : 0;
  return a ? a->list.ptr : NULL;
}

const int64_t *hone_node_ints(const hone_node *n, const char *name, size_t *count) {
  if (!n || !count) return NULL;
  return list(n, name, HONE_ATTR_INTS, count);
}
const float *hone_node_floats(const hone_node *n, const char *name, size_t *count) {
  if (!n || !count) return NULL;
  return list(n, name, HONE_ATTR_FLOATS, count);
}
const hone_string *hone_node_strings(const hone_node *n, const char *name, size_t *count) {
  if (!n || !count) return NULL;
  return list(n, name, HONE_ATTR_STRINGS, count);
}
const hone_tensor *hone_node_tensor(const hone_node *n, const char *name) {
  if (!n) return NULL;
  const hn_attr *a = typed(n, name, HONE_ATTR_TENSOR);
  return a ? a->t : NULL;
}

const hone_tensor *hn_constant_shown(const hone_node *n) {
  const hone_tensor *t = hn_is_op(n, "Constant") ? hone_node_tensor(n, "value") : NULL;
  return t && !hn_dtype_points(t->desc.dtype) && t->data ? t : NULL;
}

/* ------------------------------------------------------------------ editing */

bool hn_node_set_input(hone_node *n, uint32_t index, hn_value *v) {
  if (index > n->n_in) return false;
  if (v && !add_use(v, n, index)) return false;
  if (index == n->n_in) {
    hn_value **more = HN_NEW_ARRAY(&n->graph->model->arena, hn_value *, n->n_in + 1);
    if (!more) {
      if (v) drop_use(v, n, index);
      return false;
    }
    if (n->n_in) memcpy(more, n->in, n->n_in * sizeof *more);
    n->in = more;
    n->n_in++;
  } else if (n->in[index])
    drop_use(n->in[index], n, index);
  n->in[index] = v;
  return true;
}

bool hn_node_make_outputs(hone_node *n, uint32_t least) {
  for (uint32_t i = 0; i < least && i < n->n_out; i++) {
    if (n->out[i]) continue;
    hn_value *v = hn_value_create(n->graph, NULL);
    if (!v) return false;
    v->producer = n;
    v->producer_index = i;
    n->out[i] = v;
  }
  return true;
}

void hn_node_trim_outputs(hone_node *n, uint32_t least) {
  while (n->n_out > least && !n->out[n->n_out - 1]) n->n_out--;
}

static bool exchange_names(hn_value *a, hn_value *b) {
  const char *name = a->name;
  a->name = b->name;
  b->name = name;
  /* The map's keys are the name strings themselves: storing under each again keeps them borrowed from a live
   * value. */
  return hn_map_set(&a->graph->by_name, a->name, a) && hn_map_set(&b->graph->by_name, b->name, b);
}

bool hn_value_replace(hn_value *old, hn_value *with) {
  if (old == with) return true;
  if (old->is_output) {
    if (with->is_output || with->is_input || with->graph != old->graph) return false;
    if (old->is_input) return false;
  }
  if (!hn_vec_reserve(&with->users, with->users.len + old->users.len)) return false;
  for (size_t i = 0; i < old->users.len; i++) {
    hn_use u = old->users.ptr[i];
    u.node->in[u.index] = with;
    with->users.ptr[with->users.len++] = u;
  }
  with->uses += (uint32_t)old->users.len;
  old->users.len = 0;
  if (old->is_output) {
    hn_graph *g = old->graph;
    for (size_t i = 0; i < g->outputs.len; i++)
      if (g->outputs.ptr[i] == old) g->outputs.ptr[i] = with;
    with->is_output = true;
    with->declared = old->declared;
    old->is_output = false;
    return exchange_names(old, with);
  }
  return true;
}

void hn_node_remove(hone_node *n) {
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i]) drop_use(n->in[i], n, i);
  for (uint32_t i = 0; i < n->n_out; i++)
    if (n->out[i] && n->out[i]->producer == n) n->out[i]->producer = NULL;
  /* Nested graphs let go of what they captured. */
  for (uint32_t k = 0; k < n->n_attr; k++) {
    if (n->attr[k].type != HONE_ATTR_GRAPH || n->attr[k].g->parent_node != n) continue;
    hn_graph *body = n->attr[k].g;
    while (body->first) hn_node_remove(body->first);
  }
  unlink_node(n);
}

void hn_node_move(hone_node *n, hone_node *before) {
  if (n == before || n->next == before) return;
  unlink_node(n);
  link_before(n, before);
}

bool hn_node_set_origin(hone_node *n, const uint32_t *origin, uint32_t count) {
  const uint32_t *copy = hn_arena_memdup(&n->graph->model->arena, origin, count * sizeof *origin);
  if (!copy) return false;
  n->origin = copy;
  n->n_origin = count;
  n->origin_room = 0;
  if (n->graph->model->origins.node == n) n->graph->model->origins.node = NULL;
  return true;
}

/* Marks what the node stands for, unless that is done: one node may take over thousands, one after the other.
 */
static bool mark_origins(hone_node *n) {
  hn_model *m = n->graph->model;
  struct hn_origins *o = &m->origins;
  if (o->room < m->source.len) {
    const size_t room = 2 * m->source.len;
    uint32_t *mark = HN_NEW_ARRAY(&m->arena, uint32_t, room);
    if (!mark) return false;
    *o = (struct hn_origins){.mark = mark, .room = (uint32_t)room, .looked_at = o->looked_at};
  }
  if (o->node == n && o->known == n->n_origin) return true;
  if (++o->now == 0) { /* marks of long ago would count again */
    memset(o->mark, 0, o->room * sizeof *o->mark);
    o->now = 1;
  }
  for (uint32_t i = 0; i < n->n_origin; i++)
    if (n->origin[i] < o->room) o->mark[n->origin[i]] = o->now;
  o->looked_at += n->n_origin;
  o->node = n, o->known = n->n_origin;
  return true;
}

static bool is_among(const uint32_t *origin, uint32_t n, uint32_t wanted) {
  for (uint32_t i = 0; i < n; i++)
    if (origin[i] == wanted) return true;
  return false;
}

bool hn_node_inherit(hone_node *n, const hone_node *from) {
  enum { FEW = 16 }; /* are compared one by one */
  struct hn_origins *o = &n->graph->model->origins;
  const uint32_t before = n->n_origin, most = before + from->n_origin;
  const bool marks = before > FEW;
  if (marks && !mark_origins(n)) return false;
  if (!marks && o->node == n) o->node = NULL;
  if (n->origin_room < most) {
    const uint32_t room = most <= FEW ? most : 2 * most;
    uint32_t *all = HN_NEW_ARRAY(&n->graph->model->arena, uint32_t, room);
    if (!all) return false;
    if (before) memcpy(all, n->origin, before * sizeof *all);
    n->origin = all;
    n->origin_room = room;
  }
  uint32_t *to = (uint32_t *)(uintptr_t)n->origin; /* the node's own */
  uint32_t k = before;
  o->looked_at += from->n_origin;
  for (uint32_t i = 0; i < from->n_origin; i++) {
    const uint32_t origin = from->origin[i];
    const bool marked = marks && origin < o->room;
    if (marked ? o->mark[origin] == o->now : is_among(to, before, origin)) continue;
    if (marked) o->mark[origin] = o->now;
    to[k++] = origin;
  }
  n->n_origin = k;
  if (marks) o->known = k;
  return true;
}

bool hn_value_single_use(const hn_value *v) { return v->users.len == 1 && !v->is_output; }
bool hn_value_needed(const hn_value *v) { return v->users.len > 0 || v->is_output; }
