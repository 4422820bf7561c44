#include "model/ops/training/update.h"

hone_status hn_update_infer(const hone_infer *io, uint32_t kept, hone_error *error) {
  const uint32_t n = io->n_outputs / (1 + kept);
  if (io->n_outputs % (1 + kept) || io->n_inputs != 2 + n * (2 + kept))
    return hn_op_bad(io->node, error, "%u inputs and %u outputs do not fit", io->n_inputs, io->n_outputs);
  hone_status s = HONE_OK;
  for (uint32_t i = 0; i < io->n_inputs && !s; i++)
    s = hn_has_input(io, i)
            ? hn_infer_dtype_in(io, i, i == 1 ? HONE_TYPES(HONE_DTYPE_I64) : HN_UPDATE_TYPES, error)
            : hn_op_bad(io->node, error, "input %u is left out", i);
  for (uint32_t i = 0; i < 2 && !s; i++)
    if (hone_desc_known(io->input[i]) && hone_desc_count(io->input[i]) != 1)
      s = hn_op_bad(io->node, error, "input %u is not one number", i);
  if (s) return s;
  for (uint32_t i = 0; i < io->n_outputs; i++) {
    const hone_tensor_desc *x = io->input[2 + i % n];
    hn_infer_set(io, i, x->dtype, x->rank, x->dim);
  }
  return HONE_OK;
}

/* Of a tensor whose shape only the run knows, and which may be empty. */
static double first_of(const hone_tensor *t) { return hn_count(t) ? hn_get_f64(t, 0) : 0; }

double hn_update_rate(const hone_call *call) { return first_of(call->input[0]); }
double hn_update_count(const hone_call *call) { return first_of(call->input[1]); }

static hone_status update_one(hone_call *call, uint32_t at, uint32_t n, uint32_t kept, hn_update update,
                              const void *rule, hone_error *error) {
  const hone_tensor *x = call->input[2 + at], *gradient = call->input[2 + n + at];
  const int64_t count = hn_count(x);
  for (uint32_t k = 0; k <= kept; k++)
    if (!call->input[2 + (k + 1) * n + at] || hn_count(call->input[2 + (k + 1) * n + at]) != count)
      return hn_op_bad(call->node, error, "input %u is not as large as its parameters", 2 + (k + 1) * n + at);
  for (int64_t i = 0; i < count; i++) {
    double value = hn_get_f64(x, i), state[2] = {0};
    if (i % 65536 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    for (uint32_t k = 0; k < kept; k++) state[k] = hn_get_f64(call->input[2 + (k + 2) * n + at], i);
    update(rule, hn_get_f64(gradient, i), &value, state);
    if (call->output[at]) hn_set_f64(call->output[at], i, value);
    for (uint32_t k = 0; k < kept; k++)
      if (call->output[(k + 1) * n + at]) hn_set_f64(call->output[(k + 1) * n + at], i, state[k]);
  }
  return HONE_OK;
}

hone_status hn_update_all(hone_call *call, uint32_t kept, hn_update update, const void *rule,
                          hone_error *error) {
  const uint32_t n = call->n_outputs / (1 + kept);
  hone_status s = HONE_OK;
  for (uint32_t i = 0; i < n && !s; i++) s = update_one(call, i, n, kept, update, rule, error);
  return s;
}
