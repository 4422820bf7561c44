/* GRU: update z, reset r and hidden gate, in this order of rows. linear_before_reset applies the reset after
 * the recurrent product of the hidden gate. */
#include "model/ops/recurrent/recurrent.h"

static void step(const hn_rnn *r, double *gates, double *h, double *c, double *work) {
  const int64_t n = r->hidden;
  const bool linear_before_reset = hone_node_int(r->node, "linear_before_reset", 0) != 0;
  const double *hidden_rows = r->rec + 2 * n * n;
  double *hidden = work + 2 * n, *reset_h = work + 3 * n; /* work holds 6 n */
  (void)c;
  for (int64_t i = 0; i < 2 * n; i++) work[i] = gates[i] + (r->rec_bias ? r->rec_bias[i] : 0);
  hn_rnn_add_product(work, r->rec, 2 * n, h, n);
  for (int64_t i = 0; i < 2 * n; i++) work[i] = hn_rnn_activate(r, 0, work[i]);
  const double *update = work, *reset = work + n;
  for (int64_t i = 0; i < n; i++) {
    hidden[i] = r->rec_bias ? r->rec_bias[2 * n + i] : 0;
    reset_h[i] = reset[i] * h[i];
  }
  hn_rnn_add_product(hidden, hidden_rows, n, linear_before_reset ? h : reset_h, n);
  for (int64_t i = 0; i < n; i++) {
    double g = hn_rnn_activate(r, 1, gates[2 * n + i] + hidden[i] * (linear_before_reset ? reset[i] : 1));
    h[i] = (1 - update[i]) * g + update[i] * h[i];
  }
}

static const hn_activation_kind usual[] = {HN_ACT_SIGMOID, HN_ACT_TANH};
const hn_rnn_kind hn_rnn_kind_gru = {3, 2, usual, false, step};

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_rnn_infer(io, &hn_rnn_kind_gru, error);
}
static void cost(const hone_infer *io, hone_cost *cost) { hn_rnn_cost(io, &hn_rnn_kind_gru, cost); }
static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rnn_run(call, &hn_rnn_kind_gru, error);
}

static const hone_attr_desc attrs[] = {
    HN_RNN_ATTRS, {"linear_before_reset", HONE_ATTR_INT, false, 3, 0}, {0}};

HN_OP(gru) = {HN_OP_HEAD,       .op_type = "GRU",        .since = 1,     HN_INPUTS(3, 6),
              HN_OUTPUTS(0, 2), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
              .cost = cost,     .reference = reference};
