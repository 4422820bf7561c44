/* CategoryMapper: strings become the integers beside them in the two lists, or integers strings. */
#include "model/ops/classical/features.h"
#include "model/ops/classical/lookup.h"
#include "model/ir/graph.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  size_t texts, numbers;
  hone_node_strings(io->node, "cats_strings", &texts);
  hone_node_ints(io->node, "cats_int64s", &numbers);
  if (texts != numbers) return hn_op_bad(io->node, error, "%zu strings and %zu integers", texts, numbers);
  const hone_dtype y = x->dtype == HONE_DTYPE_STRING ? HONE_DTYPE_I64
                       : x->dtype                    ? HONE_DTYPE_STRING
                                                     : HONE_DTYPE_NONE;
  hn_infer_set(io, 0, y, x->rank, x->dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hone_string unknown = hn_node_text(call->node, "default_string", "_Unused");
  size_t n;
  const int64_t *number = hone_node_ints(call->node, "cats_int64s", &n);
  const hone_string *texts = hone_node_strings(call->node, "cats_strings", &n);
  const int64_t count = (int64_t)n;
  const bool from_text = x->desc.dtype == HONE_DTYPE_STRING;
  const hone_tensor keys = {hone_desc(x->desc.dtype, 1, &count),
                            (void *)(uintptr_t)(from_text ? (const void *)texts : number)};
  const int64_t otherwise = hone_node_int(call->node, "default_int64", -1);
  int64_t place[HN_LOOKUP_BLOCK];
  hn_lookup lookup;
  const hone_status s = hn_lookup_make(call, &keys, &lookup, error);
  if (s) return s;
  for (int64_t i = 0, some, elements = hn_count(x); i < elements; i += some) {
    some = hn_min(HN_LOOKUP_BLOCK, elements - i);
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_lookup_places(&lookup, x, i, some, place);
    int64_t *whole = (int64_t *)call->output[0]->data + (from_text ? i : 0);
    hone_string *text = (hone_string *)call->output[0]->data + (from_text ? 0 : i);
    for (int64_t k = 0; k < some && from_text; k++) whole[k] = place[k] >= 0 ? number[place[k]] : otherwise;
    for (int64_t k = 0; k < some && !from_text; k++) text[k] = place[k] >= 0 ? texts[place[k]] : unknown;
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "cats_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "cats_strings", .type = HONE_ATTR_STRINGS},
                                       {.name = "default_int64", .type = HONE_ATTR_INT},
                                       {.name = "default_string", .type = HONE_ATTR_STRING},
                                       {0}};

HN_OP(category_mapper) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "ai.onnx.ml",
                          .op_type = "CategoryMapper",
                          .since = 1,
                          HN_INPUTS(1, 1),
                          HN_OUTPUTS(1, 1),
                          .types = HONE_TYPES(HONE_DTYPE_I64) | HN_TYPES_STRING,
                          .attrs = attrs,
                          .infer = infer,
                          .reference = reference};
