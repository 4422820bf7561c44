/* Window functions that are sums of cosines. */
#include "model/ops/signal/taper.h"
#include "model/ops/common/axes.h"
#include "model/ops/common/convert.h"

const hone_attr_desc hn_taper_attrs[] = {
    {.name = "periodic", .type = HONE_ATTR_INT}, {.name = "output_datatype", .type = HONE_ATTR_INT}, {0}};

hone_dtype hn_output_dtype(const hone_node *node) {
  int64_t t = hone_node_int(node, "output_datatype", HONE_DTYPE_F32);
  return t > 0 && t < HONE_DTYPE_COUNT && (HN_TYPES_NUMBER & HONE_TYPES(t)) ? (hone_dtype)t : HONE_DTYPE_NONE;
}

hone_status hn_taper_infer(const hone_infer *io, hone_error *error) {
  int64_t n = HONE_DIM_UNKNOWN;
  hone_dtype dtype = hn_output_dtype(io->node);
  if (!dtype)
    return hn_op_refuse(io->node, error, "output_datatype %lld",
                        (long long)hone_node_int(io->node, "output_datatype", 1));
  const hone_tensor *size;
  hone_status status = hn_scalar_infer(io, 0, &size, error);
  if (status) return status;
  if (size) {
    n = hn_get_i64(size, 0);
    if (n < 0) return hn_op_bad(io->node, error, "size is %lld", (long long)n);
  }
  hn_infer_set(io, 0, dtype, 1, &n);
  return HONE_OK;
}

hone_status hn_taper_run(hone_call *call, double a0, double a1, double a2, hone_error *error) {
  hone_tensor *y = call->output[0];
  int64_t n = hn_count(y);
  const bool periodic = hone_node_int(call->node, "periodic", 1);
  const double period = (double)(periodic ? n : n - 1);
  for (int64_t i = 0; i < n; i++) {
    hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    const double phase = period > 0 ? 2 * M_PI * (double)i / period : M_PI; /* one point is the middle */
    hn_set_f64(y, i, a0 - a1 * cos(phase) + a2 * cos(2 * phase));
  }
  return HONE_OK;
}
