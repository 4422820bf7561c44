#include "model/ops/microsoft/experts/experts.h"

#include "model/ops/common/convert.h"
#include "model/ops/microsoft/codes/nbits.h"

hone_status hn_experts_of(const hone_node *node, hn_experts *out, hone_error *error) {
  static const char *const names[] = {
      [HN_EXPERT_IDENTITY] = "identity", [HN_EXPERT_RELU] = "relu", [HN_EXPERT_RELU2] = "relu2",
      [HN_EXPERT_GELU] = "gelu",         [HN_EXPERT_SILU] = "silu", [HN_EXPERT_SWIGLU] = "swiglu",
      [HN_EXPERT_GEGLU] = "geglu"};
  const char *act = hone_node_string(node, "activation_type", "relu");
  const int64_t fusion = hone_node_int(node, "swiglu_fusion", 0);
  *out = (hn_experts){.k = hone_node_int(node, "k", 1),
                      .normalise = hone_node_int(node, "normalize_routing_weights", 0) != 0,
                      .alpha = hone_node_float(node, "activation_alpha", 1),
                      .beta = hone_node_float(node, "activation_beta", 0),
                      .limit = hone_node_float(node, "swiglu_limit", INFINITY)};
  size_t i = 0;
  while (i < sizeof names / sizeof *names && strcmp(act, names[i]) != 0) i++;
  if (i == sizeof names / sizeof *names) return hn_op_bad(node, error, "activation_type is '%s'", act);
  out->act = (hn_expert_act)i;
  out->mixer = hone_node_int(node, "use_sparse_mixer", 0) != 0;
  if (out->mixer && out->k != 2)
    return hn_op_bad(node, error, "use_sparse_mixer is for k = 2, and k is %lld", (long long)out->k);
  if (hone_node_int(node, "swiglu_limit_after_activation", 0))
    return hn_op_refuse(node, error, "swiglu_limit_after_activation");
  if (out->k < 1) return hn_op_bad(node, error, "k is %lld", (long long)out->k);
  if (fusion < 0 || fusion > 2) return hn_op_bad(node, error, "swiglu_fusion is %lld", (long long)fusion);
  const bool gated = out->act == HN_EXPERT_SWIGLU || out->act == HN_EXPERT_GEGLU;
  if (gated) out->pairs = (hn_expert_pairs)fusion;
  if (out->act == HN_EXPERT_GEGLU && !fusion)
    return hn_op_bad(node, error, "geglu needs swiglu_fusion 1 or 2");
  return HONE_OK;
}

hone_status hn_experts_tokens(const hone_infer *io, hn_experts *e, hone_error *error) {
  const hone_tensor_desc *x = io->input[0], *router = io->input[1];
  if (x->rank >= 0 && x->rank != 2 && x->rank != 3)
    return hn_op_bad(io->node, error, "the input has rank %d, expected 2 or 3", (int)x->rank);
  if (router->rank >= 0 && router->rank != 2)
    return hn_op_bad(io->node, error, "the router's scores have rank %d, expected 2", (int)router->rank);
  e->hidden = x->rank > 0 ? x->dim[x->rank - 1] : HONE_DIM_UNKNOWN;
  e->tokens = hn_dim(router, 0), e->experts = hn_dim(router, 1);
  const int64_t all = x->rank < 0                      ? HONE_DIM_UNKNOWN
                      : x->rank == 2                   ? x->dim[0]
                      : x->dim[0] < 0 || x->dim[1] < 0 ? HONE_DIM_UNKNOWN
                                                       : x->dim[0] * x->dim[1];
  if (hn_dims_differ(all, e->tokens))
    return hn_op_bad(io->node, error, "%lld tokens, and scores of %lld", (long long)all,
                     (long long)e->tokens);
  if (e->experts >= 0 && (e->experts < e->k || e->experts > INT32_MAX))
    return hn_op_bad(io->node, error, "%lld of %lld experts", (long long)e->k, (long long)e->experts);
  return HONE_OK;
}

/* The best k, the first of equals; NaN is below all numbers. */
static void best(const hn_experts *e, const float *scores, int32_t *expert) {
  for (int64_t j = 0; j < e->k; j++) {
    int32_t found = -1;
    for (int32_t i = 0; i < e->experts; i++) {
      bool taken = false;
      for (int64_t t = 0; t < j && !taken; t++) taken = expert[t] == i;
      if (!taken && (found < 0 || scores[i] > scores[found] || (isnan(scores[found]) && !isnan(scores[i]))))
        found = i;
    }
    expert[j] = found;
  }
}

/* 1 / the sum of what Softmax makes of the scores near that of expert[j], those before it left out. */
static void mix(const hn_experts *e, const float *scores, const int32_t *expert, float *weight) {
  const float far = 2 * 0.01f;
  for (int64_t j = 0; j < e->k; j++) {
    const float top = scores[expert[j]];
    double all = 0;
    for (int32_t i = 0; i < e->experts; i++) {
      const bool gone = j > 0 && i == expert[0];
      const float size = fmaxf(fabsf(scores[i]), top);
      if (!gone && !((top - scores[i]) / size > far)) all += exp((double)(scores[i] - top));
    }
    weight[j] = (float)(1 / all);
  }
}

void hn_experts_route(const hn_experts *e, const float *scores, const float *given, int32_t *expert,
                      float *weight) {
  best(e, scores, expert);
  if (e->mixer) {
    mix(e, scores, expert, weight);
    return;
  }
  double all = 0, chosen = 0;
  for (int64_t i = 0; i < e->experts && !given; i++) all += exp((double)(scores[i] - scores[expert[0]]));
  for (int64_t j = 0; j < e->k; j++) {
    const double w =
        given ? (double)given[expert[j]] : exp((double)(scores[expert[j]] - scores[expert[0]])) / all;
    weight[j] = (float)w;
    chosen += w;
  }
  for (int64_t j = 0; j < e->k && e->normalise; j++) weight[j] = (float)((double)weight[j] / chosen);
}

static float one(const hn_experts *e, float v) {
  switch (e->act) {
  case HN_EXPERT_RELU: return v > 0 ? v : 0;
  case HN_EXPERT_RELU2: return v > 0 ? v * v : 0;
  case HN_EXPERT_GELU:
  case HN_EXPERT_GEGLU: return 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
  case HN_EXPERT_SILU: return v / (1 + expf(-v));
  case HN_EXPERT_IDENTITY:
  case HN_EXPERT_SWIGLU: break;
  }
  return v;
}

static float gated(const hn_experts *e, float gate, float v) {
  if (e->act == HN_EXPERT_GEGLU) return one(e, gate) * v;
  gate = gate > e->limit ? e->limit : gate;
  v = v > e->limit ? e->limit : v < -e->limit ? -e->limit : v;
  return gate / (1 + expf(-e->alpha * gate)) * (v + e->beta);
}

void hn_experts_activate(const hn_experts *e, const float *first, const float *third, float *out) {
  const int64_t n = e->inter;
  for (int64_t i = 0; i < n; i++) {
    if (e->pairs == HN_EXPERT_ALTERNATE)
      out[i] = gated(e, first[2 * i], first[2 * i + 1]);
    else if (e->pairs == HN_EXPERT_HALVES)
      out[i] = gated(e, first[i], first[n + i]);
    else if (third && e->act == HN_EXPERT_SWIGLU)
      out[i] = gated(e, first[i], third[i]);
    else
      out[i] = third ? one(e, first[i]) * third[i] : one(e, first[i]);
  }
}

/* Row `row` of expert `expert` as floats, out[columns]. */
static void expert_row(const hn_expert_matrix *m, int64_t expert, int64_t row, float *out) {
  const int64_t at = expert * m->rows + row, blocks = m->block ? m->columns / m->block : 1,
                run = m->block ? m->block : m->columns;
  if (!m->scales) {
    hn_load_f32(out, m->codes, at * m->columns, m->columns);
    return;
  }
  const uint8_t *from = (const uint8_t *)m->codes->data + at * (m->columns * m->bits / 8);
  for (int64_t b = 0; b < blocks; b++) {
    const float scale = (float)hn_get_f64(m->scales, at * blocks + b);
    float zero = (float)(1 << (m->bits - 1));
    if (m->zeros && m->block) {
      const int64_t bytes = (blocks * m->bits + 7) / 8;
      zero = (float)hn_nbits_code((const uint8_t *)m->zeros->data + at * bytes, m->bits, b);
    } else if (m->zeros) {
      const int64_t bytes = (m->rows * m->bits + 7) / 8;
      zero = (float)hn_nbits_code((const uint8_t *)m->zeros->data + expert * bytes, m->bits, row);
    }
    for (int64_t i = b * run; i < (b + 1) * run; i++)
      out[i] = ((float)hn_nbits_code(from, m->bits, i) - zero) * scale;
  }
}

/* out[n][rows] = rows of the expert by n inputs, [n][columns] each. */
static hone_status product(hone_call *call, const hn_expert_matrix *m, int64_t expert, int64_t n,
                           const float *x, float *row, float *out, hone_error *error) {
  for (int64_t r = 0; r < m->rows; r++) {
    if (r % 64 == 0) {
      const hone_status s = hn_call_check(call, error);
      if (s) return s;
    }
    expert_row(m, expert, r, row);
    const double bias = m->bias ? hn_get_f64(m->bias, expert * m->rows + r) : 0;
    for (int64_t t = 0; t < n; t++) {
      double sum = bias;
      for (int64_t c = 0; c < m->columns; c++) sum += (double)row[c] * (double)x[t * m->columns + c];
      out[t * m->rows + r] = (float)sum;
    }
  }
  return HONE_OK;
}

typedef struct room {
  int32_t *expert;                         /* [tokens][k] */
  float *weight, *x, *first, *third, *mid; /* [tokens][k]; of all tokens */
  float *row, *answer, *sum;
  int64_t *token; /* of the expert at hand: token x k + place */
} room;

static bool make_room(hone_call *call, const hn_experts *e, const hn_expert_matrix m[3], room *r,
                      hone_error *error) {
  const int64_t n = e->tokens, longest = hn_max(m[0].columns, m[1].columns);
  float *part[7];
  const int64_t size[7] = {n * e->k,     n * e->hidden,      n * m[0].rows, e->third ? n * m[2].rows : 0,
                           n * e->inter, hn_max(longest, 1), n * e->hidden};
  for (int i = 0; i < 7; i++)
    if (!(part[i] = hn_scratch(call, size[i], sizeof(float), error))) return false;
  *r = (room){.weight = part[0],
              .x = part[1],
              .first = part[2],
              .third = e->third ? part[3] : NULL,
              .mid = part[4],
              .row = part[5],
              .answer = part[6]};
  r->expert = hn_scratch(call, n * e->k, sizeof *r->expert, error);
  r->token = r->expert ? hn_scratch(call, n * e->k, sizeof *r->token, error) : NULL;
  r->sum = r->token ? hn_scratch(call, n * e->hidden, sizeof *r->sum, error) : NULL;
  if (r->sum) memset(r->sum, 0, (size_t)(n * e->hidden) * sizeof *r->sum);
  return r->sum != NULL;
}

static hone_status run_expert(hone_call *call, const hn_experts *e, const hn_expert_matrix m[3],
                              int64_t expert, const float *x, room *r, hone_error *error) {
  int64_t n = 0;
  for (int64_t i = 0; i < e->tokens * e->k; i++)
    if (r->expert[i] == expert) r->token[n++] = i;
  if (!n) return HONE_OK;
  for (int64_t i = 0; i < n; i++)
    memcpy(r->x + i * e->hidden, x + r->token[i] / e->k * e->hidden, (size_t)e->hidden * sizeof *x);
  hone_status s = product(call, &m[0], expert, n, r->x, r->row, r->first, error);
  if (!s && e->third) s = product(call, &m[2], expert, n, r->x, r->row, r->third, error);
  for (int64_t i = 0; i < n && !s; i++)
    hn_experts_activate(e, r->first + i * m[0].rows, r->third ? r->third + i * e->inter : NULL,
                        r->mid + i * e->inter);
  if (!s) s = product(call, &m[1], expert, n, r->mid, r->row, r->answer, error);
  for (int64_t i = 0; i < n && !s; i++) {
    float *to = r->sum + r->token[i] / e->k * e->hidden;
    for (int64_t c = 0; c < e->hidden; c++) to[c] += r->weight[r->token[i]] * r->answer[i * e->hidden + c];
  }
  return s;
}

hone_status hn_experts_run(hone_call *call, const hn_experts *e, const hn_expert_matrix m[3],
                           const hone_tensor *given, hone_error *error) {
  const float *x = hn_all_f32(call, call->input[0], error),
              *scores = x ? hn_all_f32(call, call->input[1], error) : NULL,
              *weights = scores && given ? hn_all_f32(call, given, error) : NULL;
  room r;
  if (!scores || (given && !weights) || !make_room(call, e, m, &r, error)) return HONE_ERROR_MEMORY;
  for (int64_t t = 0; t < e->tokens; t++)
    hn_experts_route(e, scores + t * e->experts, given ? weights + t * e->experts : NULL, r.expert + t * e->k,
                     r.weight + t * e->k);
  for (int64_t i = 0; i < e->experts; i++) {
    const hone_status s = run_expert(call, e, m, i, x, &r, error);
    if (s) return s;
  }
  hn_write_f32(call->output[0]->data, call->output[0]->desc.dtype, 0, r.sum, e->tokens * e->hidden);
  return HONE_OK;
}
