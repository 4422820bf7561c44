/* VarlenCausalConvWithState: CausalConvWithState of texts that lie one behind the other, [tokens, channels],
 * each with a state of its own; and, where asked for, the first tokens of each as they are (state_update), by
 * which a caller moves the old state on. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/common/packed_texts.h"

enum { X, W, STARTS, BIAS, STATE, CAPTURED, DELTA, MASK, INPUTS };
enum { Y, FINAL, UPDATES };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W];
  const char *act = hone_node_string(io->node, "activation", "none");
  const int64_t apart = hone_node_int(io->node, "dilation", 1), taps = hn_dim(w, 2),
                channels = hn_dim(x, 1) >= 0 ? hn_dim(x, 1) : hn_dim(w, 0);
  int64_t before = HONE_DIM_UNKNOWN, capacity;
  if (strcmp(act, "none") && strcmp(act, "silu") && strcmp(act, "swish"))
    return hn_op_bad(io->node, error, "activation is \"%s\"", act);
  if (apart < 1 || apart > INT32_MAX)
    return hn_op_bad(io->node, error, "dilation is %lld, expected 1 to %d", (long long)apart, INT32_MAX);
  if (hn_has_input(io, DELTA) || hn_has_input(io, MASK))
    return hn_op_refuse(io->node, error,
                        "kernel_delta and previous_mask, which ONNX Runtime has on CUDA alone");
  if (taps == 0) return hn_op_bad(io->node, error, "the weights are empty");
  if (taps > 0 && (__builtin_mul_overflow(taps - 1, apart, &before) || before > INT32_MAX))
    return hn_op_bad(io->node, error, "%lld taps %lld apart", (long long)taps, (long long)apart);
  if (!hn_has_input(io, STATE)) return hn_op_bad(io->node, error, "initial_state is left out");
  hone_status s = hn_texts_capacity(io, CAPTURED, &capacity, error);
  if (!s) s = hn_texts_infer(io, STARTS, CAPTURED, error);
  if (s) return s;
  const int64_t batch = hn_texts_batch(io, STARTS), state[3] = {batch, channels, before};
  s = hn_infer_dims(io, X, "input", 2, (const int64_t[]){HONE_DIM_UNKNOWN, channels}, error);
  if (!s) s = hn_infer_dims(io, W, "weight", 3, (const int64_t[]){channels, 1, taps}, error);
  if (!s) s = hn_infer_vector(io, BIAS, channels, error);
  if (!s) s = hn_infer_dims(io, STATE, "initial_state", 3, state, error);
  if (!s) s = hn_infer_same_dtype(io, X, W, error);
  if (!s) s = hn_infer_same_dtype(io, X, BIAS, error);
  if (!s) s = hn_infer_same_dtype(io, X, STATE, error);
  if (s) return s;
  hn_infer_set(io, Y, x->dtype, 2, (const int64_t[]){hn_dim(x, 0), channels});
  hn_infer_set(io, FINAL, x->dtype, 3, state);
  hn_infer_set(io, UPDATES, x->dtype, 3, (const int64_t[]){batch, capacity, channels});
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const int64_t taps = hn_dim(io->input[W], 2);
  hn_cost_macs(cost, hn_known_count(io->output[Y]) * (double)(taps > 0 ? taps : 0));
}

/* One channel of one text. */
typedef struct lane {
  int64_t first, tokens, channel, channels, row;
  double *line, *w; /* line: the state, and the text's numbers behind it */
} lane;

static void run_lane(const hone_call *call, const lane *l, int64_t taps, int64_t apart, bool swish) {
  const int64_t before = (taps - 1) * apart, state = (l->row * l->channels + l->channel) * before;
  const double bias = hn_call_has(call, BIAS) ? hn_get_f64(call->input[BIAS], l->channel) : 0;
  hn_read_f64(l->line, call->input[STATE]->data, call->input[STATE]->desc.dtype, state, before);
  for (int64_t i = 0; i < l->tokens; i++)
    l->line[before + i] = hn_get_f64(call->input[X], (l->first + i) * l->channels + l->channel);
  hn_read_f64(l->w, call->input[W]->data, call->input[W]->desc.dtype, l->channel * taps, taps);
  for (int64_t i = 0; i < l->tokens; i++) {
    double y = bias;
    for (int64_t k = 0; k < taps; k++) y += l->w[k] * l->line[i + k * apart];
    if (swish) y /= 1 + exp(-y);
    hn_set_f64(call->output[Y], (l->first + i) * l->channels + l->channel, y);
  }
  if (call->n_outputs > FINAL && call->output[FINAL])
    hn_write_f64(call->output[FINAL]->data, call->output[FINAL]->desc.dtype, state, l->line + l->tokens,
                 before);
}

static void put_updates(const hone_call *call, const lane *l, int64_t capacity) {
  const size_t size = hone_dtype_size(call->input[X]->desc.dtype) * (size_t)l->channels;
  const int64_t captured = hn_texts_captured(call, CAPTURED, l->row, l->tokens, capacity);
  for (int64_t i = 0; i < capacity; i++) {
    char *to = (char *)call->output[UPDATES]->data + (size_t)(l->row * capacity + i) * size;
    if (i >= captured) memset(to, 0, size);
    if (i < captured) memcpy(to, (const char *)call->input[X]->data + (size_t)(l->first + i) * size, size);
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *starts = call->input[STARTS];
  const int64_t taps = call->input[W]->desc.dim[2], apart = hone_node_int(call->node, "dilation", 1),
                capacity = hone_node_int(call->node, "state_update_capacity", 0),
                batch = hn_count(starts) - 1;
  const bool swish = strcmp(hone_node_string(call->node, "activation", "none"), "none") != 0;
  lane l = {.channels = x->desc.dim[1]};
  hone_status s = hn_texts_check(call->node, starts, x->desc.dim[0], error);
  if (s) return s;
  l.line = hn_scratch(call, (taps - 1) * apart + x->desc.dim[0], sizeof *l.line, error);
  l.w = l.line ? hn_scratch(call, taps, sizeof *l.w, error) : NULL;
  if (!l.w) return HONE_ERROR_MEMORY;
  for (l.row = 0; l.row < batch; l.row++) {
    l.first = hn_get_i64(starts, l.row), l.tokens = hn_get_i64(starts, l.row + 1) - l.first;
    for (l.channel = 0; l.channel < l.channels; l.channel++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      run_lane(call, &l, taps, apart, swish);
    }
    if (call->n_outputs > UPDATES && call->output[UPDATES]) put_updates(call, &l, capacity);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {
    {.name = "activation", .type = HONE_ATTR_STRING},         {.name = "dilation", .type = HONE_ATTR_INT},
    {.name = "state_update_capacity", .type = HONE_ATTR_INT}, {.name = "group_size", .type = HONE_ATTR_INT},
    {.name = "delta_offset", .type = HONE_ATTR_INT},          {0}};

HN_OP(varlen_causal_conv_with_state) = {HONE_DESC_HEAD(hone_op_desc),
                                        .domain = "com.microsoft",
                                        .op_type = "VarlenCausalConvWithState",
                                        .since = 1,
                                        HN_INPUTS(3, INPUTS),
                                        HN_OUTPUTS(1, 3),
                                        .types = HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F16) |
                                                 HONE_TYPES(HONE_DTYPE_BF16),
                                        .attrs = attrs,
                                        .infer = infer,
                                        .cost = cost,
                                        .reference = reference};
