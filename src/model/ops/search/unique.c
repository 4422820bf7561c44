/* Unique: the different elements, or slices along an axis, sorted or in order of appearance; where each
 * appeared first, which one every element is, and how often it appears. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"
#include "model/ops/search/order.h"
#include "model/ops/search/unique.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_tensor_desc y = *io->input[0];
  int64_t unknown = HONE_DIM_UNKNOWN, items = hone_desc_count(&y);
  if (hone_node_has(io->node, "axis")) {
    if (y.rank >= 0) {
      int32_t axis;
      hone_status status = hn_axis(hone_node_int(io->node, "axis", 0), y.rank, &axis, error);
      if (status) return status;
      items = y.dim[axis];
      y.dim[axis] = HONE_DIM_UNKNOWN;
    } else
      items = HONE_DIM_UNKNOWN;
  } else {
    y.rank = 1;
    y.dim[0] = HONE_DIM_UNKNOWN;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  hn_infer_set(io, 1, HONE_DTYPE_I64, 1, &unknown);
  hn_infer_set(io, 2, HONE_DTYPE_I64, 1, &items);
  hn_infer_set(io, 3, HONE_DTYPE_I64, 1, &unknown);
  return HONE_OK;
}

/* At most all items differ. */
static hone_status most(const hone_infer *io, hone_error *error) {
  hone_status status = infer(io, error);
  const hone_tensor_desc *x = io->input[0];
  int32_t axis = 0;
  int64_t items = hone_desc_count(x);
  if (!status && hone_node_has(io->node, "axis")) {
    status = hn_axis(hone_node_int(io->node, "axis", 0), x->rank, &axis, error);
    if (!status) items = x->dim[axis];
  }
  if (status) return status;
  for (uint32_t i = 0; i < io->n_outputs; i++)
    if (io->output[i]) io->output[i]->dim[i ? 0 : axis] = items;
  return HONE_OK;
}

/* Items of `width` elements each: as keys, or as strings. */
typedef struct items {
  const int64_t *key;
  const hone_string *string;
  int64_t width;
} items;

static int compare_strings(const hone_string *a, const hone_string *b) {
  size_t n = a->len < b->len ? a->len : b->len;
  int c = n ? memcmp(a->ptr, b->ptr, n) : 0;
  return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int compare(const void *context, int64_t a, int64_t b) {
  const items *t = context;
  for (int64_t i = 0; i < t->width; i++) {
    int64_t x = a * t->width + i, y = b * t->width + i;
    int c = t->key ? (t->key[x] > t->key[y]) - (t->key[x] < t->key[y])
                   : compare_strings(&t->string[x], &t->string[y]);
    if (c) return c;
  }
  return 0;
}

static int by_first(const void *context, int64_t a, int64_t b) {
  const int64_t *first = context;
  return (first[a] > first[b]) - (first[a] < first[b]);
}

static hone_status give(hone_call *call, uint32_t i, const int64_t *values, int64_t n, hone_error *error) {
  if (i >= call->n_outputs || !call->output[i]) return HONE_OK;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_I64, 1, &n);
  hone_status status = call->alloc_output(call, i, &d, error);
  if (!status && n) memcpy(call->output[i]->data, values, (size_t)n * sizeof *values);
  return status;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor_desc y = hone_desc(x->desc.dtype, x->desc.rank, x->desc.dim);
  bool by_axis = hone_node_has(call->node, "axis"), sorted = hone_node_int(call->node, "sorted", 1) != 0;
  int64_t outer = 1, n = hn_count(x), inner = 1, total = n;
  int32_t axis = 0;
  hone_status status = HONE_OK;
  if (by_axis) {
    status = hn_axis(hone_node_int(call->node, "axis", 0), y.rank, &axis, error);
    if (status) return status;
    outer = hn_product(y.dim, 0, axis), n = y.dim[axis], inner = hn_product(y.dim, axis + 1, y.rank);
  } else
    y.rank = 1;
  size_t size = hone_dtype_size(y.dtype);
  int64_t *spare = hn_scratch(call, 6 * n, sizeof *spare, error);
  char *packed = spare ? hn_scratch(call, total, size, error) : NULL;
  int64_t *key = packed ? hn_scratch(call, total, sizeof *key, error) : NULL;
  if (!key) return HONE_ERROR_MEMORY;
  int64_t *order = spare + n, *first = order + n, *count = first + n, *group = count + n, *rank = group + n,
          groups = 0;
  /* Items side by side: [n][outer][inner]. */
  hn_move(packed, (const int64_t[]){outer * inner, inner, 1}, x->data, (const int64_t[]){inner, n * inner, 1},
          (const int64_t[]){n, outer, inner}, 3, size);
  items t = {.width = total ? outer * inner : 0, .string = (const hone_string *)packed};
  if (y.dtype != HONE_DTYPE_STRING) {
    hn_order_keys(key, packed, y.dtype, 0, total);
    t.key = key;
  }
  status = hn_call_check(call, error);
  if (status) return status;
  for (int64_t i = 0; i < n; i++) order[i] = i;
  const bool numbers = t.key && t.width == 1; /* whose keys lie in their order then */
  /* com.microsoft's is this one with the NaNs apart; the newest of NumPy, and with it ONNX, joins them. */
  const bool nan_apart =
      hone_dtype_is_float(y.dtype) && hone_node_int(call->node, HN_UNIQUE_NAN_APART, 0) != 0;
  if (numbers)
    hn_sort_keys(key, order, rank, spare, n);
  else
    hn_sort(order, spare, n, compare, &t);
  for (int64_t i = 0; i < n; i++) { /* stable: the first of equals comes first */
    if (i == 0 || (numbers ? key[i - 1] != key[i] || (nan_apart && key[i] == HN_ORDER_NAN)
                           : compare(&t, order[i - 1], order[i]) != 0)) {
      first[groups] = order[i];
      count[groups++] = 0;
    }
    count[groups - 1]++;
    group[order[i]] = groups - 1;
  }
  for (int64_t g = 0; g < groups; g++) order[g] = g; /* from here: the groups as they come out */
  if (!sorted) hn_sort(order, spare, groups, by_first, first);
  for (int64_t g = 0; g < groups; g++) rank[order[g]] = g;
  y.dim[axis] = groups;
  status = call->alloc_output(call, 0, &y, error);
  if (status) return status;
  for (int64_t g = 0; g < groups; g++)
    hn_move((char *)call->output[0]->data + (size_t)(g * inner) * size, (const int64_t[]){groups * inner, 1},
            packed + (size_t)(first[order[g]] * t.width) * size, (const int64_t[]){inner, 1},
            (const int64_t[]){outer, inner}, 2, size);
  for (int64_t g = 0; g < groups; g++) spare[g] = first[order[g]];
  status = give(call, 1, spare, groups, error);
  for (int64_t i = 0; i < n; i++) spare[i] = rank[group[i]];
  if (!status) status = give(call, 2, spare, n, error);
  for (int64_t g = 0; g < groups; g++) spare[g] = count[order[g]];
  if (!status) status = give(call, 3, spare, groups, error);
  return status;
}

static const hone_attr_desc attrs[] = {
    {.name = "axis", .type = HONE_ATTR_INT}, {.name = "sorted", .type = HONE_ATTR_INT}, {0}};

HN_OP(unique) = {HN_OP_HEAD,      .op_type = "Unique", .since = 11,           .flags = HONE_OP_DATA_DEPENDENT,
                 HN_INPUTS(1, 1), HN_OUTPUTS(1, 4),    .types = HN_TYPES_ALL, .attrs = attrs,
                 .infer = infer,  .most = most,        .reference = reference};
