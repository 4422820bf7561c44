/* Binarizer: 1 where X is greater than the threshold, 0 elsewhere. */
#include "model/ops/classical/features.h"

enum { BLOCK = 256 }; /* a divisor of HN_STOP_EVERY */

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const double threshold = (double)hone_node_float(call->node, "threshold", 0);
  double v[BLOCK];
  for (int64_t i = 0, some, n = hn_count(x); i < n; i += some) {
    some = hn_min(BLOCK, n - i);
    if (i % HN_STOP_EVERY == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    hn_load_f64(v, x, i, some);
    for (int64_t k = 0; k < some; k++) v[k] = v[k] > threshold ? 1 : 0;
    hn_store_f64(call->output[0], i, v, some);
  }
  (void)error;
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "threshold", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(binarizer) = {HN_FEATURES_OP("Binarizer", 1, 1), .attrs = attrs, .infer = hn_infer_same,
                    .reference = reference};
