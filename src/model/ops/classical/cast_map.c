/* CastMap: the values of a map as a row, in the order of its keys (DENSE), or each at the place that its key
 * says (SPARSE), between 0 or, of texts, "0.f", as ONNX Runtime has it: the standard does not say. */
#include "model/ir/items.h"
#include "model/ops/classical/features.h"
#include "model/ops/math/cast_core.h"
#include "model/ops/search/order.h"

static hone_dtype type_of(const hone_node *node) {
  const char *to = hone_node_string(node, "cast_to", "TO_FLOAT");
  return strcmp(to, "TO_FLOAT") == 0    ? HONE_DTYPE_F32
         : strcmp(to, "TO_INT64") == 0  ? HONE_DTYPE_I64
         : strcmp(to, "TO_STRING") == 0 ? HONE_DTYPE_STRING
                                        : HONE_DTYPE_NONE;
}

static bool is_sparse(const hone_node *node) {
  return strcmp(hone_node_string(node, "map_form", "DENSE"), "SPARSE") == 0;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_dtype d = io->input[0]->dtype, to = type_of(io->node), value = hone_dtype_element(d);
  const int64_t most = hone_node_int(io->node, "max_map", 1);
  const bool sparse = is_sparse(io->node);
  if (!to) return hn_op_bad(io->node, error, "cast_to is \"%s\"", hone_node_string(io->node, "cast_to", ""));
  if (!sparse && strcmp(hone_node_string(io->node, "map_form", "DENSE"), "DENSE") != 0)
    return hn_op_bad(io->node, error, "map_form is \"%s\"", hone_node_string(io->node, "map_form", ""));
  if (sparse && most < 1) return hn_op_bad(io->node, error, "max_map is %lld", (long long)most);
  if (d && (!hn_dtype_is_map(d) || hn_map_key(d) != HONE_DTYPE_I64 ||
            (value != HONE_DTYPE_F32 && value != HONE_DTYPE_STRING)))
    return hn_op_bad(io->node, error, "X is %s, a map from i64 to f32 or strings is expected",
                     hone_dtype_name(d));
  hn_infer_set(io, 0, to, 2, (const int64_t[]){1, sparse ? most : HONE_DIM_UNKNOWN});
  return HONE_OK;
}

static int by_key(const void *context, int64_t a, int64_t b) {
  const int64_t *key = context;
  return (key[a] > key[b]) - (key[a] < key[b]);
}

/* Where value i comes: a place of the row, or -1. */
static hone_status places_of(hone_call *call, const int64_t *key, int64_t n, int64_t most, int64_t *place,
                             hone_error *error) {
  if (is_sparse(call->node)) {
    for (int64_t i = 0; i < n; i++) {
      if (key[i] < 0) return hn_op_bad(call->node, error, "the key %lld", (long long)key[i]);
      place[i] = key[i] < most ? key[i] : -1;
    }
    return HONE_OK;
  }
  int64_t *order = hn_scratch(call, 2 * n, sizeof *order, error);
  if (!order) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  hn_sort(order, order + n, n, by_key, key);
  for (int64_t i = 0; i < n; i++) place[order[i]] = i;
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *map = hn_items(call->input[0]);
  const int64_t n = hn_count(map->item[0]),
                most = is_sparse(call->node) ? hone_node_int(call->node, "max_map", 1) : n;
  const hone_tensor_desc d = hone_desc(type_of(call->node), 2, (const int64_t[]){1, most});
  const size_t size = hone_dtype_size(d.dtype);
  hone_tensor values = {hone_desc(d.dtype, 1, &n), hn_scratch(call, n, size, error)};
  int64_t *place = values.data ? hn_scratch(call, n, sizeof *place, error) : NULL;
  if (!place) return HONE_ERROR_MEMORY;
  hone_status s = call->output[0]->data ? HONE_OK : call->alloc_output(call, 0, &d, error);
  if (!s) s = hn_cast_run(call, map->item[1], &values, error);
  if (!s) s = places_of(call, map->item[0]->data, n, most, place, error);
  if (s) return s;
  hone_tensor *y = call->output[0];
  if (d.dtype == HONE_DTYPE_STRING)
    for (int64_t i = 0; i < most; i++) ((hone_string *)y->data)[i] = (hone_string){"0.f", 3};
  else if (most)
    memset(y->data, 0, (size_t)most * size);
  for (int64_t i = 0; i < n; i++)
    if (place[i] >= 0) memcpy(hn_at_mut(y, place[i]), hn_at(&values, i), size);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "cast_to", .type = HONE_ATTR_STRING},
                                       {.name = "map_form", .type = HONE_ATTR_STRING},
                                       {.name = "max_map", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(cast_map) = {HONE_DESC_HEAD(hone_op_desc),
                   .domain = "ai.onnx.ml",
                   .op_type = "CastMap",
                   .since = 1,
                   .flags = HONE_OP_ITEMS | HONE_OP_DATA_DEPENDENT,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1),
                   .attrs = attrs,
                   .infer = infer,
                   .reference = reference};
