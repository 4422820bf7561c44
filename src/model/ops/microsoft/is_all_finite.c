/* IsAllFinite: whether no element of any input is infinite or NaN; with isnan_only or isinf_only one of these
 * alone counts. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  if (hone_node_int(io->node, "isnan_only", 0) && hone_node_int(io->node, "isinf_only", 0))
    return hn_op_bad(io->node, error, "isnan_only and isinf_only exclude each other");
  for (uint32_t i = 0; i < io->n_inputs; i++) {
    const hone_status s = hn_infer_dtype_in(io, i, HN_TYPES_FLOAT, error);
    if (s) return s;
  }
  hn_infer_set(io, 0, HONE_DTYPE_BOOL, 0, NULL);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  enum { RUN = 512 };
  const bool nan = !hone_node_int(call->node, "isinf_only", 0),
             inf = !hone_node_int(call->node, "isnan_only", 0);
  bool found = false;
  for (uint32_t t = 0; t < call->n_inputs && !found; t++)
    for (int64_t i = 0, n = hn_call_has(call, t) ? hn_count(call->input[t]) : 0; i < n && !found; i += RUN) {
      const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
      if (s) return s;
      double v[RUN];
      const int64_t m = hn_min(RUN, n - i);
      hn_load_f64(v, call->input[t], i, m);
      for (int64_t k = 0; k < m; k++) found = found || (nan && isnan(v[k])) || (inf && isinf(v[k]));
    }
  hn_set_i64(call->output[0], 0, !found);
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "isnan_only", .type = HONE_ATTR_INT}, {.name = "isinf_only", .type = HONE_ATTR_INT}, {0}};

HN_OP(is_all_finite) = {HONE_DESC_HEAD(hone_op_desc),
                        .domain = "com.microsoft",
                        .op_type = "IsAllFinite",
                        .since = 1,
                        HN_INPUTS(1, HONE_VARIADIC),
                        HN_OUTPUTS(1, 1),
                        .types = HN_TYPES_FLOAT,
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
