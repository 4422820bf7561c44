/* MelWeightMatrix: triangles, evenly spaced on the mel scale, that turn a linear spectrum into num_mel_bins
 * bands. */
#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/signal/taper.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hone_dtype dtype = hn_output_dtype(io->node);
  int64_t dim[2] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  if (!dtype)
    return hn_op_refuse(io->node, error, "output_datatype %lld",
                        (long long)hone_node_int(io->node, "output_datatype", 1));
  for (uint32_t i = 0; i < 5; i++) {
    const hone_tensor *v;
    hone_status status = hn_scalar_infer(io, i, &v, error);
    if (status) return status;
    int64_t n = v && i < 3 ? hn_get_i64(v, 0) : 1;
    if (n < 1) return hn_op_bad(io->node, error, "input %u is %lld", i, (long long)n);
    if (v && i == 0) dim[1] = n;
    if (v && i == 1) dim[0] = n / 2 + 1;
  }
  hn_infer_set(io, 0, dtype, 2, dim);
  return HONE_OK;
}

static double mel(double hertz) { return 2595 * log10(1 + hertz / 700); }
static double hertz(double mel) { return 700 * (pow(10, mel / 2595) - 1); }

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor *y = call->output[0];
  int64_t bins = y->desc.dim[0], bands = y->desc.dim[1];
  double points = (double)hn_get_i64(call->input[1], 0) + 1, rate = (double)hn_get_i64(call->input[2], 0);
  double low = mel(hn_get_f64(call->input[3], 0)), high = mel(hn_get_f64(call->input[4], 0));
  double step = (high - low) / ((double)bands + 2);
  memset(y->data, 0, (size_t)hn_count(y) * hone_dtype_size(y->desc.dtype));
  for (int64_t b = 0; b < bands; b++) {
    hone_status status = hn_call_check(call, error);
    if (status) return status;
    int64_t edge[3];
    for (int64_t k = 0; k < 3; k++) {
      double at = floor(points * hertz(low + step * (double)(b + k)) / rate);
      if (!(at >= 0 && at < (double)bins))
        return hn_op_bad(call->node, error, "band %lld lies outside the spectrum", (long long)b);
      edge[k] = (int64_t)at;
    }
    if (edge[1] == edge[0]) hn_set_f64(y, edge[1] * bands + b, 1);
    for (int64_t j = edge[0]; j <= edge[1] && edge[1] > edge[0]; j++)
      hn_set_f64(y, j * bands + b, (double)(j - edge[0]) / (double)(edge[1] - edge[0]));
    for (int64_t j = edge[1]; j < edge[2]; j++)
      hn_set_f64(y, j * bands + b, (double)(edge[2] - j) / (double)(edge[2] - edge[1]));
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "output_datatype", .type = HONE_ATTR_INT}, {0}};

HN_OP(mel_weight_matrix) = {HN_OP_HEAD,
                            .op_type = "MelWeightMatrix",
                            .since = 17,
                            HN_INPUTS(5, 5),
                            HN_OUTPUTS(1, 1),
                            .types = HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
                            .attrs = attrs,
                            .infer = infer,
                            .reference = reference,
                            .host_inputs = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4};
