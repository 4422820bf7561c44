/* ScaledSiLU: z sigmoid(z) of z = scale x, each rounded to the output's type. The scale is input 1, else the
 * attribute alpha. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_status s = hn_infer_dtype_in(io, 1, HN_TYPES_FLOAT, error);
  if (!s && hn_has_input(io, 1) && hone_desc_known(io->input[1]) && hone_desc_count(io->input[1]) != 1)
    s = hn_op_bad(io->node, error, "the scale is not one number");
  return s ? s : hn_infer_same(io, error);
}

/* v as the type of x holds it. */
static double rounded(double v, hone_dtype dtype) {
  double kept;
  uint64_t room;
  hn_write_f64(&room, dtype, 0, &v, 1);
  hn_read_f64(&kept, &room, dtype, 0, 1);
  return kept;
}

static hone_status reference(hone_call *call, hone_error *error) {
  enum { RUN = 512 };
  const hone_dtype type = call->input[0]->desc.dtype;
  const double by =
      hn_call_has(call, 1) ? hn_get_f64(call->input[1], 0) : hone_node_float(call->node, "alpha", 1);
  for (int64_t i = 0, n = hn_count(call->output[0]); i < n; i += RUN) {
    const hone_status s = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (s) return s;
    double v[RUN];
    const int64_t m = hn_min(RUN, n - i);
    hn_load_f64(v, call->input[0], i, m);
    for (int64_t k = 0; k < m; k++) {
      const double z = rounded(by * v[k], type);
      v[k] = z * rounded(1 / (1 + exp(-z)), type);
    }
    hn_store_f64(call->output[0], i, v, m);
  }
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) { hn_cost_flops(c, 5 * hn_known_count(io->output[0])); }

static const hone_attr_desc attrs[] = {{.name = "alpha", .type = HONE_ATTR_FLOAT}, {0}};

HN_OP(scaled_silu) = {HONE_DESC_HEAD(hone_op_desc),
                      .domain = "com.microsoft",
                      .op_type = "ScaledSiLU",
                      .since = 1,
                      HN_INPUTS(1, 2),
                      HN_OUTPUTS(1, 1),
                      .types = HN_TYPES_FLOAT,
                      .attrs = attrs,
                      .infer = infer,
                      .cost = cost,
                      .reference = reference};
