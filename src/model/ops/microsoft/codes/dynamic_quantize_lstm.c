/* DynamicQuantizeLSTM: LSTM whose weights are codes of 8 bits, [directions, columns, gates]. What they are
 * multiplied with is rounded to 8 bits in the run, as DynamicQuantizeLinear does it: X up to the end of the
 * longest sequence in one range, as in ONNX Runtime, and the state before each step, of each sample by itself
 * (ONNX Runtime: of all samples that a thread has). */
#include "model/ops/microsoft/codes/lstm_codes.h"
#include "model/ops/quantized/dynamic.h"
#include "model/ops/recurrent/recurrent.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLES, W_SCALE, W_ZERO, R_SCALE, R_ZERO };
extern const hone_op_desc hn_op_lstm;

hone_tensor_desc hn_lstm_codes_desc(const hone_tensor_desc *d) {
  if (d->rank != 3) return (hone_tensor_desc){.dtype = HONE_DTYPE_F32, .rank = d->rank < 0 ? -1 : d->rank};
  return hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){d->dim[0], d->dim[2], d->dim[1]});
}

static hone_status check_codes(const hone_infer *io, uint32_t codes, uint32_t scale, hone_error *error) {
  const hone_tensor_desc *d = io->input[codes];
  if (d->rank >= 0 && d->rank != 3)
    return hn_op_bad(io->node, error, "the weights have rank %d, expected 3", (int)d->rank);
  hone_status s = hn_infer_dtype_in(io, codes, HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_I8), error);
  if (!s) s = hn_infer_dtype_in(io, scale, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_same_dtype(io, codes, scale + 1, error);
  for (uint32_t i = scale; i <= scale + 1 && !s; i++) {
    const hone_tensor_desc *p = io->input[i];
    const int64_t want[2] = {hn_dim(d, 0), hn_dim(d, 2)};
    if (p->rank == 0 || p->rank > 2)
      s = hn_op_bad(io->node, error, "a scale or zero point has rank %d", (int)p->rank);
    else if (p->rank > 0)
      s = hn_infer_dims(io, i, "a scale or zero point", p->rank, want, error);
  }
  return s;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  for (uint32_t i = W_SCALE; i <= R_ZERO; i++)
    if (!hn_has_input(io, i)) return hn_op_bad(io->node, error, "input %u is left out", i);
  hone_status s = check_codes(io, W, W_SCALE, error);
  if (!s) s = check_codes(io, R, R_SCALE, error);
  if (s) return s;
  const hone_tensor_desc w = hn_lstm_codes_desc(io->input[W]), r = hn_lstm_codes_desc(io->input[R]);
  const hone_tensor_desc *in[PEEPHOLES + 1];
  for (uint32_t i = 0; i <= PEEPHOLES; i++) in[i] = i == W ? &w : i == R ? &r : io->input[i];
  hn_inner lstm;
  hn_inner_same(&lstm, io->node, &hn_op_lstm, 7);
  hone_infer view = *io;
  view.input = in;
  view.n_inputs = PEEPHOLES + 1;
  view.node = &lstm.node;
  return hn_rnn_infer(&view, &hn_rnn_kind_lstm, error);
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t steps = hn_dim(io->input[X], 0), batch = hn_dim(io->input[X], 1);
  if (steps > 0 && batch > 0)
    hn_cost_macs(cost, (double)steps * (double)batch *
                           (hn_known_count(io->input[W]) + hn_known_count(io->input[R])));
}

void hn_lstm_decode(const hone_tensor *codes, const hone_tensor *scale, const hone_tensor *zero, float *out) {
  const hone_tensor_desc d = hn_lstm_codes_desc(&codes->desc);
  const int64_t gates = d.dim[1], columns = d.dim[2];
  for (int64_t i = 0; i < hone_desc_count(&d); i++) {
    const int64_t way = i / (gates * columns), g = i / columns % gates, c = i % columns,
                  s = scale && scale->desc.rank == 2 ? way * gates + g : way,
                  z = zero->desc.rank == 2 ? way * gates + g : way;
    out[i] = (float)(hn_get_i64(codes, (way * columns + c) * gates + g) - hn_get_i64(zero, z)) *
             (scale ? (float)hn_get_f64(scale, s) : 1.0f);
  }
}

/* W or R as whole numbers, codes less their zero point, and the scales of its rows times `by`. */
static bool whole(hone_call *call, uint32_t codes, uint32_t scale, double by, hone_tensor *out,
                  double **scales, hone_error *error) {
  const hone_tensor *of = call->input[scale];
  const hone_tensor_desc d = hn_lstm_codes_desc(&call->input[codes]->desc);
  const int64_t rows = d.dim[0] * d.dim[1];
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 3, d.dim, out, error) ||
      !(*scales = hn_scratch(call, rows, sizeof **scales, error)))
    return false;
  hn_lstm_decode(call->input[codes], NULL, call->input[scale + 1], out->data);
  for (int64_t i = 0; i < rows; i++)
    (*scales)[i] = by * hn_get_f64(of, of->desc.rank == 2 ? i : of->desc.rank ? i / d.dim[1] : 0);
  return true;
}

/* X as whole numbers: codes less their zero point. */
static bool rounded(hone_call *call, hone_tensor *out, float *scale, hone_error *error) {
  const hone_tensor *x = call->input[X], *lengths = hn_call_has(call, LENGTHS) ? call->input[LENGTHS] : NULL;
  const int64_t count = hone_desc_count(&x->desc), batch = x->desc.dim[1];
  int64_t longest = lengths ? 0 : x->desc.dim[0];
  uint8_t zero, *codes;
  for (int64_t i = 0; i < batch && lengths; i++)
    longest = hn_min(x->desc.dim[0], hn_max(longest, hn_get_i64(lengths, i)));
  const int64_t n = longest * batch * x->desc.dim[2]; /* what lies behind is not read */
  if (!hn_inner_tensor(call, HONE_DTYPE_F32, 3, x->desc.dim, out, error) ||
      !(codes = hn_scratch(call, n, 1, error)))
    return false;
  float *to = out->data;
  memset(to, 0, (size_t)count * sizeof *to);
  hn_quantise_dynamically(x->data, n, codes, scale, &zero);
  for (int64_t i = 0; i < n; i++) to[i] = (float)(codes[i] - zero);
  return true;
}

static hone_status reference(hone_call *call, hone_error *error) {
  hone_tensor x, w, r;
  float by;
  double *w_scale, *r_scale;
  if (!rounded(call, &x, &by, error) || !whole(call, W, W_SCALE, (double)by, &w, &w_scale, error) ||
      !whole(call, R, R_SCALE, 1, &r, &r_scale, error))
    return HONE_ERROR_MEMORY;
  const hone_tensor *in[PEEPHOLES + 1];
  for (uint32_t i = 0; i <= PEEPHOLES; i++) in[i] = i == X ? &x : i == W ? &w : i == R ? &r : call->input[i];
  hn_inner lstm;
  hn_inner_same(&lstm, call->node, &hn_op_lstm, 7);
  hone_call view = *call;
  view.node = &lstm.node;
  view.input = in;
  view.n_inputs = PEEPHOLES + 1;
  return hn_rnn_run_scaled(&view, &hn_rnn_kind_lstm_rounded, w_scale, r_scale, error);
}

static const hone_attr_desc attrs[] = {
    {"activation_alpha", HONE_ATTR_FLOATS, false, 0, 0}, {"activation_beta", HONE_ATTR_FLOATS, false, 0, 0},
    {"activations", HONE_ATTR_STRINGS, false, 0, 0},     {"clip", HONE_ATTR_FLOAT, false, 0, 0},
    {"direction", HONE_ATTR_STRING, false, 0, 0},        {"hidden_size", HONE_ATTR_INT, false, 0, 0},
    {"input_forget", HONE_ATTR_INT, false, 0, 0},        {0}};

HN_OP(dynamic_quantize_lstm) = {HONE_DESC_HEAD(hone_op_desc),
                                .domain = "com.microsoft",
                                .op_type = "DynamicQuantizeLSTM",
                                .since = 1,
                                .flags = HONE_OP_CODES,
                                HN_INPUTS(3, 12),
                                HN_OUTPUTS(0, 3),
                                .types = HONE_TYPES(HONE_DTYPE_F32),
                                .attrs = attrs,
                                .infer = infer,
                                .cost = cost,
                                .reference = reference};
