/* GatedDeltaNet: a task takes some columns of one head's state through all tokens of a sequence. The states
 * of the file have a row for each column: a task turns its part, so that it runs on the kernel of
 * LinearAttention, and turns it back. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/state/state.h"
#include "backends/cpu/kernels/transpose/transpose.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "model/ops/microsoft/attention/gated_delta_net.h"

enum { COLUMNS = 64, OPERANDS = HN_GDN_DT + 1 };

typedef struct blob_head {
  hn_isa isa;
  hn_gdn n;
  int64_t chunks;
  bool per_key, biases; /* a decay, a bias for each number of a key */
  float scale;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *in[OPERANDS] = {NULL};
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_state_find(h->isa) || !hn_transpose_find(h->isa))
    return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  for (uint32_t i = 0; i < OPERANDS; i++) {
    if (!hn_step_has(s, i)) continue;
    in[i] = &s->input[i].desc;
    if (i != HN_GDN_CU && !hn_step_plain_f32(in[i]))
      return hn_refuse(why, "input %u is not row-major f32 of a known shape", i);
  }
  for (uint32_t i = 0; i <= HN_GDN_FINAL; i++)
    if ((i == HN_GDN_Y || hn_step_gives(s, i)) && !hn_step_plain_f32(&s->output[i].desc))
      return hn_refuse(why, "output %u is not row-major f32 of a known shape", i);
  if (hn_gdn_find(s->node, in, &h->n, NULL) != HONE_OK) return hn_refuse(why, "operands that do not fit");
  const hn_gdn *n = &h->n;
  if (n->tokens < 1 || n->batch < 1 || n->heads < 1 || n->d_k < 1 || n->d_v < 1)
    return hn_refuse(why, "an empty operand, or one of an unknown size");
  h->chunks = hn_div_up(n->d_v, COLUMNS);
  h->per_key = n->gated && in[HN_GDN_DECAY]->rank == n->lead + 2;
  h->biases = n->gated && n->gate && hone_desc_count(in[HN_GDN_DT]) != n->heads;
  h->scale = n->scale != 0 ? (float)n->scale : 1.0f / sqrtf((float)n->d_k);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, 3 * s->cost.bytes, 0.25);
}

/* Of a thread: factors, a query and a key of length 1, and the turned state. */
static int64_t padded(const hn_gdn *n) { return hn_fill_up(n->d_k, 16); }
static int64_t floats(const hn_gdn *n) { return 3 * padded(n) + n->d_k * COLUMNS; }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = (size_t)(m->threads * floats(&h.n)) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

static float softplus(float x) { return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x))); }
static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

static const float *of_length_one(float *to, const float *x, int64_t n) {
  enum { LANES = 8 };
  float sum[LANES] = {0}, all = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) sum[k] += x[i + k] * x[i + k];
  for (; i < n; i++) all += x[i] * x[i];
  for (int k = 0; k < LANES; k++) all += sum[k];
  const float by = 1 / sqrtf(all + (float)HN_GDN_NORM_EPS);
  for (i = 0; i < n; i++) to[i] = x[i] * by;
  return to;
}

/* What each number of a key keeps of its row of the state. */
static void factors(const hone_step_run *r, const blob_head *h, float *to, int64_t token, int64_t head) {
  const hn_gdn *n = &h->n;
  const int64_t count = h->per_key ? n->d_k : 1;
  const float *g = (const float *)r->in[HN_GDN_DECAY] + (token * n->heads + head) * count;
  if (n->gate) {
    const float a = expf(((const float *)r->in[HN_GDN_A])[head]), *dt = r->in[HN_GDN_DT];
    for (int64_t i = 0; i < count; i++) {
      const float x = g[i] + dt[h->biases ? head * n->d_k + i : head];
      to[i] = n->gate == HN_GDN_SOFTPLUS ? -a * softplus(x) : (float)n->bound * sigmoid(a * x);
    }
    g = to;
  }
  hn_state_find(h->isa)->exp(to, g, (size_t)count);
  for (int64_t i = count; i < n->d_k; i++) to[i] = to[0];
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_gdn *n = &h->n;
  const hn_state_ops *ops = hn_state_find(h->isa);
  const hn_transpose_fn turn = hn_transpose_find(h->isa)->matrix[2];
  const int64_t chunk = index % h->chunks, line = index / h->chunks, head = line % n->heads,
                at = chunk * COLUMNS, state = line * n->d_k * n->d_v + at * n->d_k,
                columns = n->d_v - at < COLUMNS ? n->d_v - at : COLUMNS, keys = n->k_heads * n->d_k,
                k_head = head / (n->heads / n->k_heads), width = n->width ? n->width : keys;
  const int32_t *cu = hn_step_has(r->step, HN_GDN_CU) ? r->in[HN_GDN_CU] : NULL;
  const int64_t first = hn_gdn_start(n, cu, line / n->heads), end = hn_gdn_start(n, cu, line / n->heads + 1);
  float *decay = (float *)r->workspace + thread * floats(n), *q = decay + padded(n), *k = q + padded(n), rate;
  hn_linear_token t = {.s = k + padded(n),
                       .s_row = COLUMNS,
                       .d_k = (size_t)n->d_k,
                       .columns = (size_t)columns,
                       .decay = n->gated ? decay : NULL,
                       .beta = n->delta ? &rate : NULL,
                       .queries = 1,
                       .scale = h->scale};
  if (hn_step_has(r->step, HN_GDN_STATE))
    turn(t.s, COLUMNS, (const float *)r->in[HN_GDN_STATE] + state, n->d_k, (size_t)columns, (size_t)n->d_k);
  else
    memset(t.s, 0, (size_t)(n->d_k * COLUMNS) * sizeof *t.s);
  for (int64_t i = first; i < end; i++) {
    t.q = (const float *)r->in[HN_GDN_Q] + i * width + k_head * n->d_k;
    t.k = n->width ? t.q + keys : (const float *)r->in[HN_GDN_K] + i * width + k_head * n->d_k;
    t.v = (n->width ? (const float *)r->in[HN_GDN_Q] + i * width + 2 * keys
                    : (const float *)r->in[HN_GDN_V] + i * n->heads * n->d_v) +
          head * n->d_v + at;
    t.y = (float *)r->out[HN_GDN_Y] + (i * n->heads + head) * n->d_v + at;
    if (n->norms) t.q = of_length_one(q, t.q, n->d_k), t.k = of_length_one(k, t.k, n->d_k);
    if (n->gated) factors(r, h, decay, i, HN_FAULT("gated_delta_head") ? 0 : head);
    if (n->delta) rate = ((const float *)r->in[HN_GDN_BETA])[i * n->heads + head];
    if (n->delta && n->beta_sigmoid) rate = sigmoid(rate);
    ops->linear(&t);
  }
  if (hn_step_gives(r->step, HN_GDN_FINAL))
    turn((float *)r->out[HN_GDN_FINAL] + state, n->d_k, t.s, COLUMNS, (size_t)n->d_k, (size_t)columns);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const hone_status s = hn_gdn_check_starts(r->step->node, &h->n,
                                            hn_step_has(r->step, HN_GDN_CU) ? r->in[HN_GDN_CU] : NULL, error);
  if (s != HONE_OK) return s;
  r->parallel(r->pool, h->n.batch * h->n.heads * h->chunks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, gated_delta_net, "com.microsoft.GatedDeltaNet", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
