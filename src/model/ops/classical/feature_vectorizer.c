/* FeatureVectorizer: the features of all inputs side by side; inputdimensions says how many each has. An
 * input that has more is cut, one that has fewer is filled up with 0. */
#include "model/ops/classical/features.h"

static int64_t widths(const hone_infer *io, const int64_t *width, hone_error *error) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < io->n_inputs; i++)
    if (width[i] < 0 || __builtin_add_overflow(sum, width[i], &sum))
      return hn_op_bad(io->node, error, "inputdimensions has %lld", (long long)width[i]), -1;
  return sum;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  size_t n;
  const int64_t *width = hone_node_ints(io->node, "inputdimensions", &n);
  if (n != io->n_inputs)
    return hn_op_bad(io->node, error, "inputdimensions has %zu numbers for %u inputs", n, io->n_inputs);
  hone_status s = HONE_OK;
  for (uint32_t i = 0; i < io->n_inputs && !s; i++)
    s = hn_has_input(io, i) ? hn_infer_dtype_in(io, i, HN_TYPES_FEATURES, error)
                            : hn_op_bad(io->node, error, "input %u is left out", i);
  if (!s) s = hn_features_rank(io, error);
  const int64_t sum = s ? 0 : widths(io, width, error), rows = hn_features_rows(io->input[0]);
  if (s || sum < 0) return s ? s : HONE_ERROR_INPUT;
  for (uint32_t i = 1; i < io->n_inputs; i++) {
    const int64_t more = hn_features_rows(io->input[i]);
    if (rows >= 0 && more >= 0 && rows != more)
      return hn_op_bad(io->node, error, "input %u has %lld samples, the first %lld", i, (long long)more,
                       (long long)rows);
  }
  hn_infer_set(io, 0, HONE_DTYPE_F32, 2, (int64_t[]){rows, sum});
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  size_t n;
  const int64_t *width = hone_node_ints(call->node, "inputdimensions", &n);
  const int64_t all = call->output[0]->desc.dim[1], rows = call->output[0]->desc.dim[0];
  double *row = hn_scratch(call, all, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  for (uint32_t i = 0; i < call->n_inputs; i++)
    if (hn_features_rows(&call->input[i]->desc) != rows)
      return hn_op_bad(call->node, error, "input %u has %lld samples, the first %lld", i,
                       (long long)hn_features_rows(&call->input[i]->desc), (long long)rows);
  for (int64_t r = 0; r < rows; r++) {
    if (r % 1024 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (int64_t i = 0; i < all; i++) row[i] = 0;
    double *at = row;
    for (uint32_t i = 0; i < call->n_inputs; at += width[i++]) {
      const int64_t have = hn_features_width(&call->input[i]->desc);
      hn_load_f64(at, call->input[i], r * have, hn_min(have, width[i]));
    }
    hn_store_f64(call->output[0], r * all, row, all);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "inputdimensions", .type = HONE_ATTR_INTS, .required = true},
                                       {0}};

HN_OP(feature_vectorizer) = {HONE_DESC_HEAD(hone_op_desc),
                             .domain = "ai.onnx.ml",
                             .op_type = "FeatureVectorizer",
                             .since = 1,
                             HN_INPUTS(1, HONE_VARIADIC),
                             HN_OUTPUTS(1, 1),
                             .types = HN_TYPES_FEATURES,
                             .attrs = attrs,
                             .infer = infer,
                             .reference = reference};
