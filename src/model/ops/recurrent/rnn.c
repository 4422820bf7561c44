/* RNN: H = f(W x + Wb + R H + Rb). */
#include "model/ops/recurrent/recurrent.h"

static void step(const hn_rnn *r, double *gates, double *h, double *c, double *work) {
  (void)c;
  for (int64_t i = 0; i < r->hidden; i++) work[i] = gates[i] + (r->rec_bias ? r->rec_bias[i] : 0);
  hn_rnn_add_product(work, r->rec, r->hidden, h, r->hidden);
  for (int64_t i = 0; i < r->hidden; i++) h[i] = hn_rnn_activate(r, 0, work[i]);
}

static const hn_activation_kind usual[] = {HN_ACT_TANH};
const hn_rnn_kind hn_rnn_kind_rnn = {1, 1, usual, false, step};

static hone_status infer(const hone_infer *io, hone_error *error) {
  return hn_rnn_infer(io, &hn_rnn_kind_rnn, error);
}
static void cost(const hone_infer *io, hone_cost *cost) { hn_rnn_cost(io, &hn_rnn_kind_rnn, cost); }
static hone_status reference(hone_call *call, hone_error *error) {
  return hn_rnn_run(call, &hn_rnn_kind_rnn, error);
}

static const hone_attr_desc attrs[] = {HN_RNN_ATTRS, {0}};

HN_OP(rnn) = {HN_OP_HEAD,       .op_type = "RNN",        .since = 1,     HN_INPUTS(3, 6),
              HN_OUTPUTS(0, 2), .types = HN_TYPES_FLOAT, .attrs = attrs, .infer = infer,
              .cost = cost,     .reference = reference};
