/* DictVectorizer: the values of a map in the order of a vocabulary; a key that is not there has 0 or "". */
#include "model/ops/classical/features.h"
#include "model/ir/items.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_dtype d = io->input[0]->dtype;
  size_t texts, numbers;
  hone_node_strings(io->node, "string_vocabulary", &texts);
  hone_node_ints(io->node, "int64_vocabulary", &numbers);
  if (!texts == !numbers) return hn_op_bad(io->node, error, "it needs one vocabulary");
  if (d && (!hn_dtype_is_map(d) || hn_map_key(d) != (texts ? HONE_DTYPE_STRING : HONE_DTYPE_I64)))
    return hn_op_bad(io->node, error, "X is %s, a map from %s is expected", hone_dtype_name(d),
                     texts ? "strings" : "i64");
  hn_infer_set(io, 0, hone_dtype_element(d), 2, (int64_t[]){1, (int64_t)(texts ? texts : numbers)});
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_items *map = hn_items(call->input[0]);
  const hone_tensor *key = map->item[0], *value = map->item[1];
  hone_tensor *y = call->output[0];
  size_t n;
  const hone_string *text = hone_node_strings(call->node, "string_vocabulary", &n);
  if (!n) text = NULL;
  const int64_t *number = hone_node_ints(call->node, "int64_vocabulary", text ? &(size_t){0} : &n);
  const size_t size = hone_dtype_size(y->desc.dtype);
  (void)error;
  memset(y->data, 0, n * size);
  for (size_t i = 0; i < n; i++) {
    if (i % 256 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (int64_t k = 0; k < key->desc.dim[0]; k++)
      if (text ? hn_same_text(text[i], ((const hone_string *)key->data)[k])
               : number[i] == ((const int64_t *)key->data)[k])
        memcpy(hn_at_mut(y, (int64_t)i), hn_at(value, k), size);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "int64_vocabulary", .type = HONE_ATTR_INTS},
                                       {.name = "string_vocabulary", .type = HONE_ATTR_STRINGS},
                                       {0}};

HN_OP(dict_vectorizer) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "ai.onnx.ml",
                          .op_type = "DictVectorizer",
                          .since = 1,
                          .flags = HONE_OP_ITEMS,
                          HN_INPUTS(1, 1),
                          HN_OUTPUTS(1, 1),
                          .attrs = attrs,
                          .infer = infer,
                          .reference = reference};
