/* LpNormalization: divides by the L1 or L2 norm along one axis; a zero norm leaves zeros. */
#include "model/ops/common/bulk.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int64_t p = hone_node_int(io->node, "p", 2);
  int32_t axis, rank = io->input[0]->rank;
  if (p != 1 && p != 2) return hn_op_bad(io->node, error, "p is %lld", (long long)p);
  hone_status s = rank < 0 ? HONE_OK : hn_axis(hone_node_int(io->node, "axis", -1), rank, &axis, error);
  return s ? s : hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  bool square = hone_node_int(call->node, "p", 2) == 2;
  int32_t axis = 0;
  hone_status s = hn_axis(hone_node_int(call->node, "axis", -1), x->desc.rank, &axis, error);
  if (s) return s;
  int64_t outer = hn_dims(&x->desc, 0, axis), n = x->desc.dim[axis];
  int64_t inner = hn_dims(&x->desc, axis + 1, x->desc.rank);
  double *block = hn_scratch(call, n * inner, sizeof *block, error);
  if (!block) return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < outer; o++) {
    hn_load_f64(block, x, o * n * inner, n * inner);
    for (int64_t i = 0; i < inner; i++) {
      double norm = 0;
      for (int64_t k = 0; k < n; k++) {
        double v = block[k * inner + i];
        norm += square ? v * v : fabs(v);
      }
      if (square) norm = sqrt(norm);
      for (int64_t k = 0; k < n; k++) block[k * inner + i] = norm != 0 ? block[k * inner + i] / norm : 0;
    }
    hn_store_f64(call->output[0], o * n * inner, block, n * inner);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, 3 * hn_known_count(io->input[0]));
}

static const hone_attr_desc attrs[] = {
    {"axis", HONE_ATTR_INT, false, 0, 0}, {"p", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_OP(lp_normalization) = {HN_OP_HEAD,       .op_type = "LpNormalization", .since = 1,     HN_INPUTS(1, 1),
                           HN_OUTPUTS(1, 1), .types = HN_TYPES_FLOAT,      .attrs = attrs, .infer = infer,
                           .cost = cost,     .reference = reference};
