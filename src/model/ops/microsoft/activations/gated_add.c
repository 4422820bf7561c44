/* GatedAdd: x + y gate, a gate a row; the product is rounded to the type of x. The form whose gate is a
 * projection is for bf16 on GPUs and refused. */
#include "model/ops/microsoft/common/inner.h"
#include "model/ops/common/convert.h"

enum { X, Y, GATE, WEIGHT };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X];
  int64_t dim[HONE_MAX_RANK];
  if (hn_has_input(io, WEIGHT)) return hn_op_refuse(io->node, error, "a gate that is a projection");
  hone_status s = hn_infer_same_dtype(io, X, Y, error);
  if (!s) s = hn_infer_same_dtype(io, X, GATE, error);
  if (!s && x->rank == 0) s = hn_op_bad(io->node, error, "X has rank 0");
  if (!s && x->rank > 0) {
    memcpy(dim, x->dim, sizeof dim);
    s = hn_infer_dims(io, Y, "Y", x->rank, dim, error);
    dim[x->rank - 1] = 1;
    if (!s) s = hn_infer_dims(io, GATE, "gate", x->rank, dim, error);
  }
  return s ? s : hn_infer_same(io, error);
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *out = call->output[0];
  const int64_t c = out->desc.dim[out->desc.rank - 1], count = hn_count(out);
  double *x = hn_scratch(call, c, 2 * sizeof *x, error), *y = x + c;
  if (!x) return HONE_ERROR_MEMORY;
  for (int64_t row = 0; row < (count ? count / c : 0); row++) {
    const hone_status s = row % 256 == 0 ? hn_call_check(call, error) : HONE_OK;
    const double gate = hn_get_f64(call->input[GATE], row);
    if (s) return s;
    hn_load_f64(x, call->input[X], row * c, c);
    hn_load_f64(y, call->input[Y], row * c, c);
    for (int64_t i = 0; i < c; i++) y[i] *= gate;
    hn_store_f64(out, row * c, y, c);
    hn_load_f64(y, out, row * c, c);
    for (int64_t i = 0; i < c; i++) x[i] += y[i];
    hn_store_f64(out, row * c, x, c);
  }
  return HONE_OK;
}

HN_OP(gated_add) = {HONE_DESC_HEAD(hone_op_desc),
                    .domain = "com.microsoft",
                    .op_type = "GatedAdd",
                    .since = 1,
                    HN_INPUTS(3, 4),
                    HN_OUTPUTS(1, 1),
                    .types = HN_TYPES_FLOAT,
                    .infer = infer,
                    .reference = reference};
