/* MeanVarianceNormalization: (x - mean) / (standard deviation + 1e-9) over the given axes ([0, 2, 3] by
 * default). Before opset 9 the axes are all but the channels, or all, and the deviation may be left alone, as
 * ONNX Runtime still has it. */
#include "model/ops/common/bulk.h"

/* The definition's function body adds this to the standard deviation. */
static const double guard = 1e-9;

static hone_status read_axes(const hone_node *node, int32_t rank, bool *reduced, hone_error *error) {
  static const int64_t usual[] = {0, 2, 3}, all[] = {0, 1, 2, 3};
  const bool across = hone_node_int(node, "across_channels", 0) != 0;
  size_t n = 0;
  const int64_t *axes = hone_node_ints(node, "axes", &n);
  if (!n) axes = across ? all : usual, n = across ? 4 : 3;
  for (int32_t d = 0; d < rank; d++) reduced[d] = false;
  for (size_t i = 0; i < n; i++) {
    int32_t axis;
    hone_status s = hn_axis(axes[i], rank, &axis, error);
    if (s) return s;
    reduced[axis] = true;
  }
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  bool reduced[HONE_MAX_RANK];
  hone_status s = io->input[0]->rank < 0 ? HONE_OK : read_axes(io->node, io->input[0]->rank, reduced, error);
  return s ? s : hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const bool divided = hone_node_int(call->node, "normalize_variance", 1) != 0;
  bool reduced[HONE_MAX_RANK];
  hone_tensor kept = {x->desc, NULL}; /* shape of the statistics */
  hone_status s = read_axes(call->node, x->desc.rank, reduced, error);
  if (s) return s;
  for (int32_t d = 0; d < x->desc.rank; d++)
    if (reduced[d]) kept.desc.dim[d] = 1;
  int64_t n = hn_count(x), cells = hn_count(&kept);
  const double *data = hn_all_f64(call, x, error);
  double *mean = data ? hn_scratch(call, cells, sizeof *mean, error) : NULL;
  double *var = mean ? hn_scratch(call, cells, sizeof *var, error) : NULL;
  if (!var) return HONE_ERROR_MEMORY;
  if (n == 0) return HONE_OK;
  const int64_t elements = n / cells; /* exact: cells divides n */
  const double per_cell = (double)elements;
  const hone_tensor *operand = &kept;
  hn_iter it;
  for (int64_t i = 0; i < cells; i++) mean[i] = var[i] = 0;
  hn_iter_init(&it, &x->desc, &operand, 1);
  for (int64_t i = 0; i < n; i++, hn_iter_next(&it)) mean[it.at[0]] += data[i] / per_cell;
  hn_iter_init(&it, &x->desc, &operand, 1);
  for (int64_t i = 0; i < n; i++, hn_iter_next(&it)) {
    double v = data[i] - mean[it.at[0]];
    var[it.at[0]] += v * v / per_cell;
  }
  hn_iter_init(&it, &x->desc, &operand, 1);
  for (int64_t i = 0; i < n; i++, hn_iter_next(&it)) {
    double v = data[i] - mean[it.at[0]];
    if (divided) v /= sqrt(var[it.at[0]]) + guard;
    hn_store_f64(call->output[0], i, &v, 1);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 6 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {{.name = "axes", .type = HONE_ATTR_INTS, .since = 9},
                                       {.name = "across_channels", .type = HONE_ATTR_INT, .until = 8},
                                       {.name = "normalize_variance", .type = HONE_ATTR_INT, .until = 8},
                                       {0}};

HN_OP(mean_variance_normalization) = {HN_OP_HEAD,       .op_type = "MeanVarianceNormalization",
                                      .since = 1,       HN_INPUTS(1, 1),
                                      HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,
                                      .attrs = attrs,   .infer = infer,
                                      .cost = cost,     .reference = reference};
