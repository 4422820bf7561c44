/* QAttention: self-attention whose three projections are one product of codes.
 *
 *   Q K V = codes (input - zero) (weights - zero) * input scale * weight scale + bias
 *   y = softmax(scale Q K' + mask) V       head by head; past keys and values come before this call's
 *
 * mask_index: i32[batch] (keys behind it do not count), i32[2 batch] (ends, then starts), or 0 and 1 as
 * i32[batch, keys], i32[batch, queries, keys] or i32[batch, 1, most, most] with most >= keys. */
#include "model/ops/quantized/integer_matmul.h"

#include <float.h>

enum { X, W, BIAS, X_SCALE, W_SCALE, MASK, X_ZERO, W_ZERO, PAST };

static int64_t at(const hone_tensor_desc *d, int32_t i) { return d->rank > i ? d->dim[i] : HONE_DIM_UNKNOWN; }

static hone_status check_attrs(const hone_infer *io, hone_error *error) {
  if (hone_node_int(io->node, "do_rotary", 0)) return hn_op_refuse(io->node, error, "do_rotary");
  if (hone_node_int(io->node, "past_present_share_buffer", 0))
    return hn_op_refuse(io->node, error, "past_present_share_buffer");
  const int64_t heads = hone_node_int(io->node, "num_heads", 0);
  return heads > 0 ? HONE_OK : hn_op_bad(io->node, error, "num_heads is %lld", (long long)heads);
}

static hone_status check_mask(const hone_infer *io, int64_t batch, hone_error *error) {
  if (!hn_has_input(io, MASK)) return HONE_OK;
  const hone_tensor_desc *m = io->input[MASK];
  hone_status s = hn_infer_dtype_in(io, MASK, HONE_TYPES(HONE_DTYPE_I32), error);
  if (s || m->rank < 0) return s;
  if (m->rank < 1 || m->rank > 4) return hn_op_bad(io->node, error, "the mask has rank %d", (int)m->rank);
  if (batch < 0 || m->dim[0] < 0) return HONE_OK;
  if (m->rank == 1 ? m->dim[0] != batch && m->dim[0] != 2 * batch : m->dim[0] != batch && m->dim[0] != 1)
    return hn_op_bad(io->node, error, "the mask is for %lld inputs, of which there are %lld",
                     (long long)m->dim[0], (long long)batch);
  return HONE_OK;
}

/* Keys and values of earlier calls: [2, batch, heads, any number, size of a head]. */
static hone_status check_past(const hone_infer *io, int64_t heads, int64_t hidden, hone_error *error) {
  const hone_tensor_desc *past = hn_has_input(io, PAST) ? io->input[PAST] : NULL;
  hone_status s = hn_infer_dtype_in(io, PAST, HONE_TYPES(HONE_DTYPE_F32), error);
  if (s || !past || past->rank < 0) return s;
  if (past->rank != 5) return hn_op_bad(io->node, error, "past has rank %d", (int)past->rank);
  const int64_t want[5] = {2, at(io->input[X], 0), heads, HONE_DIM_UNKNOWN,
                           hidden < 0 ? hidden : hidden / heads};
  for (int i = 0; i < 5; i++)
    if (want[i] >= 0 && past->dim[i] >= 0 && past->dim[i] != want[i])
      return hn_op_bad(io->node, error, "past has %lld in dimension %d, expected %lld",
                       (long long)past->dim[i], i, (long long)want[i]);
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *w = io->input[W],
                         *past = hn_has_input(io, PAST) ? io->input[PAST] : NULL;
  hone_status s = check_attrs(io, error);
  if (!s && ((x->rank >= 0 && x->rank != 3) || (w->rank >= 0 && w->rank != 2)))
    s = hn_op_bad(io->node, error, "the input has rank %d and the weights %d, they must be 3 and 2",
                  (int)x->rank, (int)w->rank);
  const int64_t columns = at(w, 1), heads = hone_node_int(io->node, "num_heads", 0),
                hidden = columns < 0 ? columns : columns / 3;
  if (!s && columns >= 0 && (columns % 3 || hidden % heads))
    s = hn_op_bad(io->node, error, "%lld columns of weights are not 3 times %lld heads", (long long)columns,
                  (long long)heads);
  if (!s && at(x, 2) >= 0 && at(w, 0) >= 0 && at(x, 2) != at(w, 0))
    s = hn_op_bad(io->node, error, "the input has %lld values a token, the weights %lld rows",
                  (long long)at(x, 2), (long long)at(w, 0));
  if (!s) s = hn_infer_dtype_in(io, W, HN_TYPES_8BIT, error);
  if (!s) s = hn_infer_same_dtype(io, X, X_ZERO, error);
  if (!s) s = hn_infer_same_dtype(io, W, W_ZERO, error);
  if (!s) s = hn_infer_quant_param(io, X_ZERO, 1, error);
  if (!s) s = hn_infer_quant_param(io, W_ZERO, columns, error);
  for (uint32_t i = BIAS; i <= W_SCALE && !s; i++)
    s = hn_infer_dtype_in(io, i, HONE_TYPES(HONE_DTYPE_F32), error);
  if (!s) s = hn_infer_vector(io, BIAS, columns, error);
  if (!s) s = hn_infer_quant_param(io, X_SCALE, 1, error);
  if (!s) s = hn_infer_quant_param(io, W_SCALE, columns, error);
  if (!s) s = check_mask(io, at(x, 0), error);
  if (!s) s = check_past(io, heads, hidden, error);
  if (s) return s;
  const int64_t before = past ? at(past, 3) : 0,
                keys = before < 0 || at(x, 1) < 0 ? HONE_DIM_UNKNOWN : before + at(x, 1);
  const int64_t y[3] = {at(x, 0), at(x, 1), hidden},
                present[5] = {2, at(x, 0), heads, keys, hidden < 0 ? hidden : hidden / heads};
  hn_infer_set(io, 0, HONE_DTYPE_F32, 3, y);
  hn_infer_set(io, 1, HONE_DTYPE_F32, 5, present);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *cost) {
  const hone_tensor_desc *x = io->input[X];
  const double tokens = hn_known_count(x),
               hidden = (double)(at(io->input[W], 1) > 0 ? at(io->input[W], 1) : 0),
               y = hn_known_count(io->output[0]);
  hn_cost_macs(cost, tokens * hidden + 2 * y * (double)(at(x, 1) > 0 ? at(x, 1) : 0));
}

typedef struct shape {
  int64_t batch, queries, before, keys, heads, size, hidden;
} shape;

/* What is added to the score of query q and key k. */
static float mask_at(const hone_tensor *m, const shape *s, int64_t b, int64_t q, int64_t k, float filter) {
  if (!m) return 0;
  const int64_t *d = m->desc.dim;
  const int32_t *v = m->data;
  if (m->desc.rank == 1) {
    const bool out = k >= v[b] || (d[0] == 2 * s->batch && k < v[s->batch + b]);
    return out ? filter : 0;
  }
  if (d[0] == 1) b = 0;
  const int64_t i = m->desc.rank == 2   ? b * d[1] + k
                    : m->desc.rank == 3 ? (b * d[1] + q) * d[2] + k
                                        : (b * d[2] + s->before + q) * d[3] + k;
  return v[i] > 0 ? 0 : filter;
}

static hone_status check_mask_size(const hone_call *call, const hone_tensor *m, const shape *s,
                                   hone_error *error) {
  const hone_tensor_desc *d = m ? &m->desc : NULL;
  if (!m || d->rank == 1 || (d->rank == 2 && d->dim[1] == s->keys) ||
      (d->rank == 3 && d->dim[1] == s->queries && d->dim[2] == s->keys) ||
      (d->rank == 4 && d->dim[1] == 1 && d->dim[2] >= s->keys && d->dim[3] >= s->keys))
    return HONE_OK;
  char text[96];
  return hn_op_bad(call->node, error, "the mask, %s, does not fit %lld queries and %lld keys",
                   hone_desc_format(d, text, sizeof text), (long long)s->queries, (long long)s->keys);
}

/* One head: k and v have `keys` rows of `size`, q and y rows `pitch` and `hidden` apart. */
typedef struct head {
  const float *q, *k, *v;
  float *y, *score;
  int64_t q_pitch;
} head;

static void attend(const hone_node *node, const shape *s, const hone_tensor *mask, int64_t b, const head *h) {
  const bool causal = hone_node_int(node, "unidirectional", 0) != 0;
  const float filter = hone_node_float(node, "mask_filter_value", -10000.0f),
              given = hone_node_float(node, "scale", 0),
              scale = given != 0 ? given : 1 / sqrtf((float)s->size);
  for (int64_t q = 0; q < s->queries; q++) {
    float top = -INFINITY;
    double all = 0;
    for (int64_t k = 0; k < s->keys; k++) {
      double dot = 0;
      for (int64_t i = 0; i < s->size; i++)
        dot += (double)h->q[q * h->q_pitch + i] * (double)h->k[k * s->size + i];
      h->score[k] =
          causal && k > s->before + q ? -FLT_MAX : (float)dot * scale + mask_at(mask, s, b, q, k, filter);
      top = h->score[k] > top ? h->score[k] : top;
    }
    for (int64_t k = 0; k < s->keys; k++) all += (double)(h->score[k] = expf(h->score[k] - top));
    for (int64_t i = 0; i < s->size; i++) {
      double sum = 0;
      for (int64_t k = 0; k < s->keys; k++) sum += (double)h->score[k] * (double)h->v[k * s->size + i];
      h->y[q * s->hidden + i] = (float)(sum / all);
    }
  }
}

/* Keys (part 0) or values (part 1) of one head, those of the past first. */
static void gather(const hone_call *call, const shape *s, int part, int64_t b, int64_t h, const float *qkv,
                   float *to) {
  const int64_t n = s->before * s->size, one = (part * s->batch + b) * s->heads + h;
  if (n) memcpy(to, (const float *)call->input[PAST]->data + one * n, (size_t)n * sizeof *to);
  for (int64_t q = 0; q < s->queries; q++)
    memcpy(to + n + q * s->size,
           qkv + (b * s->queries + q) * 3 * s->hidden + (1 + part) * s->hidden + h * s->size,
           (size_t)s->size * sizeof *to);
  if (call->n_outputs > 1 && call->output[1])
    memcpy((float *)call->output[1]->data + one * s->keys * s->size, to,
           (size_t)(s->keys * s->size) * sizeof *to);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X], *mask = hn_call_has(call, MASK) ? call->input[MASK] : NULL,
                    *past = hn_call_has(call, PAST) ? call->input[PAST] : NULL;
  shape s = {.batch = x->desc.dim[0],
             .queries = x->desc.dim[1],
             .before = past ? past->desc.dim[3] : 0,
             .heads = hone_node_int(call->node, "num_heads", 1),
             .hidden = call->input[W]->desc.dim[1] / 3};
  s.keys = s.before + s.queries, s.size = s.hidden / s.heads;
  hone_status status = check_mask_size(call, mask, &s, error);
  if (status) return status;
  float *qkv = hn_scratch(call, s.batch * s.queries * 3 * s.hidden, sizeof *qkv, error),
        *keys = qkv ? hn_scratch(call, s.keys * s.size, sizeof *keys, error) : NULL,
        *values = keys ? hn_scratch(call, s.keys * s.size, sizeof *values, error) : NULL,
        *score = values ? hn_scratch(call, s.keys, sizeof *score, error) : NULL;
  if (!score) return HONE_ERROR_MEMORY;
  const hn_integer_matmul p = {
      .a = x,
      .b = call->input[W],
      .b_scale = call->input[W_SCALE],
      .b_zero = hn_call_has(call, W_ZERO) ? call->input[W_ZERO] : NULL,
      .bias = call->input[BIAS],
      .a_scale = (float)hn_get_f64(call->input[X_SCALE], 0),
      .a_zero = hn_call_has(call, X_ZERO) ? (int32_t)hn_get_i64(call->input[X_ZERO], 0) : 0};
  if ((status = hn_integer_matmul_run(call, &p, qkv, error))) return status;
  for (int64_t b = 0; b < s.batch; b++)
    for (int64_t h = 0; h < s.heads; h++) {
      if (call->stopped(call)) return HONE_ERROR_CANCELLED;
      gather(call, &s, 0, b, h, qkv, keys);
      gather(call, &s, 1, b, h, qkv, values);
      const head one = {qkv + b * s.queries * 3 * s.hidden + h * s.size,
                        keys,
                        values,
                        (float *)call->output[0]->data + b * s.queries * s.hidden + h * s.size,
                        score,
                        3 * s.hidden};
      attend(call->node, &s, mask, b, &one);
    }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "num_heads", .type = HONE_ATTR_INT, .required = true},
                                       {.name = "unidirectional", .type = HONE_ATTR_INT},
                                       {.name = "mask_filter_value", .type = HONE_ATTR_FLOAT},
                                       {.name = "scale", .type = HONE_ATTR_FLOAT},
                                       {.name = "do_rotary", .type = HONE_ATTR_INT},
                                       {.name = "past_present_share_buffer", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(qattention) = {HONE_DESC_HEAD(hone_op_desc),
                     .domain = "com.microsoft",
                     .op_type = "QAttention",
                     .since = 1,
                     HN_INPUTS(5, 9),
                     HN_OUTPUTS(1, 2),
                     .types = HN_TYPES_8BIT,
                     .attrs = attrs,
                     .infer = infer,
                     .cost = cost,
                     .reference = reference,
                     .flags = HONE_OP_CODES};
