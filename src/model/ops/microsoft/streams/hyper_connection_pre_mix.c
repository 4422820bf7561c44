/* HyperConnectionPreMix: streams become one, each times its gate: y[h] = scale sum over c of x[c, h] g[c, h].
 */
#include "model/ops/microsoft/streams/streams.h"

enum { X, GATES };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *g = io->input[GATES];
  hn_streams s;
  hone_status status = hn_streams_of(io->node, x, &s, error);
  if (!status) status = hn_infer_dtype_in(io, GATES, HN_TYPES_FLOAT, error);
  if (status) return status;
  if (x->rank < 0) return hn_infer_set(io, 0, x->dtype, -1, NULL), HONE_OK;
  if (s.tokens >= 0 && s.c >= 0 && s.h >= 0 && hone_desc_known(g) &&
      !hn_streams_gates(io->node, &s, g, "pre_mix", error))
    return HONE_ERROR_INPUT;
  int64_t dim[HONE_MAX_RANK];
  for (int32_t i = 0; i < s.lead; i++) dim[i] = x->dim[i];
  dim[s.lead] = s.h;
  hn_infer_set(io, 0, x->dtype, s.lead + 1, dim);
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *g = call->input[GATES];
  const double scale = (double)hone_node_float(call->node, "reduction_scale", 1);
  hn_streams s;
  const hone_status status = hn_streams_of(call->node, &x->desc, &s, error);
  if (status) return status;
  const int64_t each = hn_streams_gates(call->node, &s, &g->desc, "pre_mix", error);
  if (!each) return HONE_ERROR_INPUT;
  if (s.h == 0) return HONE_OK;
  double *row = hn_scratch(call, 3 * s.h, sizeof *row, error);
  if (!row) return HONE_ERROR_MEMORY;
  double *in = row + s.h, *gate = row + 2 * s.h;
  for (int64_t t = 0; t < s.tokens; t++) {
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (int64_t i = 0; i < s.h; i++) row[i] = 0;
    for (int64_t c = t * s.c; c < (t + 1) * s.c; c++) {
      hn_load_f64(in, x, c * s.h, s.h);
      hn_load_f64(gate, g, c * each, each);
      for (int64_t i = 0; i < s.h; i++) row[i] += in[i] * gate[each > 1 ? i : 0];
    }
    for (int64_t i = 0; i < s.h; i++) row[i] *= scale;
    hn_store_f64(call->output[0], t * s.h, row, s.h);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "num_branches", .type = HONE_ATTR_INT},
                                       {.name = "reduction_scale", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(hyper_connection_pre_mix) = {HONE_DESC_HEAD(hone_op_desc),
                                   .domain = "com.microsoft",
                                   .op_type = "HyperConnectionPreMix",
                                   .since = 1,
                                   HN_INPUTS(2, 2),
                                   HN_OUTPUTS(1, 1),
                                   .types = HN_TYPES_FLOAT,
                                   .attrs = attrs,
                                   .infer = infer,
                                   .reference = reference};
