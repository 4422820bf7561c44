#include "model/ops/microsoft/products/turned_matmul.h"

extern const hone_op_desc hn_op_matmul;

bool hn_turned_perm(const hone_node *node, int operand, int32_t rank, int64_t *perm) {
  const bool turned = hone_node_int(node, operand ? "transB" : "transA", 0) != 0 && rank >= 2,
             batch = hone_node_int(node, operand ? "transBatchB" : "transBatchA", 0) != 0 && rank >= 3;
  for (int32_t i = 0; i < rank; i++) perm[i] = i;
  if (batch) { /* the first dimension becomes that of the rows: [d1, ..., dk, d0, n] */
    for (int32_t i = 0; i + 2 < rank; i++) perm[i] = i + 1;
    perm[rank - 2] = 0;
  }
  if (turned) {
    const int64_t t = perm[rank - 1];
    perm[rank - 1] = perm[rank - 2];
    perm[rank - 2] = t;
  }
  return turned || batch;
}

static hone_tensor_desc turned(const hone_node *node, int operand, const hone_tensor_desc *d) {
  int64_t perm[HONE_MAX_RANK], dim[HONE_MAX_RANK];
  if (d->rank < 0 || !hn_turned_perm(node, operand, d->rank, perm)) return *d;
  for (int32_t i = 0; i < d->rank; i++) dim[i] = d->dim[perm[i]];
  return hone_desc(d->dtype, d->rank, dim);
}

hone_status hn_turned_infer(const hone_infer *io, hone_error *error) {
  hn_fused_activation a;
  hn_inner matmul;
  const hone_status s = hn_fused_activation_of(io->node, &a, error);
  if (s) return s;
  const hone_tensor_desc in[2] = {turned(io->node, 0, io->input[0]), turned(io->node, 1, io->input[1])};
  hone_infer view = *io;
  view.input = (const hone_tensor_desc *const[]){&in[0], &in[1]};
  hn_inner_begin(&matmul, io->node, &hn_op_matmul, 13);
  return hn_inner_infer(&view, &matmul, error);
}

void hn_turned_cost(const hone_infer *io, hone_cost *cost) {
  hn_inner matmul;
  const hone_tensor_desc in[2] = {turned(io->node, 0, io->input[0]), turned(io->node, 1, io->input[1])};
  hone_infer view = *io;
  view.input = (const hone_tensor_desc *const[]){&in[0], &in[1]};
  hn_inner_begin(&matmul, io->node, &hn_op_matmul, 13);
  hn_inner_cost(&view, &matmul, cost);
}

hone_status hn_turned_run(hone_call *call, hone_error *error) {
  const float alpha = hone_node_float(call->node, "alpha", 1);
  const hone_tensor *in[2];
  hone_tensor made[2], *y = call->output[0];
  hn_inner matmul;
  for (int i = 0; i < 2; i++) {
    int64_t perm[HONE_MAX_RANK];
    in[i] = call->input[i];
    if (!hn_turned_perm(call->node, i, in[i]->desc.rank, perm)) continue;
    if (!hn_inner_transpose(call, in[i], perm, &made[i], error)) return HONE_ERROR_MEMORY;
    in[i] = &made[i];
  }
  hn_inner_begin(&matmul, call->node, &hn_op_matmul, 13);
  const hone_status s = hn_inner_run(call, &matmul, in, 2, &y, 1, error);
  if (s) return s;
  enum { CHUNK = 256 };
  double v[CHUNK];
  for (int64_t i = 0, n = hn_count(y); i < n && alpha != 1; i += CHUNK) {
    const int64_t part = hn_min(CHUNK, n - i);
    hn_load_f64(v, y, i, part);
    for (int64_t k = 0; k < part; k++) v[k] *= (double)alpha;
    hn_store_f64(y, i, v, part);
  }
  return hn_fused_activate(call, y, error);
}
