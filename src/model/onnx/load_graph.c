/* GraphProto -> hn_graph: inputs, initializers, nodes, outputs and declared types, whatever their order in
 * the file. */
#include "base/error.h"
#include "model/ir/items.h"
#include "model/onnx/load.h"

#include <string.h>

enum { LARGEST_TENSOR_BITS = 40 }; /* 1 TiB: a declared size beyond it is a damaged file or a mistake */

/* ------------------------------------------------------------------ names */

bool hn_onnx_find(const hn_onnx_scope *s, const char *name, hn_value **found) {
  for (; s; s = s->outer) {
    const hn_map *names = s->names ? s->names : &s->graph->by_name;
    if ((*found = hn_map_get(names, name)) || hn_map_has(names, name)) return true;
  }
  return false;
}

/* A value inside a function gets a name of its own: the same body may stand in the graph many times. */
static hn_value *define_inside(hn_onnx_loader *l, const hn_onnx_scope *s, const char *name) {
  hn_value *v = s->outer ? NULL : hn_map_get(&s->call->outputs, name);
  const char *key = hn_arena_strdup(&l->scratch, name);
  if (!key) return NULL;
  if (!v) {
    const char *unique = hn_arena_printf(&l->scratch, "%s/%s", s->call->prefix, name);
    while (unique && hn_value_find(s->graph, unique))
      unique = hn_arena_printf(&l->scratch, "%s/%s_%u", s->call->prefix, name, l->model->next_name++);
    v = unique ? hn_value_create(s->graph, unique) : NULL;
  }
  return v && hn_map_set(s->names, key, v) ? v : NULL;
}

/* Makes the value that the file calls `name` in this scope. */
static hn_value *define(hn_onnx_loader *l, const hn_pb *m, const hn_onnx_scope *s, const char *name) {
  if (hn_map_has(s->names ? s->names : &s->graph->by_name, name)) {
    hn_pb_fail(m, HONE_ERROR_INPUT, "'%.80s' is defined twice", name);
    return NULL;
  }
  hn_value *v = s->names ? define_inside(l, s, name) : hn_value_create(s->graph, name);
  if (!v) hn_pb_no_memory(m);
  return v;
}

/* ------------------------------------------------------------------ types */

/* What converters write for a name that they do not have. */
static bool names_nothing(const char *symbol) {
  static const char *const none[] = {"", "?", "-1", "None"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (strcmp(symbol, none[i]) == 0) return true;
  return false;
}

static hone_status load_dim(hn_onnx_loader *l, hn_pb *m, int64_t *dim) {
  const char *symbol = "";
  bool known = false;
  *dim = HONE_DIM_UNKNOWN;
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_DIM_DIM_VALUE) {
      *dim = (int64_t)f.value;
      known = true;
    } else if (f.number == HN_ONNX_DIM_DIM_PARAM && !(symbol = hn_pb_name(m, &f, &l->model->arena)))
      break;
  }
  if (l->source.status != HONE_OK) return l->source.status;
  /* Converters that keep shapes as numbers (Paddle's, TensorFlow's) write -1 where others write none. */
  if (known && *dim == -1) {
    known = false;
    *dim = HONE_DIM_UNKNOWN;
  }
  if (known && *dim < 0) {
    hone_status status = hn_pb_fail(m, HONE_ERROR_INPUT, "a dimension is declared as %lld", (long long)*dim);
    hn_error_hint(l->source.error, "an unknown dimension has no dim_value, -1, or a name in dim_param");
    return status;
  }
  if (known || names_nothing(symbol)) return HONE_OK;
  /* As hn_model_symbol, but in constant time: a file may have very many. */
  *dim = -(int64_t)(uintptr_t)hn_map_get(&l->symbols, symbol);
  if (*dim) return HONE_OK;
  if (!hn_vec_push(&l->model->symbols, symbol)) return hn_pb_no_memory(m);
  *dim = -1 - (int64_t)l->model->symbols.len;
  return hn_map_set(&l->symbols, symbol, (void *)(uintptr_t) - *dim) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status load_shape(hn_onnx_loader *l, hn_pb *m, hone_tensor_desc *desc) {
  hn_pb dim;
  double bytes = (double)hone_dtype_size(desc->dtype);
  desc->rank = 0;
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (!hn_pb_open(&dim, m, &f)) break;
    if (desc->rank == HONE_MAX_RANK)
      return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "a shape has more than %d dimensions", HONE_MAX_RANK);
    int64_t *d = &desc->dim[desc->rank++];
    if (load_dim(l, &dim, d) != HONE_OK) break;
    if (*d > 0) bytes *= (double)*d;
  }
  if (l->source.status == HONE_OK && bytes > (double)(1ull << LARGEST_TENSOR_BITS))
    hn_pb_fail(m, HONE_ERROR_INPUT, "a tensor is declared with more than %.3g bytes", bytes);
  if (l->source.status == HONE_OK) *desc = hone_desc(desc->dtype, desc->rank, desc->dim);
  return l->source.status;
}

static hone_status load_tensor_type(hn_onnx_loader *l, hn_pb *m, hone_tensor_desc *desc) {
  hn_pb shape;
  hn_pb_field shape_at = {0};
  *desc = (hone_tensor_desc){.rank = -1};
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_TENSOR_TYPE_SHAPE) {
      shape_at = f;
    } else if (f.value >= HONE_DTYPE_COUNT) {
      return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "element type %lld (%s) is none that hone knows",
                        (long long)f.value, hn_onnx_type_name((int64_t)f.value));
    } else
      desc->dtype = (hone_dtype)f.value;
  }
  if (l->source.status == HONE_OK && shape_at.ptr && hn_pb_open(&shape, m, &shape_at))
    load_shape(l, &shape, desc);
  return l->source.status;
}

/* The type of a sequence or optional around a type; what hone has no type for becomes foreign. */
static void wrap(bool sequence, bool *foreign, hone_tensor_desc *desc) {
  const bool map = hn_dtype_is_map(desc->dtype);
  const bool nest = map ? !sequence
                        : !hone_dtype_is_tensor(desc->dtype) &&
                              (sequence || desc->dtype & HONE_OPTIONAL || hn_dtype_has_map(desc->dtype));
  *foreign |= nest || desc->dtype == HONE_DTYPE_NONE;
  *desc = *foreign
              ? (hone_tensor_desc){.rank = -1}
              : hone_desc((hone_dtype)((sequence ? HONE_SEQUENCE : HONE_OPTIONAL) | desc->dtype), 0, NULL);
}

static hone_status load_type(hn_onnx_loader *l, hn_pb *m, bool *foreign, hone_tensor_desc *desc);

static void load_map_type(hn_onnx_loader *l, hn_pb *m, bool *foreign, hone_tensor_desc *desc) {
  hn_pb part;
  int64_t key = 0;
  *desc = (hone_tensor_desc){.rank = -1};
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_MAP_TYPE_KEY_TYPE)
      key = f.value;
    else if (hn_pb_open(&part, m, &f))
      load_type(l, &part, foreign, desc);
  }
  const unsigned bit = key == HONE_DTYPE_I64 ? HONE_MAP_I64 : key == HONE_DTYPE_STRING ? HONE_MAP_STRING : 0;
  *foreign |= !bit || !hone_dtype_is_tensor(desc->dtype) || desc->dtype == HONE_DTYPE_NONE;
  *desc = *foreign ? (hone_tensor_desc){.rank = -1} : hone_desc((hone_dtype)(bit | desc->dtype), 0, NULL);
}

static hone_status load_type(hn_onnx_loader *l, hn_pb *m, bool *foreign, hone_tensor_desc *desc) {
  hn_pb part, element;
  *desc = (hone_tensor_desc){.rank = -1};
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    switch (f.number) {
    case HN_ONNX_TYPE_TENSOR_TYPE:
      if (hn_pb_open(&part, m, &f)) load_tensor_type(l, &part, desc);
      break;
    case HN_ONNX_TYPE_SEQUENCE_TYPE:
    case HN_ONNX_TYPE_OPTIONAL_TYPE:
      if (!hn_pb_open(&part, m, &f)) break;
      for (hn_pb_field e; hn_pb_next(&part, &e);)
        if (hn_pb_open(&element, &part, &e)) load_type(l, &element, foreign, desc);
      wrap(f.number == HN_ONNX_TYPE_SEQUENCE_TYPE, foreign, desc);
      break;
    case HN_ONNX_TYPE_MAP_TYPE:
      if (hn_pb_open(&part, m, &f)) load_map_type(l, &part, foreign, desc);
      break;
    case HN_ONNX_TYPE_SPARSE_TENSOR_TYPE:
      return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "sparse tensors are not supported");
    case HN_ONNX_TYPE_OPAQUE_TYPE:
      return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "opaque types are not supported");
    default: break;
    }
  }
  return l->source.status;
}

hone_status hn_onnx_load_type_proto(hn_onnx_loader *l, hn_pb *m, hone_dtype *dtype) {
  bool foreign = false;
  hone_tensor_desc desc;
  hone_status status = load_type(l, m, &foreign, &desc);
  *dtype = desc.dtype;
  if (status == HONE_OK && (foreign || !desc.dtype || hn_dtype_has_map(desc.dtype)))
    return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "the type is a map, or nested deeper than hone reads");
  return status;
}

/* What a file says about a value in two places must agree as far as both say something. */
static hone_status check_same(const hn_pb *m, const char *name, const hone_tensor_desc *is,
                              const hone_tensor_desc *declared) {
  char a[96], b[96];
  bool clash = is->dtype && declared->dtype && is->dtype != declared->dtype;
  if (is->rank >= 0 && declared->rank >= 0) {
    clash |= is->rank != declared->rank;
    for (int32_t i = 0; i < is->rank && !clash; i++)
      clash = is->dim[i] >= 0 && declared->dim[i] >= 0 && is->dim[i] != declared->dim[i];
  }
  if (!clash) return HONE_OK;
  return hn_pb_fail(m, HONE_ERROR_INPUT, "'%.80s' is declared as %s, but it is %s", name,
                    hone_desc_format(declared, a, sizeof a), hone_desc_format(is, b, sizeof b));
}

hone_status hn_onnx_load_type(hn_onnx_loader *l, hn_pb *m, hn_value *v) {
  hn_pb type;
  hone_tensor_desc desc = {.rank = -1};
  bool has_type = false, foreign = false;
  hn_pb_rewind(m);
  for (hn_pb_field f; hn_pb_next(m, &f);)
    if (f.number == HN_ONNX_VALUE_TYPE && hn_pb_open(&type, m, &f)) {
      has_type = true;
      load_type(l, &type, &foreign, &desc);
    }
  if (l->source.status != HONE_OK || !has_type) return l->source.status;
  if (v->constant) {
    if (foreign || !hone_dtype_is_tensor(desc.dtype))
      return hn_pb_fail(m, HONE_ERROR_INPUT, "'%.80s' is a tensor, but is declared as something else",
                        v->name);
    return check_same(m, v->name, &v->constant->desc, &desc);
  }
  hone_status status = check_same(m, v->name, &v->desc, &desc);
  if (status != HONE_OK) return status;
  v->foreign = foreign;
  if (desc.dtype == HONE_DTYPE_NONE) desc.dtype = v->desc.dtype;
  if (desc.rank >= 0 || v->desc.rank < 0) v->desc = desc;
  return HONE_OK;
}

/* ------------------------------------------------------------------ the parts of a graph */

typedef hone_status part_fn(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope);

/* Calls fn for every message in field `number`. */
static hone_status each(hn_onnx_loader *l, hn_pb *m, uint32_t number, const hn_onnx_scope *scope,
                        part_fn *fn) {
  hn_pb part;
  hone_status status = HONE_OK;
  hn_pb_rewind(m);
  for (hn_pb_field f; status == HONE_OK && hn_pb_next(m, &f);)
    if (f.number == number && hn_pb_open(&part, m, &f)) status = fn(l, &part, scope);
  return status != HONE_OK ? status : l->source.status;
}

/* The name field of a ValueInfoProto, in the scratch arena; NULL: error. */
static const char *value_name(hn_onnx_loader *l, hn_pb *m) {
  const char *name = "";
  hn_pb_rewind(m);
  for (hn_pb_field f; hn_pb_next(m, &f);)
    if (f.number == HN_ONNX_VALUE_NAME && !(name = hn_pb_name(m, &f, &l->scratch))) return NULL;
  if (l->source.status != HONE_OK) return NULL;
  if (*name) return name;
  hn_pb_fail(m, HONE_ERROR_INPUT, "an input, output or value_info has no name");
  return NULL;
}

static hone_status load_input(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  const char *name = value_name(l, m);
  hn_value *v = name ? define(l, m, scope, name) : NULL;
  if (!v || hn_onnx_load_type(l, m, v) != HONE_OK) return l->source.status;
  return hn_graph_add_input(scope->graph, v) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status load_initializer(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  const char *name;
  hone_tensor t, *kept;
  l->data.loose = scope->graph == l->model->graph;
  hone_status status = hn_onnx_tensor(&l->data, m, &t, &name);
  l->data.loose = false;
  if (status != HONE_OK) return status;
  if (!*name) return hn_pb_fail(m, HONE_ERROR_INPUT, "an initializer has no name");
  hn_value *v = hn_map_get(scope->names ? scope->names : &scope->graph->by_name, name);
  if (v && v->is_input && !v->constant)
    status = !v->foreign && hone_dtype_is_tensor(v->desc.dtype)
                 ? check_same(m, name, &t.desc, &v->desc)
                 : hn_pb_fail(m, HONE_ERROR_INPUT, "'%.80s' has an initializer, but is no tensor", name);
  else
    v = define(l, m, scope, name);
  if (!v || status != HONE_OK) return l->source.status;
  kept = hn_arena_memdup(&l->model->arena, &t, sizeof t);
  if (!kept) return hn_pb_no_memory(m);
  hn_value_set_constant(v, kept);
  return HONE_OK;
}

static hone_status refuse_sparse(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  (void)scope;
  hn_pb values;
  const char *name = "";
  for (hn_pb_field f; hn_pb_next(m, &f);)
    if (f.number == HN_ONNX_SPARSE_VALUES && hn_pb_open(&values, m, &f))
      for (hn_pb_field g; hn_pb_next(&values, &g);)
        if (g.number == HN_ONNX_TENSOR_NAME && !(name = hn_pb_name(&values, &g, &l->scratch)))
          return l->source.status;
  return hn_pb_fail(m, HONE_ERROR_UNSUPPORTED, "the initializer '%.80s' is sparse, which hone does not read",
                    name);
}

/* Before IR 4 every initializer had to be listed as input and was no less constant for that. */
static void drop_constant_inputs(hn_graph *g) {
  size_t kept = 0;
  for (size_t i = 0; i < g->inputs.len; i++) {
    hn_value *v = g->inputs.ptr[i];
    if (v->constant)
      v->is_input = false;
    else
      g->inputs.ptr[kept++] = v;
  }
  g->inputs.len = kept;
}

static hone_status load_output(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  hn_value *v;
  const char *name = value_name(l, m);
  if (!name) return l->source.status;
  if (!hn_onnx_find(scope, name, &v) || !v)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "nothing makes the output '%.80s'", name);
  if (v->graph !=
      scope->graph) { /* a body that hands an outer value back; of the same name it would hide that value */
    hn_value *mine = hn_value_create(scope->graph, NULL);
    if (!mine || !hn_node_create(scope->graph, NULL, "Identity", NULL, NULL, &v, 1, &mine, 1))
      return hn_pb_no_memory(m);
    v = mine;
  }
  if (hn_onnx_load_type(l, m, v) != HONE_OK) return l->source.status;
  if (v->desc.rank >= 0 && !(v->declared = hn_arena_memdup(&l->model->arena, &v->desc, sizeof v->desc)))
    return hn_pb_no_memory(m);
  return hn_graph_add_output(scope->graph, v) ? HONE_OK : hn_pb_no_memory(m);
}

static hone_status load_value_info(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  const char *name = value_name(l, m);
  if (!name) return l->source.status;
  hn_value *v = hn_map_get(scope->names ? scope->names : &scope->graph->by_name, name);
  return v ? hn_onnx_load_type(l, m, v) : HONE_OK; /* exporters leave entries of values that are gone */
}

/* Before any node is read; what functions expand to takes no name of a node beside them, even of a later one.
 */
static hone_status define_outputs(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  const bool beside = !scope->call && l->functions.len;
  for (hn_pb_field f; hn_pb_next(m, &f);) {
    if (f.number == HN_ONNX_NODE_NAME && beside && f.len) {
      const char *own = hn_pb_name(m, &f, &l->scratch);
      if (!own) break;
      if (!hn_map_has(&l->taken_names, own) && !hn_map_set(&l->taken_names, own, (void *)1))
        return hn_pb_no_memory(m);
    }
    if (f.number != HN_ONNX_NODE_OUTPUT || !f.len) continue;
    const char *name = hn_pb_name(m, &f, &l->scratch);
    if (!name || !define(l, m, scope, name)) break;
  }
  return l->source.status;
}

hone_status hn_onnx_load_nodes(hn_onnx_loader *l, hn_pb *m, uint32_t number, const hn_onnx_scope *scope) {
  hone_status status = each(l, m, number, scope, define_outputs);
  return status == HONE_OK ? each(l, m, number, scope, hn_onnx_load_node) : status;
}

static hone_status load_graph_name(hn_onnx_loader *l, hn_pb *m, hn_graph *g) {
  hn_pb_rewind(m);
  for (hn_pb_field f; hn_pb_next(m, &f);)
    if (f.number == HN_ONNX_GRAPH_NAME && f.len) {
      const char *name = hn_pb_name(m, &f, &l->model->arena);
      if (name) g->name = name;
    }
  return l->source.status;
}

hone_status hn_onnx_load_graph(hn_onnx_loader *l, hn_pb *m, const hn_onnx_scope *scope) {
  if (++l->depth > HN_ONNX_NESTING)
    return hn_pb_fail(m, HONE_ERROR_INPUT, "graphs and function calls are nested more than %d deep",
                      HN_ONNX_NESTING);
  hone_status status = load_graph_name(l, m, scope->graph);
  if (status == HONE_OK) status = each(l, m, HN_ONNX_GRAPH_SPARSE_INITIALIZER, scope, refuse_sparse);
  if (status == HONE_OK) status = each(l, m, HN_ONNX_GRAPH_INPUT, scope, load_input);
  if (status == HONE_OK) status = each(l, m, HN_ONNX_GRAPH_INITIALIZER, scope, load_initializer);
  if (status == HONE_OK && l->model->ir_version < 4) drop_constant_inputs(scope->graph);
  if (status == HONE_OK) status = hn_onnx_load_nodes(l, m, HN_ONNX_GRAPH_NODE, scope);
  if (status == HONE_OK) status = each(l, m, HN_ONNX_GRAPH_OUTPUT, scope, load_output);
  if (status == HONE_OK) status = each(l, m, HN_ONNX_GRAPH_VALUE_INFO, scope, load_value_info);
  l->depth--;
  return status;
}
