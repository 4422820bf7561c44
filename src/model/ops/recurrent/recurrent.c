/* Shared parts of RNN, GRU and LSTM (recurrent.h). */
#include "model/ops/recurrent/recurrent.h"

#include <strings.h>

enum { X, W, R, B, LENS, INITIAL_H, INITIAL_C, PEEPHOLES };

/* ------------------------------------------------------------------ activations */

static const struct {
  const char *name;
  int parameters; /* how many of alpha, beta it takes from the attributes */
  double alpha, beta;
} known[] = {
    [HN_ACT_RELU] = {"Relu", 0, 0, 0},
    [HN_ACT_TANH] = {"Tanh", 0, 0, 0},
    [HN_ACT_SIGMOID] = {"Sigmoid", 0, 0, 0},
    [HN_ACT_AFFINE] = {"Affine", 2, 1, 0},
    [HN_ACT_LEAKY_RELU] = {"LeakyRelu", 1, 0.01f, 0},
    [HN_ACT_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0},
    [HN_ACT_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
    [HN_ACT_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2f, 0.5},
    [HN_ACT_ELU] = {"Elu", 1, 1, 0},
    [HN_ACT_SOFTSIGN] = {"Softsign", 0, 0, 0},
    [HN_ACT_SOFTPLUS] = {"Softplus", 0, 0, 0},
};

/* exp may overflow: both forms stay within its range. */
static double sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

double hn_rnn_apply(const hn_rnn *r, int32_t which, double x) {
  const hn_activation *a = &r->f[which];
  switch (a->kind) {
  case HN_ACT_RELU: return x > 0 ? x : x == x ? 0 : x;
  case HN_ACT_TANH: return tanh(x);
  case HN_ACT_SIGMOID: return sigmoid(x);
  case HN_ACT_AFFINE: return a->alpha * x + a->beta;
  case HN_ACT_LEAKY_RELU: return x >= 0 ? x : a->alpha * x;
  case HN_ACT_THRESHOLDED_RELU: return x >= a->alpha ? x : 0;
  case HN_ACT_SCALED_TANH: return a->alpha * tanh(a->beta * x);
  case HN_ACT_HARD_SIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
  case HN_ACT_ELU: return x >= 0 ? x : a->alpha * expm1(x);
  case HN_ACT_SOFTSIGN: return x / (1 + fabs(x));
  case HN_ACT_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
  }
  return x;
}

double hn_rnn_activate(const hn_rnn *r, int32_t which, double x) {
  if (r->clip > 0) x = x > r->clip ? r->clip : x < -r->clip ? -r->clip : x;
  return hn_rnn_apply(r, which, x);
}

static bool is_name(hone_string s, const char *name) {
  return s.len == strlen(name) && strncasecmp(s.ptr, name, s.len) == 0;
}

static hone_status read_activations(hn_rnn *r, hone_error *error) {
  size_t n = 0, n_alpha = 0, n_beta = 0, next_alpha = 0, next_beta = 0;
  size_t wanted = (size_t)(r->kind->activations * r->directions);
  const hone_string *names = hone_node_strings(r->node, "activations", &n);
  const float *alpha = hone_node_floats(r->node, "activation_alpha", &n_alpha);
  const float *beta = hone_node_floats(r->node, "activation_beta", &n_beta);
  if (n && n != wanted)
    return hn_op_bad(r->node, error, "activations has %zu names, expected %zu", n, wanted);
  for (size_t i = 0; i < wanted; i++) {
    size_t k = (size_t)r->kind->usual[i % (size_t)r->kind->activations];
    if (n)
      for (k = 0; k < sizeof known / sizeof *known && !is_name(names[i], known[k].name);) k++;
    if (k == sizeof known / sizeof *known)
      return hn_op_refuse(r->node, error, "activation \"%.*s\"", (int)hn_min((int64_t)names[i].len, 40),
                          names[i].ptr);
    hn_activation *a = &r->act[i];
    *a = (hn_activation){(hn_activation_kind)k, known[k].alpha, known[k].beta};
    /* The lists hold values only for the activations that take them. */
    if (known[k].parameters > 0 && next_alpha < n_alpha) a->alpha = alpha[next_alpha++];
    if (known[k].parameters > 1 && next_beta < n_beta) a->beta = beta[next_beta++];
  }
  return HONE_OK;
}

/* ------------------------------------------------------------------ shapes */

/* Takes a size that is said in several places: sets *size or compares with it. */
static hone_status agree(const hone_node *node, int64_t *size, int64_t dim, const char *what,
                         hone_error *error) {
  if (dim < 0) return HONE_OK;
  if (*size >= 0 && *size != dim)
    return hn_op_bad(node, error, "%s is %lld in one place and %lld in another", what, (long long)*size,
                     (long long)dim);
  *size = dim;
  return HONE_OK;
}

/* Compares an input with the dimensions that it should have, as far as both are known. */
static hone_status check_input(const hone_node *node, const hone_tensor_desc *d, uint32_t i, int32_t rank,
                               const int64_t *want, hone_error *error) {
  if (d->rank < 0) return HONE_OK;
  if (d->rank != rank)
    return hn_op_bad(node, error, "input %u has rank %d, expected %d", i, (int)d->rank, (int)rank);
  for (int32_t k = 0; k < rank; k++)
    if (d->dim[k] >= 0 && want[k] >= 0 && d->dim[k] != want[k])
      return hn_op_bad(node, error, "input %u has size %lld in dimension %d, expected %lld", i,
                       (long long)d->dim[k], (int)k, (long long)want[k]);
  return HONE_OK;
}

static int64_t times(int64_t a, int64_t b) { return a < 0 || b < 0 ? HONE_DIM_UNKNOWN : a * b; }

hone_status hn_rnn_init(hn_rnn *r, const hone_node *node, const hn_rnn_kind *kind,
                        const hone_tensor_desc *const *in, uint32_t n_in, hone_error *error) {
  *r = (hn_rnn){
      .node = node, .kind = kind, .seq = -1, .batch = -1, .input = -1, .hidden = -1, .directions = 1};
  const char *direction = hone_node_string(node, "direction", "forward");
  if (!strcmp(direction, "bidirectional"))
    r->directions = 2;
  else if (!strcmp(direction, "reverse"))
    r->reverse_only = true;
  else if (strcmp(direction, "forward"))
    return hn_op_bad(node, error, "direction is \"%s\"", direction);
  r->batch_first = hone_node_int(node, "layout", 0) != 0;
  r->clip = hone_node_float(node, "clip", 0);
  hone_status s = read_activations(r, error);
  if (s) return s;
  int64_t hidden = hone_node_int(node, "hidden_size", HONE_DIM_UNKNOWN);
  if (hone_node_has(node, "hidden_size") && (hidden < 1 || hidden > INT32_MAX))
    return hn_op_bad(node, error, "hidden_size is %lld", (long long)hidden);
  r->hidden = hidden;
  for (uint32_t i = X; i <= R; i++)
    if (in[i]->rank >= 0 && in[i]->rank != 3)
      return hn_op_bad(node, error, "input %u has rank %d, expected 3", i, (int)in[i]->rank);
  if (in[X]->rank == 3) {
    r->seq = in[X]->dim[r->batch_first ? 1 : 0];
    r->batch = in[X]->dim[r->batch_first ? 0 : 1];
    r->input = in[X]->dim[2];
  }
  if (in[R]->rank == 3 && (s = agree(node, &r->hidden, in[R]->dim[2], "hidden_size", error))) return s;
  if (in[W]->rank == 3 && (s = agree(node, &r->input, in[W]->dim[2], "the input size", error))) return s;
  if (r->hidden > INT32_MAX) return hn_op_bad(node, error, "hidden_size is %lld", (long long)r->hidden);
  const int64_t d = r->directions, gh = times(kind->gates, r->hidden);
  const int64_t w[] = {d, gh, r->input}, rec[] = {d, gh, r->hidden}, bias[] = {d, times(2, gh)};
  const int64_t lens[] = {r->batch}, peep[] = {d, times(3, r->hidden)};
  const int64_t state[] = {r->batch_first ? r->batch : d, r->batch_first ? d : r->batch, r->hidden};
  const struct {
    int32_t rank;
    const int64_t *dims;
  } shape[] = {[W] = {3, w},           [R] = {3, rec},           [B] = {2, bias},
               [LENS] = {1, lens},     [INITIAL_H] = {3, state}, [INITIAL_C] = {3, state},
               [PEEPHOLES] = {2, peep}};
  for (uint32_t i = W; i < n_in && i <= PEEPHOLES; i++)
    if (in[i] && (s = check_input(node, in[i], i, shape[i].rank, shape[i].dims, error))) return s;
  return HONE_OK;
}

hone_status hn_rnn_infer(const hone_infer *io, const hn_rnn_kind *kind, hone_error *error) {
  hn_rnn r;
  hone_status s = hn_rnn_init(&r, io->node, kind, io->input, io->n_inputs, error);
  for (uint32_t i = 1; i < io->n_inputs && !s; i++)
    s = i == LENS ? hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_I32), error)
                  : hn_infer_same_dtype(io, 0, i, error);
  if (s) return s;
  const int64_t y[] = {r.seq, r.directions, r.batch, r.hidden},
                y1[] = {r.batch, r.seq, r.directions, r.hidden};
  const int64_t state[] = {r.directions, r.batch, r.hidden}, state1[] = {r.batch, r.directions, r.hidden};
  hn_infer_set(io, 0, io->input[X]->dtype, 4, r.batch_first ? y1 : y);
  for (uint32_t i = 1; i < io->n_outputs; i++)
    hn_infer_set(io, i, io->input[X]->dtype, 3, r.batch_first ? state1 : state);
  return HONE_OK;
}

void hn_rnn_cost(const hone_infer *io, const hn_rnn_kind *kind, hone_cost *cost) {
  hn_rnn r;
  double macs = 0;
  if (hn_rnn_init(&r, io->node, kind, io->input, io->n_inputs, NULL) == HONE_OK && r.seq > 0 && r.batch > 0 &&
      r.input > 0)
    macs = (double)r.seq * (double)r.batch * (double)r.directions * kind->gates * (double)r.hidden *
           ((double)r.input + (double)r.hidden);
  hn_cost_macs(cost, macs);
}

/* ------------------------------------------------------------------ running */

void hn_rnn_add_scaled(double *out, const double *rows, int64_t rows_n, const double *v, int64_t n,
                       const double *scale, double by) {
  for (int64_t i = 0; i < rows_n; i++) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += rows[i * n + k] * v[k];
    out[i] += scale ? sum * (scale[i] * by) : sum;
  }
}

void hn_rnn_add_product(double *out, const double *rows, int64_t rows_n, const double *v, int64_t n) {
  hn_rnn_add_scaled(out, rows, rows_n, v, n, NULL, 1);
}

typedef struct buffers {
  const double *x, *w, *rec, *bias, *peepholes;
  double *gates, *h, *c, *work;
} buffers;

static hone_status load(hone_call *call, const hn_rnn *r, buffers *b, hone_error *error) {
  int64_t gh = r->kind->gates * r->hidden;
  if (!(b->x = hn_all_f64(call, call->input[X], error))) return HONE_ERROR_MEMORY;
  if (!(b->w = hn_all_f64(call, call->input[W], error))) return HONE_ERROR_MEMORY;
  if (!(b->rec = hn_all_f64(call, call->input[R], error))) return HONE_ERROR_MEMORY;
  if (hn_call_has(call, B) && !(b->bias = hn_all_f64(call, call->input[B], error))) return HONE_ERROR_MEMORY;
  if (r->kind->has_cell && hn_call_has(call, PEEPHOLES) &&
      !(b->peepholes = hn_all_f64(call, call->input[PEEPHOLES], error)))
    return HONE_ERROR_MEMORY;
  if (!(b->gates = hn_scratch(call, 3 * gh + 2 * r->hidden, sizeof *b->gates, error)))
    return HONE_ERROR_MEMORY;
  b->work = b->gates + gh;
  b->h = b->work + 2 * gh;
  b->c = b->h + r->hidden;
  return HONE_OK;
}

/* Offset of the state (or of Y at step t) of direction d and sample n. */
static int64_t state_at(const hn_rnn *r, int64_t d, int64_t n) {
  return (r->batch_first ? n * r->directions + d : d * r->batch + n) * r->hidden;
}
static int64_t y_at(const hn_rnn *r, int64_t t, int64_t d, int64_t n) {
  return (r->batch_first ? (n * r->seq + t) * r->directions + d : (t * r->directions + d) * r->batch + n) *
         r->hidden;
}

/* All steps of one sample in one direction. */
static void run_sample(hone_call *call, const hn_rnn *r, const buffers *b, int64_t d, int64_t n,
                       int64_t steps) {
  const int64_t gh = r->kind->gates * r->hidden, hidden = r->hidden;
  const double *bias = b->bias ? b->bias + d * 2 * gh : NULL;
  const bool backwards = r->reverse_only || d == 1;
  hone_tensor *y = call->n_outputs > 0 ? call->output[0] : NULL;
  for (int64_t i = 0; i < hidden; i++) b->h[i] = b->c[i] = 0;
  if (hn_call_has(call, INITIAL_H)) hn_load_f64(b->h, call->input[INITIAL_H], state_at(r, d, n), hidden);
  if (r->kind->has_cell && hn_call_has(call, INITIAL_C))
    hn_load_f64(b->c, call->input[INITIAL_C], state_at(r, d, n), hidden);
  for (int64_t k = 0; k < steps; k++) {
    int64_t t = backwards ? steps - 1 - k : k;
    const double *x = b->x + (r->batch_first ? n * r->seq + t : t * r->batch + n) * r->input;
    for (int64_t i = 0; i < gh; i++) b->gates[i] = bias ? bias[i] : 0;
    hn_rnn_add_scaled(b->gates, r->w, gh, x, r->input, r->w_scale, 1);
    r->kind->step(r, b->gates, b->h, b->c, b->work);
    if (y) hn_store_f64(y, y_at(r, t, d, n), b->h, hidden);
  }
  if (call->n_outputs > 1 && call->output[1]) hn_store_f64(call->output[1], state_at(r, d, n), b->h, hidden);
  if (call->n_outputs > 2 && call->output[2]) hn_store_f64(call->output[2], state_at(r, d, n), b->c, hidden);
}

hone_status hn_rnn_run_scaled(hone_call *call, const hn_rnn_kind *kind, const double *w_scale,
                              const double *rec_scale, hone_error *error) {
  const hone_tensor_desc *desc[PEEPHOLES + 1] = {NULL};
  hn_rnn r;
  buffers b = {0};
  for (uint32_t i = 0; i < call->n_inputs && i <= PEEPHOLES; i++)
    desc[i] = call->input[i] ? &call->input[i]->desc : NULL;
  hone_status s = hn_rnn_init(&r, call->node, kind, desc, call->n_inputs, error);
  if (!s) s = load(call, &r, &b, error);
  if (s) return s;
  const size_t bytes =
      call->n_outputs > 0 && call->output[0] ? (size_t)hone_desc_bytes(&call->output[0]->desc) : 0;
  if (bytes) memset(call->output[0]->data, 0, bytes); /* steps beyond a sequence's length are zero */
  const int64_t gh = kind->gates * r.hidden;
  for (int64_t d = 0; d < r.directions; d++) {
    r.f = r.act + d * kind->activations;
    r.w = b.w + d * gh * r.input;
    r.rec = b.rec + d * gh * r.hidden;
    r.w_scale = w_scale ? w_scale + d * gh : NULL, r.rec_scale = rec_scale ? rec_scale + d * gh : NULL;
    r.rec_bias = b.bias ? b.bias + d * 2 * gh + gh : NULL;
    r.peepholes = b.peepholes ? b.peepholes + d * 3 * r.hidden : NULL;
    for (int64_t n = 0; n < r.batch; n++) {
      int64_t steps = hn_call_has(call, LENS) ? hn_get_i64(call->input[LENS], n) : r.seq;
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      if (steps < 0 || steps > r.seq)
        return hn_op_bad(call->node, error, "sequence_lens holds %lld for a length of %lld", (long long)steps,
                         (long long)r.seq);
      run_sample(call, &r, &b, d, n, steps);
    }
  }
  return HONE_OK;
}

hone_status hn_rnn_run(hone_call *call, const hn_rnn_kind *kind, hone_error *error) {
  return hn_rnn_run_scaled(call, kind, NULL, NULL, error);
}
