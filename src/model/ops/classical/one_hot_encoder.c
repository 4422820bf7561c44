/* OneHotEncoder: every element becomes a row with a 1 at its category. */
#include "model/ops/classical/features.h"
#include "model/ops/classical/lookup.h"

typedef struct categories {
  const hone_string *text;
  const int64_t *number;
  int64_t n;
} categories;

static categories categories_of(const hone_node *node) {
  size_t texts, numbers;
  categories c = {.text = hone_node_strings(node, "cats_strings", &texts)};
  c.number = hone_node_ints(node, "cats_int64s", &numbers);
  if (!texts) c.text = NULL;
  c.n = (int64_t)(c.text ? texts : numbers);
  return c;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const categories c = categories_of(io->node);
  int64_t dim[HONE_MAX_RANK] = {0};
  if (!c.n) return hn_op_bad(io->node, error, "it has no categories");
  if (x->dtype && (x->dtype == HONE_DTYPE_STRING) != (c.text != NULL))
    return hn_op_bad(io->node, error, "X is %s, the categories are %s", hone_dtype_name(x->dtype),
                     c.text ? "strings" : "integers");
  if (x->rank >= HONE_MAX_RANK) return hn_op_refuse(io->node, error, "X has %d dimensions", (int)x->rank);
  for (int32_t i = 0; i < x->rank; i++) dim[i] = x->dim[i];
  if (x->rank >= 0) dim[x->rank] = c.n;
  hn_infer_set(io, 0, HONE_DTYPE_F32, x->rank < 0 ? -1 : x->rank + 1, dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const categories c = categories_of(call->node);
  const bool zeros = hone_node_int(call->node, "zeros", 1) != 0;
  const hone_tensor keys = {hone_desc(c.text ? HONE_DTYPE_STRING : HONE_DTYPE_I64, 1, &c.n),
                            (void *)(uintptr_t)(c.text ? (const void *)c.text : c.number)};
  float *y = call->output[0]->data;
  int64_t place[HN_LOOKUP_BLOCK];
  hn_lookup lookup;
  const hone_status s = hn_lookup_make(call, &keys, &lookup, error);
  if (s) return s;
  for (int64_t i = 0, some, n = hn_count(x); i < n; i += some) {
    some = hn_min(HN_LOOKUP_BLOCK, n - i);
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_lookup_places(&lookup, x, i, some, place); /* beside integers the whole part of X counts */
    memset(y, 0, (size_t)(some * c.n) * sizeof *y);
    for (int64_t k = 0; k < some; k++, y += c.n) {
      if (place[k] < 0 && !zeros)
        return hn_op_bad(call->node, error, "element %lld of X is in no category", (long long)(i + k));
      if (place[k] >= 0) y[place[k]] = 1;
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "cats_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "cats_strings", .type = HONE_ATTR_STRINGS},
                                       {.name = "zeros", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(one_hot_encoder) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "ai.onnx.ml",
                          .op_type = "OneHotEncoder",
                          .since = 1,
                          HN_INPUTS(1, 1),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FEATURES | HN_TYPES_STRING,
                          .attrs = attrs,
                          .infer = infer,
                          .reference = reference};
