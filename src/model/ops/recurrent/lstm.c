/* LSTM: input, output, forget and cell gate, in this order of rows; peepholes for input, output and forget.
 */
#include "model/ops/quantized/dynamic.h"
#include "model/ops/recurrent/recurrent.h"

/* met: what meets R in h's place, over `scale`. */
static void advance(const hn_rnn *r, double *gates, const double *met, double scale, double *h, double *c,
                    double *work) {
  const int64_t n = r->hidden;
  const bool coupled = hone_node_int(r->node, "input_forget", 0) != 0;
  const double *p = r->peepholes;
  for (int64_t i = 0; i < 4 * n; i++) work[i] = gates[i] + (r->rec_bias ? r->rec_bias[i] : 0);
  hn_rnn_add_scaled(work, r->rec, 4 * n, met, n, r->rec_scale, scale);
  for (int64_t i = 0; i < n; i++) {
    double in = hn_rnn_activate(r, 0, work[i] + (p ? p[i] * c[i] : 0));
    double forget = coupled ? 1 - in : hn_rnn_activate(r, 0, work[2 * n + i] + (p ? p[2 * n + i] * c[i] : 0));
    c[i] = forget * c[i] + in * hn_rnn_activate(r, 1, work[3 * n + i]);
    double out = hn_rnn_activate(r, 0, work[n + i] + (p ? p[n + i] * c[i] : 0));
    h[i] = out * hn_rnn_apply(r, 2, c[i]); /* clip bounds what enters the gates, not the cell */
  }
}

static void step(const hn_rnn *r, double *gates, double *h, double *c, double *work) {
  advance(r, gates, h, 1, h, c, work);
}

static void rounded_step(const hn_rnn *r, double *gates, double *h, double *c, double *work) {
  const int64_t n = r->hidden;
  double *met = work + 4 * n; /* as many are free behind it */
  float *plain = (float *)(void *)(met + n);
  uint8_t *codes = (uint8_t *)(void *)(met + 2 * n), zero;
  float scale;
  for (int64_t i = 0; i < n; i++) plain[i] = (float)h[i];
  hn_quantise_dynamically(plain, n, codes, &scale, &zero);
  for (int64_t i = 0; i < n; i++) met[i] = codes[i] - zero;
  advance(r, gates, met, (double)scale, h, c, work);
}

static const hn_activation_kind usual[] = {HN_ACT_SIGMOID, HN_ACT_TANH, HN_ACT_TANH};
const hn_rnn_kind hn_rnn_kind_lstm = {4, 3, usual, true, step},
                  hn_rnn_kind_lstm_rounded = {4, 3, usual, true, rounded_step};

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_rnn_infer(io, &hn_rnn_kind_lstm, error);
}
static void cost(const hone_infer *io, hone_cost *cost) { hn_rnn_cost(io, &hn_rnn_kind_lstm, cost); }
static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rnn_run(call, &hn_rnn_kind_lstm, error);
}

static const hone_attr_desc attrs[] = {HN_RNN_ATTRS, {"input_forget", HONE_ATTR_INT, false, 0, 0}, {0}};

HN_OP(lstm) = {HN_OP_HEAD,       .op_type = "LSTM",       .since = 1,     HN_INPUTS(3, 8),
               HN_OUTPUTS(0, 3), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
               .cost = cost,     .reference = reference};
