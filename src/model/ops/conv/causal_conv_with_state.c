/* CausalConvWithState: every channel convolved by itself along the last dimension with what came before,
 * which is the end of the call before (past_state) or zeros; the own end is the second output. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { X, W, BIAS, PAST };

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }

/* Input i has these dimensions, as far as they are known. */
static hone_status expect(const hone_infer *io, uint32_t i, const char *name, const int64_t want[3],
                          hone_error *error) {
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  if (!d || d->rank < 0) return HONE_OK;
  if (d->rank != 3) return hn_op_bad(io->node, error, "%s has rank %d, expected 3", name, (int)d->rank);
  for (int k = 0; k < 3; k++)
    if (d->dim[k] >= 0 && want[k] >= 0 && d->dim[k] != want[k])
      return hn_op_bad(io->node, error, "%s has %lld in dimension %d, expected %lld", name,
                       (long long)d->dim[k], k, (long long)want[k]);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W];
  const char *act = hone_node_string(io->node, "activation", "none");
  const int64_t channels = at(x, 1) >= 0 ? at(x, 1) : at(w, 0), taps = at(w, 2);
  const int64_t any[3] = {-1, -1, -1}, weights[3] = {channels, 1, -1},
                state[3] = {at(x, 0), channels, taps > 0 ? taps - 1 : HONE_DIM_UNKNOWN},
                y[3] = {at(x, 0), channels, at(x, 2)};
  if (strcmp(act, "none") && strcmp(act, "silu") && strcmp(act, "swish"))
    return hn_op_bad(io->node, error, "activation is \"%s\"", act);
  if (taps == 0) return hn_op_bad(io->node, error, "the weights are empty");
  hone_status s = expect(io, X, "the input", any, error);
  if (!s) s = expect(io, W, "weight", weights, error);
  if (!s) s = expect(io, PAST, "past_state", state, error);
  if (!s) s = hn_infer_vector(io, BIAS, channels, error);
  for (uint32_t i = W; i <= PAST && !s; i++) s = hn_infer_same_dtype(io, X, i, error);
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, 3, y);
  hn_infer_set(io, 1, x->dtype, 3, state);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_macs(cost, hn_known_count(io->output[0]) * (double)hn_max(at(io->input[W], 2), 0));
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const int64_t channels = x->desc.dim[1], n = x->desc.dim[2], taps = call->input[W]->desc.dim[2],
                before = taps - 1;
  const bool swish = strcmp(hone_node_string(call->node, "activation", "none"), "none") != 0;
  double *line = hn_scratch(call, before + n, sizeof *line, error),
         *w = line ? hn_scratch(call, taps, sizeof *w, error) : NULL,
         *y = w ? hn_scratch(call, n, sizeof *y, error) : NULL;
  if (!y) return HONE_ERROR_MEMORY;
  for (int64_t row = 0; row < x->desc.dim[0] * channels; row++) {
    const int64_t c = row % channels;
    const double bias = hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], c) : 0;
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    memset(line, 0, (size_t)before * sizeof *line);
    if (hn_call_has(call, PAST)) hn_load_f64(line, call->input[PAST], row * before, before);
    hn_load_f64(line + before, x, row * n, n);
    hn_load_f64(w, call->input[W], c * taps, taps);
    for (int64_t i = 0; i < n; i++) {
      y[i] = bias;
      for (int64_t k = 0; k < taps; k++) y[i] += w[k] * line[i + k];
      if (swish) y[i] /= 1 + exp(-y[i]);
    }
    hn_store_f64(call->output[0], row * n, y, n);
    if (call->n_outputs > 1 && call->output[1]) hn_store_f64(call->output[1], row * before, line + n, before);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "activation", .type = HONE_ATTR_STRING}, {0}};

HN_OP(causal_conv_with_state) = {HN_OP_HEAD,       .op_type = "CausalConvWithState",
                                 .since = 27,      HN_INPUTS(2, 4),
                                 HN_OUTPUTS(1, 2), .types = HN_TYPES_FLOAT,
                                 .attrs = attrs,   .infer = infer,
                                 .cost = cost,     .reference = reference};
