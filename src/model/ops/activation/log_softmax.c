/* LogSoftmax: the logarithm of softmax, without forming it. */
#include "model/ops/activation/rows.h"

static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rows_run(call, hn_log_softmax_f32, hn_log_softmax_f64, NULL, error);
}

HN_OP(log_softmax) = {HN_OP_HEAD,
                      .op_type = "LogSoftmax",
                      .since = 1,
                      HN_ROWS_ARITY,
                      .types = HN_TYPES_FLOAT,
                      .attrs = hn_rows_attrs,
                      .infer = hn_rows_infer,
                      .cost = hn_rows_cost,
                      .reference = reference};
