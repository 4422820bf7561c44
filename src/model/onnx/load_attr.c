/* AttributeProto -> hn_attr, references to a function's attributes resolved. */
#include "base/error.h"
#include "base/half.h"
#include "model/onnx/load.h"

#include <string.h>

static const char *const type_names[] = {
    "UNDEFINED", "FLOAT",   "INT",    "STRING",        "TENSOR",         "GRAPH",      "FLOATS",     "INTS",
    "STRINGS",   "TENSORS", "GRAPHS", "SPARSE_TENSOR", "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
enum { TYPES = sizeof type_names / sizeof *type_names };

/* The field that holds the value of a type. */
static const uint8_t value_field[TYPES] = {0,
                                           HN_ONNX_ATTRIBUTE_F,
                                           HN_ONNX_ATTRIBUTE_I,
                                           HN_ONNX_ATTRIBUTE_S,
                                           HN_ONNX_ATTRIBUTE_T,
                                           HN_ONNX_ATTRIBUTE_G,
                                           HN_ONNX_ATTRIBUTE_FLOATS,
                                           HN_ONNX_ATTRIBUTE_INTS,
                                           HN_ONNX_ATTRIBUTE_STRINGS,
                                           HN_ONNX_ATTRIBUTE_TENSORS,
                                           HN_ONNX_ATTRIBUTE_GRAPHS,
                                           HN_ONNX_ATTRIBUTE_SPARSE_TENSOR,
                                           HN_ONNX_ATTRIBUTE_SPARSE_TENSORS,
                                           HN_ONNX_ATTRIBUTE_TP,
                                           HN_ONNX_ATTRIBUTE_TYPE_PROTOS};

typedef struct proto {
  const char *name, *ref;
  int64_t type;
  uint32_t seen;     /* bit per field number */
  hn_pb_field value; /* last field of those that hold values */
  size_t count;      /* elements of a list */
} proto;

static bool is_value(uint32_t field) {
  for (int t = 1; t < TYPES; t++)
    if (value_field[t] == field) return true;
  return false;
}

static hone_status read_proto(hn_onnx_loader *l, hn_pb *m, proto *p) {
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_ATTRIBUTE_NAME) {
      if (!(p->name = hn_pb_name(m, &f, &l->scratch))) break;
    } else if (f.number == HN_ONNX_ATTRIBUTE_REF_ATTR_NAME) {
      if (!(p->ref = hn_pb_name(m, &f, &l->scratch))) break;
    } else if (f.number == HN_ONNX_ATTRIBUTE_TYPE) {
      p->type = (int64_t)f.value;
    } else if (is_value(f.number)) {
      p->seen |= 1u << f.number;
      p->value = f;
      size_t n = f.desc->form == HN_PB_INTS || f.desc->form == HN_PB_FLOATS ? hn_pb_count(m, &f) : 1;
      if (n == SIZE_MAX) break;
      p->count += n;
    }
  }
  if (l->source.status != HONE_OK) return l->source.status;
  if (!*p->name) return hn_pb_fail(m, HONE_ERROR_INPUT, "an attribute has no name");
  if (p->seen & (p->seen - 1))
    return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute has values of two types");
  if (p->type == 0 && p->seen) /* files from before the type was written */
    for (int t = 1; t < TYPES; t++)
      if (p->seen == 1u << value_field[t]) p->type = t;
  if (p->type < 0 || p->type >= TYPES)
    return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "the attribute's type %lld is unknown", (long long)p->type);
  if (p->type == 0 && !*p->ref) return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute has no type");
  if (p->type && p->seen && p->seen != 1u << value_field[p->type])
    return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute's type is %s, but its value is in the field %s",
                      type_names[p->type], p->value.desc->name);
  return HONE_OK;
}

/* ------------------------------------------------------------------ references */

/* The AttributeProto called `name` in field `number` of m. */
static bool find_attr(const hn_pb *m, uint32_t number, const char *name, hn_pb *out) {
  hn_pb again = *m;
  hn_pb_rewind(&again);
  size_t n = strlen(name);
  for (hn_pb_field f; hn_pb_next(&again, &f);) {
    if (f.number != number || !hn_pb_open(out, m, &f)) continue;
    for (hn_pb_field g; hn_pb_next(out, &g);)
      if (g.number == HN_ONNX_ATTRIBUTE_NAME && g.len == n && memcmp(g.ptr, name, n) == 0) {
        hn_pb_rewind(out);
        return true;
      }
  }
  return false;
}

static hone_status follow(hn_onnx_loader *l, hn_pb *m, const proto *p, hone_node *node,
                          const hn_onnx_scope *scope, const char *name) {
  hn_pb target;
  if (!scope->call)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute refers to '%.80s' of a function, but is in none",
                      p->ref);
  if (find_attr(scope->call->node, HN_ONNX_NODE_ATTRIBUTE, p->ref, &target)) {
    hone_status status = hn_onnx_load_attr(l, &target, node, scope->call->scope, name, p->type);
    /* Not set: the call refers on to something that its own caller left out. */
    if (status != HONE_OK || hn_node_attr(node, name)) return status;
  }
  hn_pb body = scope->call->function->body;
  body.depth = m->depth;
  if (l->source.status == HONE_OK && find_attr(&body, HN_ONNX_FUNCTION_ATTRIBUTE_PROTO, p->ref, &target)) {
    static const hn_onnx_scope nowhere = {0};
    return hn_onnx_load_attr(l, &target, node, &nowhere, name, p->type);
  }
  return l->source.status; /* neither given nor defaulted: the operator sees no attribute */
}

/* ------------------------------------------------------------------ values */

/* Lists are decoded where they stay: they may be as large as the file. */
static hone_status load_list(hn_pb *m, const proto *p, hone_node *node, const char *name) {
  size_t size = p->type == HONE_ATTR_FLOATS ? sizeof(float)
                : p->type == HONE_ATTR_INTS ? sizeof(int64_t)
                                            : sizeof(hone_string);
  hn_arena *arena = &node->graph->model->arena;
  uint8_t *list = p->count > SIZE_MAX / size ? NULL : hn_arena_alloc(arena, p->count * size), *at = list;
  if (!list) return hn_pb_no_memory(m);
  hn_pb_rewind(m);
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number != value_field[p->type]) continue;
    size_t n = 1;
    if (p->type == HONE_ATTR_STRINGS) {
      hone_string s = {f.len ? hn_arena_strndup(arena, (const char *)f.ptr, f.len) : "", f.len};
      if (!s.ptr) return hn_pb_no_memory(m);
      memcpy(at, &s, sizeof s);
    } else {
      n = hn_pb_count(m, &f);
      if (p->type == HONE_ATTR_INTS)
        hn_pb_ints(&f, (int64_t *)(void *)at);
      else
        hn_pb_fixed(&f, at);
    }
    at += n * size;
  }
  bool ok = p->type == HONE_ATTR_FLOATS ? hn_node_set_floats(node, name, NULL, 0)
            : p->type == HONE_ATTR_INTS ? hn_node_set_ints(node, name, NULL, 0)
                                        : hn_node_set_strings(node, name, NULL, 0);
  hn_attr *attr = ok ? (hn_attr *)hn_node_attr(node, name) : NULL;
  if (!attr) return hn_pb_no_memory(m);
  attr->list.n = p->count;
  attr->list.ptr = list;
  return HONE_OK;
}

static hone_status load_graph(hn_onnx_loader *l, hn_pb *m, const proto *p, hone_node *node,
                              const hn_onnx_scope *scope, const char *name) {
  hn_pb part;
  hn_map names = {0};
  if (!scope->graph) return hn_pb_fail(m, HONE_ERROR_INPUT, "a function's default attribute is a graph");
  if (!hn_pb_open(&part, m, &p->value)) return l->source.status;
  hn_graph *g = hn_graph_create(l->model, node->graph, name);
  if (!g || !hn_node_set_graph(node, name, g)) return hn_pb_no_memory(m);
  hn_onnx_scope inner = {
      .outer = scope, .graph = g, .names = scope->call ? &names : NULL, .call = scope->call};
  hone_status status = hn_onnx_load_graph(l, &part, &inner);
  hn_map_free(&names);
  return status;
}

/* What a Constant of the main graph shows is read as initializers are: exporters write all weights so. */
static hone_status load_tensor(hn_onnx_loader *l, hn_pb *m, const proto *p, hone_node *node,
                               const char *name) {
  hn_pb part;
  hone_tensor t;
  if (!hn_pb_open(&part, m, &p->value)) return l->source.status;
  l->data.loose = node->graph == l->model->graph && hn_is_op(node, "Constant");
  hone_status status = hn_onnx_tensor(&l->data, &part, &t, NULL);
  l->data.loose = false;
  if (status != HONE_OK) return status;
  return hn_node_set_tensor(node, name, &t) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status load_type(hn_onnx_loader *l, hn_pb *m, const proto *p, hone_node *node, const char *name) {
  hn_pb part;
  hone_dtype dtype;
  if (!hn_pb_open(&part, m, &p->value)) return l->source.status;
  hone_status status = hn_onnx_load_type_proto(l, &part, &dtype);
  if (status != HONE_OK) return status;
  return hn_node_set_type(node, name, dtype) ? HONE_OK : hn_pb_no_memory(m);
}

hone_status hn_onnx_load_attr(hn_onnx_loader *l, hn_pb *m, hone_node *node, const hn_onnx_scope *scope,
                              const char *rename, int64_t must_be) {
  proto p = {.name = "", .ref = ""};
  hone_status status = read_proto(l, m, &p);
  if (status != HONE_OK) return status;
  const char *name = rename ? rename : p.name;
  if (must_be && p.type && p.type != must_be)
    return hn_pb_fail(
        m, HONE_ERROR_INPUT, "the attribute is %s, but '%.80s' inside the function refers to it as %s",
        type_names[p.type], name, must_be > 0 && must_be < TYPES ? type_names[must_be] : "something unknown");
  if (hn_node_attr(node, name))
    return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute '%.80s' is given twice", name);
  if (*p.ref) return follow(l, m, &p, node, scope, name);
  bool ok = true;
  /* A value left out is the type's zero: some writers skip it. */
  switch (p.type) {
  case HONE_ATTR_FLOAT: ok = hn_node_set_float(node, name, hn_bits_f32((uint32_t)p.value.value)); break;
  case HONE_ATTR_INT: ok = hn_node_set_int(node, name, (int64_t)p.value.value); break;
  case HONE_ATTR_STRING:
    ok = hn_node_set_string(node, name, p.value.ptr ? (const char *)p.value.ptr : "", p.value.len);
    break;
  case HONE_ATTR_FLOATS:
  case HONE_ATTR_INTS:
  case HONE_ATTR_STRINGS: return load_list(m, &p, node, name);
  case HONE_ATTR_TENSOR:
  case HONE_ATTR_TYPE:
  case HONE_ATTR_GRAPH:
    if (!p.seen) return hn_pb_fail(m, HONE_ERROR_INPUT, "the attribute '%.80s' has no value", name);
    return p.type == HONE_ATTR_GRAPH    ? load_graph(l, m, &p, node, scope, name)
           : p.type == HONE_ATTR_TENSOR ? load_tensor(l, m, &p, node, name)
                                        : load_type(l, m, &p, node, name);
  default:
    return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED,
                      "the attribute '%.80s' of %.80s has type %s, which hone does not read", name,
                      node->op_type, type_names[p.type]);
  }
  return ok ? HONE_OK : hn_pb_no_memory(m);
}
