/* LabelEncoder: every element is a key, and becomes the key's value; what is no key becomes the default. Of
 * equal keys the last one counts, NaN equals NaN. Version 1 knows one list: texts become their places in it,
 * and places texts. */
#include "model/ops/classical/lookup.h"
#include "model/ops/common/bulk.h"

#include <stdio.h>

#include "base/integers.h"
#include "model/ir/graph.h"

/* Keys or values: one of the lists of a node, or a tensor. */
typedef struct list {
  hone_dtype dtype; /* NONE: there is none */
  int64_t n;
  const void *data;
} list;

static list list_of(const hone_node *node, const char *prefix) {
  char name[32];
  size_t n;
  const void *data;
  snprintf(name, sizeof name, "%s_strings", prefix);
  if ((data = hone_node_strings(node, name, &n))) return (list){HONE_DTYPE_STRING, (int64_t)n, data};
  snprintf(name, sizeof name, "%s_int64s", prefix);
  if ((data = hone_node_ints(node, name, &n))) return (list){HONE_DTYPE_I64, (int64_t)n, data};
  snprintf(name, sizeof name, "%s_floats", prefix);
  if ((data = hone_node_floats(node, name, &n))) return (list){HONE_DTYPE_F32, (int64_t)n, data};
  snprintf(name, sizeof name, "%s_tensor", prefix);
  const hone_tensor *t = hone_node_tensor(node, name);
  return t ? (list){t->desc.dtype, hn_count(t), t->data} : (list){HONE_DTYPE_NONE, 0, NULL};
}

/* The one list of version 1. */
static const hone_string *classes_of(const hone_node *node, int64_t *n) {
  size_t count = 0;
  const hone_string *classes = hone_node_strings(node, "classes_strings", &count);
  return *n = (int64_t)count, count ? classes : NULL;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  int64_t n_classes;
  if (classes_of(io->node, &n_classes)) {
    const hone_status s =
        hn_infer_dtype_in(io, 0, HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_STRING), error);
    if (s) return s;
    hn_infer_set(io, 0,
                 x->dtype == HONE_DTYPE_STRING ? HONE_DTYPE_I64
                 : x->dtype                    ? HONE_DTYPE_STRING
                                               : HONE_DTYPE_NONE,
                 x->rank, x->dim);
    return HONE_OK;
  }
  const list keys = list_of(io->node, "keys"), values = list_of(io->node, "values");
  const hone_tensor *otherwise = hone_node_tensor(io->node, "default_tensor");
  if (!keys.n || keys.n != values.n)
    return hn_op_bad(io->node, error, "%lld keys and %lld values", (long long)keys.n, (long long)values.n);
  if (x->dtype && x->dtype != keys.dtype)
    return hn_op_bad(io->node, error, "X is %s, the keys are %s", hone_dtype_name(x->dtype),
                     hone_dtype_name(keys.dtype));
  if (otherwise && (otherwise->desc.dtype != values.dtype || hn_count(otherwise) != 1))
    return hn_op_bad(io->node, error, "default_tensor is not one %s", hone_dtype_name(values.dtype));
  hn_infer_set(io, 0, values.dtype, x->rank, x->dim);
  return HONE_OK;
}

/* One value. */
typedef union value {
  hone_string text;
  uint64_t wide;
  char bytes[sizeof(hone_string)];
} value;

/* The default of the values' type. */
static void default_of(const hone_node *node, hone_dtype dtype, value *v) {
  const hone_tensor *given = hone_node_tensor(node, "default_tensor");
  hone_tensor y = {hone_desc(dtype, 0, NULL), v};
  memset(v, 0, sizeof *v);
  if (given)
    memcpy(v, given->data, hone_dtype_size(dtype));
  else if (dtype == HONE_DTYPE_STRING)
    v->text = hn_node_text(node, "default_string", "_Unused");
  else if (hone_dtype_is_float(dtype))
    hn_set_f64(&y, 0, (double)hone_node_float(node, "default_float", -0.0f));
  else
    hn_set_i64(&y, 0, hone_node_int(node, "default_int64", -1));
}

/* The values of SIZE bytes at n places, a size that the compiler knows where it is a usual one. */
#define PUT(SIZE)                                                                                            \
  for (int64_t i = 0; i < n; i++, y += (SIZE))                                                               \
    memcpy(y, place[i] < 0 ? otherwise->bytes : values + place[i] * (int64_t)(SIZE), SIZE);                  \
  break

static void put(char *y, const char *values, const value *otherwise, const int64_t *place, int64_t n,
                size_t size) {
  switch (size) {
  case 4: PUT(4);
  case 8: PUT(8);
  case sizeof(hone_string): PUT(sizeof(hone_string));
  default: PUT(size);
  }
}
#undef PUT

/* Places in the list become texts. */
static void texts_at(const hone_call *call, const hone_string *classes, int64_t n_classes) {
  const int64_t *x = call->input[0]->data;
  hone_string *y = call->output[0]->data;
  const hone_string otherwise = hn_node_text(call->node, "default_string", "_Unused");
  for (int64_t i = 0, n = hn_count(call->input[0]); i < n; i++)
    y[i] = x[i] >= 0 && x[i] < n_classes ? classes[x[i]] : otherwise;
}

static hone_status places_of(hone_call *call, const hone_string *classes, int64_t n_classes,
                             hone_error *error) {
  const hone_tensor from = {hone_desc(HONE_DTYPE_STRING, 1, &n_classes), (void *)classes};
  const int64_t otherwise = hone_node_int(call->node, "default_int64", -1), n = hn_count(call->input[0]);
  int64_t *y = call->output[0]->data;
  hn_lookup keys;
  const hone_status s = hn_lookup_make(call, &from, &keys, error);
  for (int64_t i = 0, some; i < n && !s; i += some) {
    some = hn_min(HN_LOOKUP_BLOCK, n - i);
    if (i % 4096 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_lookup_places(&keys, call->input[0], i, some, y + i);
    for (int64_t k = i; k < i + some; k++)
      if (y[k] < 0) y[k] = otherwise;
  }
  return s;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  int64_t n_classes;
  const hone_string *classes = classes_of(call->node, &n_classes);
  if (classes && x->desc.dtype == HONE_DTYPE_STRING) return places_of(call, classes, n_classes, error);
  if (classes) return texts_at(call, classes, n_classes), HONE_OK;
  const list given = list_of(call->node, "keys"), values = list_of(call->node, "values");
  const hone_tensor from = {hone_desc(given.dtype, 1, &given.n), (void *)given.data};
  int64_t place[HN_LOOKUP_BLOCK];
  value otherwise;
  hn_lookup keys;
  const hone_status s = hn_lookup_make(call, &from, &keys, error);
  if (s) return s;
  default_of(call->node, values.dtype, &otherwise);
  for (int64_t i = 0, some, n = hn_count(x); i < n; i += some) {
    some = hn_min(HN_LOOKUP_BLOCK, n - i);
    if (i % 4096 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_lookup_places(&keys, x, i, some, place);
    put(hn_at_mut(call->output[0], i), values.data, &otherwise, place, some, hone_dtype_size(values.dtype));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "classes_strings", .type = HONE_ATTR_STRINGS, .until = 1},
                                       {.name = "keys_strings", .type = HONE_ATTR_STRINGS, .since = 2},
                                       {.name = "keys_int64s", .type = HONE_ATTR_INTS, .since = 2},
                                       {.name = "keys_floats", .type = HONE_ATTR_FLOATS, .since = 2},
                                       {.name = "keys_tensor", .type = HONE_ATTR_TENSOR, .since = 4},
                                       {.name = "values_strings", .type = HONE_ATTR_STRINGS, .since = 2},
                                       {.name = "values_int64s", .type = HONE_ATTR_INTS, .since = 2},
                                       {.name = "values_floats", .type = HONE_ATTR_FLOATS, .since = 2},
                                       {.name = "values_tensor", .type = HONE_ATTR_TENSOR, .since = 4},
                                       {.name = "default_string", .type = HONE_ATTR_STRING},
                                       {.name = "default_int64", .type = HONE_ATTR_INT},
                                       {.name = "default_float", .type = HONE_ATTR_FLOAT, .since = 2},
                                       {.name = "default_tensor", .type = HONE_ATTR_TENSOR, .since = 4},
                                       {0}};

HN_OP(label_encoder) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "ai.onnx.ml",
                        .op_type = "LabelEncoder",
                        .since = 1,
                        HN_INPUTS(1, 1),
                        HN_OUTPUTS(1, 1),
                        .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) |
                                 HONE_TYPES(HONE_DTYPE_I64) | HONE_TYPES(HONE_DTYPE_I32) |
                                 HONE_TYPES(HONE_DTYPE_I16) | HN_TYPES_STRING,
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
