/* ZipMap: every row of scores becomes a map from the class labels to them. */
#include "model/ops/classical/features.h"
#include "model/ops/sequence/sequence.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  const hn_labels labels = hn_labels_of(io->node, "classlabels_int64s");
  if (!labels.n) return hn_op_bad(io->node, error, "it has no class labels");
  if (x->rank > 0 && hn_features_width(x) >= 0 && hn_features_width(x) != labels.n)
    return hn_op_bad(io->node, error, "X has %lld columns, %lld class labels",
                     (long long)hn_features_width(x), (long long)labels.n);
  hn_infer_whole(
      io, (hone_dtype)(HONE_SEQUENCE | (labels.text ? HONE_MAP_STRING : HONE_MAP_I64) | HONE_DTYPE_F32));
  return hn_features_rank(io, error);
}

/* A row, its map, and what the map holds. */
typedef struct entry {
  hone_tensor map, value;
  hone_items items;
  const hone_tensor *part[2];
} entry;

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const hn_labels l = hn_labels_of(call->node, "classlabels_int64s");
  const int64_t rows = hn_features_rows(&x->desc);
  const hone_tensor labels = {hone_desc(l.text ? HONE_DTYPE_STRING : HONE_DTYPE_I64, 1, &l.n),
                              l.text ? (void *)l.text : (void *)l.number};
  const hone_dtype type = (hone_dtype)((l.text ? HONE_MAP_STRING : HONE_MAP_I64) | HONE_DTYPE_F32);
  const hone_tensor *keys = hn_items_keep(call, &labels, error);
  const hone_tensor *values = hn_items_keep(call, x, error);
  const hone_tensor **list = hn_items_room(call, (size_t)rows, error);
  entry *e = call->scratch_keep(call, ((size_t)rows + 1) * sizeof *e);
  if (!keys || !values || !list || !e) return hn_fail_memory(error, (size_t)rows * sizeof *e, "maps");
  for (int64_t r = 0; r < rows; r++) {
    if (r % 1024 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    e[r].value = (hone_tensor){hone_desc(HONE_DTYPE_F32, 1, &l.n), (float *)values->data + r * l.n};
    e[r].part[0] = keys, e[r].part[1] = &e[r].value;
    e[r].items = (hone_items){2, e[r].part};
    e[r].map = (hone_tensor){hone_desc(type, 0, NULL), &e[r].items};
    list[r] = &e[r].map;
  }
  hn_items_give(call, (size_t)rows, list);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "classlabels_int64s", .type = HONE_ATTR_INTS},
                                       {.name = "classlabels_strings", .type = HONE_ATTR_STRINGS},
                                       {0}};

HN_OP(zip_map) = {HONE_DESC_HEAD(hone_op_desc),
                  .domain = "ai.onnx.ml",
                  .op_type = "ZipMap",
                  .since = 1,
                  .flags = HONE_OP_ITEMS,
                  HN_INPUTS(1, 1),
                  HN_OUTPUTS(1, 1),
                  .types = HONE_TYPES(HONE_DTYPE_F32),
                  .attrs = attrs,
                  .infer = infer,
                  .reference = reference};
