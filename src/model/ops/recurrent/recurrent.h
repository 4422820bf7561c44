/* What RNN, GRU and LSTM share: shapes, activations, the walk over time, directions and batch. */
#ifndef HN_MODEL_OPS_RECURRENT_H
#define HN_MODEL_OPS_RECURRENT_H

#include "model/ops/common/bulk.h"

enum { HN_RNN_MAX_ACTIVATIONS = 3 };

typedef enum hn_activation_kind {
  HN_ACT_RELU,
  HN_ACT_TANH,
  HN_ACT_SIGMOID,
  HN_ACT_AFFINE,
  HN_ACT_LEAKY_RELU,
  HN_ACT_THRESHOLDED_RELU,
  HN_ACT_SCALED_TANH,
  HN_ACT_HARD_SIGMOID,
  HN_ACT_ELU,
  HN_ACT_SOFTSIGN,
  HN_ACT_SOFTPLUS
} hn_activation_kind;

typedef struct hn_activation {
  hn_activation_kind kind;
  double alpha, beta;
} hn_activation;

typedef struct hn_rnn hn_rnn;

/* Advances one sample of one direction by one step. gates: W x + Wb, [gates][hidden], may be overwritten. h
 * and c are the states [hidden], updated in place (c is LSTM's alone). work is scratch of 2 * gates * hidden.
 */
typedef void (*hn_rnn_cell)(const hn_rnn *r, double *gates, double *h, double *c, double *work);

/* The kind of cell: how many gates and activations it has. */
typedef struct hn_rnn_kind {
  int32_t gates, activations;
  const hn_activation_kind *usual; /* default activations */
  bool has_cell;                   /* LSTM: second state, second initial state, peepholes */
  hn_rnn_cell step;
} hn_rnn_kind;

/* lstm_rounded: h is rounded to 8 bits before it meets R, as DynamicQuantizeLinear does it; rec_scale is
 * there. */
extern const hn_rnn_kind hn_rnn_kind_rnn, hn_rnn_kind_gru, hn_rnn_kind_lstm, hn_rnn_kind_lstm_rounded;

struct hn_rnn {
  const hone_node *node;
  const hn_rnn_kind *kind;
  int64_t seq, batch, input, hidden; /* unknown (< 0) in inference */
  int64_t directions;
  bool reverse_only, batch_first;
  double clip; /* 0: none */
  hn_activation act[2 * HN_RNN_MAX_ACTIVATIONS];
  /* of the direction at hand, while running: */
  const hn_activation *f;             /* [activations] */
  const double *w, *rec;              /* [gates * hidden][input], [gates * hidden][hidden] */
  const double *rec_bias, *peepholes; /* [gates * hidden], [3 * hidden]; NULL: zero */
  const double *w_scale, *rec_scale;  /* [gates * hidden]: of the rows' sums; NULL: 1 */
};

/* Reads and checks attributes and the inputs' dimensions (in: [n_in], NULL where left out); unknown sizes
 * stay < 0. */
hone_status hn_rnn_init(hn_rnn *r, const hone_node *node, const hn_rnn_kind *kind,
                        const hone_tensor_desc *const *in, uint32_t n_in, hone_error *error);

double hn_rnn_apply(const hn_rnn *r, int32_t which, double x);    /* activation `which` */
double hn_rnn_activate(const hn_rnn *r, int32_t which, double x); /* clips, then applies activation `which` */
/* out[i] += sum of rows[i][0..n) * v for i < rows_n */
void hn_rnn_add_product(double *out, const double *rows, int64_t rows_n, const double *v, int64_t n);

/* The same with sums over a row times scale[i] and `by`, or as they are where scale is NULL. */
void hn_rnn_add_scaled(double *out, const double *rows, int64_t rows_n, const double *v, int64_t n,
                       const double *scale, double by);

hone_status hn_rnn_infer(const hone_infer *io, const hn_rnn_kind *kind, hone_error *error);
void hn_rnn_cost(const hone_infer *io, const hn_rnn_kind *kind, hone_cost *cost);
hone_status hn_rnn_run(hone_call *call, const hn_rnn_kind *kind, hone_error *error);
/* Where W, R and X are whole numbers and these the scales of their sums: [directions * gates * hidden]. */
hone_status hn_rnn_run_scaled(hone_call *call, const hn_rnn_kind *kind, const double *w_scale,
                              const double *rec_scale, hone_error *error);

#define HN_RNN_ATTRS                                                                                         \
  {"activation_alpha", HONE_ATTR_FLOATS, false, 0, 0}, {"activation_beta", HONE_ATTR_FLOATS, false, 0, 0},   \
      {"activations", HONE_ATTR_STRINGS, false, 0, 0}, {"clip", HONE_ATTR_FLOAT, false, 0, 0},               \
      {"direction", HONE_ATTR_STRING, false, 0, 0}, {"hidden_size", HONE_ATTR_INT, false, 0, 0},             \
      {"output_sequence", HONE_ATTR_INT, false, 0, 6}, { /* whether Y is wanted, which its name says */      \
    "layout", HONE_ATTR_INT, false, 14, 0                                                                    \
  }

#endif
