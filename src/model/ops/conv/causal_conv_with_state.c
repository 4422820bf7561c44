/* CausalConvWithState: every channel convolved by itself along the last dimension with what came before,
 * which is the end of the call before (past_state) or zeros; the own end is the second output.
 *
 * What only com.microsoft's has: taps that lie apart (dilation), sequences before channels (channels_last,
 * with channels of any rank), and the ends after each of the last places (state_window). */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

enum { X, W, BIAS, PAST };
enum { WINDOW = 8 };

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }

/* Input i has these dimensions, as far as they are known. */
static hone_status expect(const hone_infer *io, uint32_t i, const char *name, const hone_tensor_desc *want,
                          hone_error *error) {
  const hone_tensor_desc *d = hn_has_input(io, i) ? io->input[i] : NULL;
  bool fits = true;
  if (!d || d->rank < 0 || want->rank < 0) return HONE_OK;
  for (int32_t k = 0; k < d->rank && fits; k++)
    fits = d->rank == want->rank && (d->dim[k] < 0 || want->dim[k] < 0 || d->dim[k] == want->dim[k]);
  if (fits && d->rank == want->rank) return HONE_OK;
  char got[128], expected[128];
  return hn_op_bad(io->node, error, "%s is %s, expected %s", name, hone_desc_format(d, got, sizeof got),
                   hone_desc_format(want, expected, sizeof expected));
}

/* The channels of x, all of its dimensions behind the second. */
static int64_t trailing(const hone_tensor_desc *x) {
  int64_t n = 1;
  for (int32_t i = 2; i < x->rank; i++)
    if (x->dim[i] < 0 || __builtin_mul_overflow(n, x->dim[i], &n)) return HONE_DIM_UNKNOWN;
  return x->rank < 0 ? HONE_DIM_UNKNOWN : n;
}

/* The end of x that goes on: `before` places in the layout of x, with a window several of them. */
static hone_tensor_desc state_of(const hone_tensor_desc *x, bool last, int64_t channels, int64_t before,
                                 int64_t window) {
  hone_tensor_desc d = *x;
  if (x->rank < 0) return d;
  d.dim[last ? 1 : 2] = before;
  if (!last) d.dim[1] = channels;
  if (!window) return d;
  d.rank++;
  memmove(d.dim + 1, d.dim, (size_t)x->rank * sizeof *d.dim);
  d.dim[0] = window;
  return d;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  static const int64_t open[3] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN};
  const hone_tensor_desc *w = io->input[W];
  const char *act = hone_node_string(io->node, "activation", "none");
  const bool last = hone_node_int(io->node, "channels_last", 0) != 0;
  hone_tensor_desc x[1] = {*io->input[X]};
  if (x->rank < 0 && !last) *x = hone_desc(x->dtype, 3, open);
  const int64_t apart = hone_node_int(io->node, "dilation", 1),
                window = hone_node_int(io->node, "state_window", 0), taps = at(w, 2),
                own = last ? trailing(x) : at(x, 1), channels = own >= 0 ? own : at(w, 0);
  int64_t before = HONE_DIM_UNKNOWN;
  if (strcmp(act, "none") && strcmp(act, "silu") && strcmp(act, "swish"))
    return hn_op_bad(io->node, error, "activation is \"%s\"", act);
  if (apart < 1 || apart > INT32_MAX)
    return hn_op_bad(io->node, error, "dilation is %lld, expected 1 to %d", (long long)apart, INT32_MAX);
  if (window < 0 || window > WINDOW)
    return hn_op_bad(io->node, error, "state_window is %lld, expected 0 to %d", (long long)window, WINDOW);
  if (taps == 0) return hn_op_bad(io->node, error, "the weights are empty");
  if (x->rank >= 0 && (x->rank < 3 || x->rank >= HONE_MAX_RANK || (!last && x->rank != 3)))
    return hn_op_bad(io->node, error, "the input has rank %d, expected 3", (int)x->rank);
  if (taps > 0 && (__builtin_mul_overflow(taps - 1, apart, &before) || before > INT32_MAX))
    return hn_op_bad(io->node, error, "%lld taps %lld apart", (long long)taps, (long long)apart);
  const hone_tensor_desc weights = hone_desc(x->dtype, 3, (const int64_t[]){channels, 1, -1}),
                         state = state_of(x, last, channels, before, window);
  hone_tensor_desc y = *x;
  if (!last && y.rank == 3) y.dim[1] = channels;
  hone_status s = expect(io, W, "weight", &weights, error);
  if (!s) s = expect(io, PAST, "past_state", &state, error);
  if (!s) s = hn_infer_vector(io, BIAS, channels, error);
  for (uint32_t i = W; i <= PAST && !s; i++) s = hn_infer_same_dtype(io, X, i, error);
  if (s) return s;
  hn_infer_set(io, 0, x->dtype, y.rank, y.dim);
  hn_infer_set(io, 1, x->dtype, state.rank, state.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_macs(cost, hn_known_count(io->output[0]) * (double)hn_max(at(io->input[W], 2), 0));
}

/* Where the places of a channel's line lie. */
typedef struct places {
  int64_t first, step;
} places;

static places places_of(bool last, int64_t b, int64_t c, int64_t channels, int64_t n) {
  return last ? (places){b * n * channels + c, channels} : (places){(b * channels + c) * n, 1};
}

static void load(double *to, const hone_tensor *from, places p, int64_t n) {
  if (p.step == 1)
    hn_load_f64(to, from, p.first, n);
  else
    for (int64_t i = 0; i < n; i++) to[i] = hn_get_f64(from, p.first + i * p.step);
}

static void store(hone_tensor *to, places p, const double *from, int64_t n) {
  if (p.step == 1)
    hn_store_f64(to, p.first, from, n);
  else
    for (int64_t i = 0; i < n; i++) hn_set_f64(to, p.first + i * p.step, from[i]);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  const bool last = hone_node_int(call->node, "channels_last", 0) != 0,
             swish = strcmp(hone_node_string(call->node, "activation", "none"), "none") != 0;
  const int64_t channels = last ? trailing(&x->desc) : x->desc.dim[1], n = x->desc.dim[last ? 1 : 2],
                taps = call->input[W]->desc.dim[2], apart = hone_node_int(call->node, "dilation", 1),
                before = (taps - 1) * apart, window = hone_node_int(call->node, "state_window", 0);
  hone_tensor *present = call->n_outputs > 1 ? call->output[1] : NULL;
  const hone_tensor *state = present ? present : hn_call_has(call, PAST) ? call->input[PAST] : NULL;
  const int64_t slot = window && state ? hn_count(state) / window : 0;
  double *line = hn_scratch(call, before + n, sizeof *line, error),
         *w = line ? hn_scratch(call, taps, sizeof *w, error) : NULL,
         *y = w ? hn_scratch(call, n, sizeof *y, error) : NULL;
  if (!y) return HONE_ERROR_MEMORY;
  /* Slots of a window that no place of this call reaches. */
  if (present && window)
    memset(present->data, 0, (size_t)hn_count(present) * hone_dtype_size(present->desc.dtype));
  for (int64_t row = 0; row < x->desc.dim[0] * channels; row++) {
    const int64_t c = row % channels;
    const places mine = places_of(last, row / channels, c, channels, n);
    places end = places_of(last, row / channels, c, channels, before);
    const double bias = hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], c) : 0;
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    end.first += window ? (window - 1) * slot : 0;
    memset(line, 0, (size_t)before * sizeof *line);
    if (hn_call_has(call, PAST)) load(line, call->input[PAST], end, before);
    load(line + before, x, mine, n);
    hn_load_f64(w, call->input[W], c * taps, taps);
    for (int64_t i = 0; i < n; i++) {
      y[i] = bias;
      for (int64_t k = 0; k < taps; k++) y[i] += w[k] * line[i + k * apart];
      if (swish) y[i] /= 1 + exp(-y[i]);
    }
    store(call->output[0], mine, y, n);
    for (int64_t back = 0; present && back < (window ? window : 1) && (back < n || !back); back++)
      store(present, (places){end.first - back * slot, end.step}, line + n - back, before);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "activation", .type = HONE_ATTR_STRING}, {0}};

HN_OP(causal_conv_with_state) = {HN_OP_HEAD,       .op_type = "CausalConvWithState",
                                 .since = 27,      HN_INPUTS(2, 4),
                                 HN_OUTPUTS(1, 2), .types = HN_TYPES_FLOAT,
                                 .attrs = attrs,   .infer = infer,
                                 .cost = cost,     .reference = reference};
