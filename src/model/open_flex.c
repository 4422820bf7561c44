/* FlexAttention(Q, K, V) -> prob_mod(Softmax(score_mod((Q sqrt(s)) (K sqrt(s))^T))) V
 *
 * Scores and weights are of the type softmax_precision, f32 where it is left out (f64 for f64). Several heads
 * of queries that read one of keys are rows of one product. The graphs see [batch, heads, queries, keys]. */
#include "model/open_flex.h"

#include <math.h>

#include "base/error.h"
#include "model/ops/common/convert.h"

typedef struct opening {
  hone_node *node;
  bool memory; /* was refused */
} opening;

static hn_value *add(opening *o, const char *op, hn_value *a, hn_value *b) {
  hn_graph *g = o->node->graph;
  hn_value *const in[2] = {a, b};
  hn_value *y = a ? hn_value_create(g, NULL) : NULL;
  hone_node *n = y ? hn_node_create(g, o->node, op, NULL, NULL, in, b ? 2 : 1, &y, 1) : NULL;
  if (n && hn_node_inherit(n, o->node)) return y;
  o->memory = true;
  return NULL;
}

static hn_value *with_int(opening *o, hn_value *v, const char *name, int64_t i) {
  if (v && hn_node_set_int(v->producer, name, i)) return v;
  o->memory = true;
  return NULL;
}

static hn_value *cast(opening *o, hn_value *v, hone_dtype from, hone_dtype to) {
  return from == to ? v : with_int(o, add(o, "Cast", v, NULL), "to", (int64_t)to);
}

/* v times a number of its type. */
static hn_value *scaled(opening *o, hn_value *v, hone_dtype type, double by) {
  uint64_t bits = 0;
  const hone_tensor_desc d = hone_desc(type, 0, NULL);
  hn_write_f64(&bits, type, 0, &by, 1);
  hn_value *c = hn_value_constant(o->node->graph, NULL, &d, &bits, true);
  return c ? add(o, "Mul", v, c) : (o->memory = true, NULL);
}

/* [batch, any, any, last] with so many heads; rows follow. */
static hn_value *heads(opening *o, hn_value *v, int64_t n) {
  const int64_t four = 4, dim[4] = {0, n, -1, 0};
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &four);
  hn_value *c = hn_value_constant(o->node->graph, NULL, &d, dim, true);
  return c ? add(o, "Reshape", v, c) : (o->memory = true, NULL);
}

/* ------------------------------------------------------------------ the graphs */

/* What a value of the body is outside; map: of the body's values by index. */
static hn_value *outside(opening *o, const hn_graph *body, hn_value **map, hn_value *v) {
  if (!v || v->graph != body || map[v->index]) return v && v->graph == body ? map[v->index] : v;
  hn_value *c = hn_value_create(o->node->graph, NULL);
  if (!c) return o->memory = true, NULL;
  if (v->constant) hn_value_set_constant(c, v->constant);
  c->deferred = v->deferred;
  return map[v->index] = c;
}

static hone_status copy_nodes(opening *o, const hn_graph *body, hn_value **map, hone_error *error) {
  hn_arena temp = {0};
  hone_status s = HONE_OK;
  for (const hone_node *m = body->first; m && !s && !o->memory; m = m->next) {
    hn_value **in = HN_NEW_ARRAY(&temp, hn_value *, m->n_in + 1),
             **out = HN_NEW_ARRAY(&temp, hn_value *, m->n_out + 1);
    o->memory = !in || !out;
    for (uint32_t k = 0; k < m->n_attr && !s; k++)
      if (m->attr[k].type == HONE_ATTR_GRAPH)
        s = hn_fail(error, HONE_ERROR_UNSUPPORTED,
                    "node '%.100s' (%.60s) in a graph of FlexAttention '%.100s' has a graph", m->name,
                    m->op_type, o->node->name);
    for (uint32_t i = 0; i < m->n_in && !o->memory; i++) in[i] = outside(o, body, map, m->in[i]);
    for (uint32_t i = 0; i < m->n_out && !o->memory; i++) out[i] = outside(o, body, map, m->out[i]);
    if (s || o->memory) break;
    hone_node *n =
        hn_node_create(o->node->graph, o->node, m->op_type, m->domain, NULL, in, m->n_in, out, m->n_out);
    o->memory = !n || !hn_node_copy_attrs(n, m) || !hn_node_inherit(n, o->node) || !hn_node_inherit(n, m);
  }
  hn_arena_free(&temp);
  return s;
}

/* v through the graph in attribute `name`; v itself where there is none. */
static hone_status through(opening *o, const char *name, hn_value **v, hone_error *error) {
  const hn_attr *a = hn_node_attr(o->node, name);
  if (!a || !*v) return HONE_OK;
  const hn_graph *body = a->g;
  if (body->inputs.len != 1 || body->outputs.len != 1)
    return hn_fail(error, HONE_ERROR_INPUT,
                   "%s of FlexAttention '%.100s' has %zu inputs and %zu outputs, expected 1 and 1", name,
                   o->node->name, body->inputs.len, body->outputs.len);
  hn_arena temp = {0};
  hn_value **map = HN_NEW_ARRAY(&temp, hn_value *, body->values.len + 1);
  o->memory = o->memory || !map;
  hone_status s = HONE_OK;
  if (map) {
    map[body->inputs.ptr[0]->index] = *v;
    s = copy_nodes(o, body, map, error);
    *v = s || o->memory ? NULL : outside(o, body, map, body->outputs.ptr[0]);
  }
  hn_arena_free(&temp);
  return s;
}

/* ------------------------------------------------------------------ the node */

static hone_status check(const hone_node *n, hone_error *error) {
  const hone_tensor_desc *q = &n->in[0]->desc, *k = &n->in[1]->desc;
  const int64_t precision = hone_node_int(n, "softmax_precision", HONE_DTYPE_F32);
  if (hn_model_opset(n->graph->model, "") < 13)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "FlexAttention '%.100s' needs opset 13 or newer beside it",
                   n->name);
  if (!q->dtype || q->rank != 4 || k->rank != 4 || q->dim[1] < 1 || k->dim[1] < 1 || q->dim[3] < 1)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "FlexAttention '%.100s': type, heads or their size are not known beforehand", n->name);
  if (q->dim[1] % k->dim[1])
    return hn_fail(error, HONE_ERROR_INPUT, "FlexAttention '%.100s': %lld heads of queries for %lld of keys",
                   n->name, (long long)q->dim[1], (long long)k->dim[1]);
  if (precision < 0 || precision >= HONE_DTYPE_COUNT || !hone_dtype_is_float((hone_dtype)precision))
    return hn_fail(error, HONE_ERROR_INPUT, "FlexAttention '%.100s': softmax_precision is %lld", n->name,
                   (long long)precision);
  return HONE_OK;
}

static hone_status open_node(hone_node *n, hone_error *error) {
  opening o = {.node = n};
  hone_status s = check(n, error);
  if (s) return s;
  const hone_tensor_desc q = n->in[0]->desc, k = n->in[1]->desc;
  const bool shared = q.dim[1] != k.dim[1];
  const hone_dtype type = (hone_dtype)hone_node_int(
      n, "softmax_precision", q.dtype == HONE_DTYPE_F64 ? HONE_DTYPE_F64 : HONE_DTYPE_F32);
  const double root = (double)sqrtf(hone_node_float(n, "scale", (float)(1 / sqrt((double)q.dim[3]))));
  hn_value *left = scaled(&o, n->in[0], q.dtype, root), *right = scaled(&o, n->in[1], q.dtype, root);
  if (shared) left = heads(&o, left, k.dim[1]);
  right = add(&o, "Transpose", right, NULL);
  if (right && !hn_node_set_ints(right->producer, "perm", (const int64_t[]){0, 1, 3, 2}, 4)) o.memory = true;
  hn_value *v = left && right ? add(&o, "MatMul", left, right) : NULL;
  /* Without graphs nobody sees how the rows lie, and all of it is one attention. */
  const bool seen = shared && (hn_node_attr(n, "score_mod") || hn_node_attr(n, "prob_mod"));
  if (seen) v = heads(&o, v, q.dim[1]);
  v = cast(&o, v, q.dtype, type);
  s = through(&o, "score_mod", &v, error);
  if (!s) v = with_int(&o, add(&o, "Softmax", v, NULL), "axis", -1);
  if (!s) s = through(&o, "prob_mod", &v, error);
  if (s) return s;
  if (seen) v = heads(&o, v, k.dim[1]);
  hn_value *values = cast(&o, n->in[2], q.dtype, type);
  v = v && values ? add(&o, "MatMul", v, values) : NULL;
  if (shared) v = heads(&o, v, q.dim[1]);
  v = cast(&o, v, type, q.dtype);
  if (!v || o.memory || !hn_value_replace(n->out[0], v)) return hn_fail_memory(error, 1, "FlexAttention");
  hn_node_remove(n);
  return HONE_OK;
}

static hone_status open_graph(hn_graph *g, bool *opened, hone_error *error) {
  hone_status s = HONE_OK;
  for (hone_node *n = g->first, *next; n && !s; n = next) {
    next = n->next;
    for (uint32_t k = 0; k < n->n_attr && !s; k++)
      if (n->attr[k].type == HONE_ATTR_GRAPH) s = open_graph(n->attr[k].g, opened, error);
    if (s || !hn_same_name(n->op_type, "FlexAttention") || !hn_same_name(n->domain, "ai.onnx.preview"))
      continue;
    *opened = true;
    s = open_node(n, error);
  }
  return s;
}

hone_status hn_open_flex(hn_model *m, bool *opened, hone_error *error) {
  *opened = false;
  return open_graph(m->graph, opened, error);
}
