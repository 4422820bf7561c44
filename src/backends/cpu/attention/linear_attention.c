/* LinearAttention: a task takes some columns of one head's state through all tokens, so that they stay in L1;
 * columns do not know of each other. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/state/state.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "model/ops/attention/linear.h"

enum { Q, K, V, PAST, DECAY, BETA };
enum { Y, PRESENT };
enum { COLUMNS = 64 };

typedef struct blob_head {
  hn_isa isa;
  hn_linear_sizes n;
  int64_t chunks;
  int64_t decays, betas; /* a token; 0: none */
  float scale;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_state_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (hn_step_has(s, i) && !hn_step_plain_f32(&s->input[i].desc))
      return hn_refuse(why, "input %u is not row-major f32 of a known shape", i);
  for (uint32_t i = 0; i <= PRESENT; i++)
    if (i == Y || hn_step_gives(s, i))
      if (!hn_step_plain_f32(&s->output[i].desc))
        return hn_refuse(why, "output %u is not row-major f32 of a known shape", i);
  const char *rule = hone_node_string(s->node, "update_rule", "gated_delta");
  const hone_tensor_desc *q = &s->input[Q].desc, *v = &s->input[V].desc;
  if (hn_linear_find(s->node, q, &s->input[K].desc, v, &h->n, NULL) != HONE_OK)
    return hn_refuse(why, "the numbers of heads");
  if (hone_desc_count(q) < 1 || hone_desc_count(v) < 1) return hn_refuse(why, "an empty operand");
  if (strstr(rule, "gated")) h->decays = s->input[DECAY].desc.dim[2];
  if (strstr(rule, "delta")) h->betas = s->input[BETA].desc.dim[2];
  h->chunks = hn_div_up(h->n.d_v, COLUMNS);
  h->scale = hone_node_float(s->node, "scale", 0);
  if (h->scale == 0) h->scale = 1.0f / sqrtf((float)h->n.d_k);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.25);
}

static int64_t all_states(const hn_linear_sizes *n) { return n->batch * n->heads * n->d_k * n->d_v; }

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  /* Factors of a token for each thread, and the states where nobody asks for them. */
  n->workspace_bytes = (size_t)(m->threads * hn_fill_up(h.n.d_k, 16)) * sizeof(float);
  if (!hn_step_gives(s, PRESENT)) n->workspace_bytes += (size_t)all_states(&h.n) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

static void clear(float *s, const hn_linear_sizes *n, size_t columns) {
  for (int64_t i = 0; i < n->d_k; i++) memset(s + i * n->d_v, 0, columns * sizeof *s);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_linear_sizes *n = &h->n;
  const hn_state_ops *ops = hn_state_find(h->isa);
  const int64_t chunk = index % h->chunks, line = index / h->chunks, b = line / n->heads,
                head = line % n->heads, each = n->y_heads / n->heads, at = chunk * COLUMNS,
                state = n->d_k * n->d_v, last = n->window ? (n->window - 1) * all_states(n) : 0,
                k_head = head / (n->heads / n->k_heads), q_head = head * each / (n->y_heads / n->q_heads);
  const bool gives = hn_step_gives(r->step, PRESENT);
  float *decay = (float *)r->workspace + thread * hn_fill_up(n->d_k, 16),
        *present = gives ? (float *)r->out[PRESENT] + line * state + at : NULL,
        *own = (float *)r->workspace + r->threads * hn_fill_up(n->d_k, 16) + line * state + at;
  hn_linear_token t = {.s = gives ? present + last : own,
                       .s_row = n->d_v,
                       .from_row = n->d_v,
                       .d_k = (size_t)n->d_k,
                       .columns = (size_t)(n->d_v - at < COLUMNS ? n->d_v - at : COLUMNS),
                       .decay = h->decays ? decay : NULL,
                       .q_row = n->d_k,
                       .y_row = n->d_v,
                       .queries = (size_t)each,
                       .scale = h->scale};
  float *const final = t.s;
  if (hn_step_has(r->step, PAST))
    t.from = (const float *)r->in[PAST] + last + line * state + at;
  else
    clear(t.s, n, t.columns);
  for (int64_t i = 0; gives && i < n->window - n->tokens; i++) /* which no token of this run reaches */
    clear(present + i * all_states(n), n, t.columns);
  for (int64_t i = 0; i < n->tokens; i++) {
    const int64_t token = b * n->tokens + i;
    if (h->decays) {
      const float *g = (const float *)r->in[DECAY] + token * h->decays;
      if (h->decays == n->heads) {
        ops->exp(decay, g + head, 1);
        for (int64_t k = 1; k < n->d_k; k++) decay[k] = decay[0];
      } else {
        ops->exp(decay, g + head * n->d_k, (size_t)n->d_k);
      }
    }
    if (h->betas)
      t.beta = (const float *)r->in[BETA] + token * h->betas +
               (h->betas == 1 || HN_FAULT("linear_attention_beta") ? 0 : head);
    t.k = (const float *)r->in[K] + (token * n->k_heads + k_head) * n->d_k;
    t.v = (const float *)r->in[V] + (token * n->heads + head) * n->d_v + at;
    t.q = (const float *)r->in[Q] + (token * n->q_heads + q_head) * n->d_k;
    t.y = (float *)r->out[Y] + (token * n->y_heads + head * each) * n->d_v + at;
    const int64_t slot = n->window - n->tokens + i;
    if (!t.from) t.from = final;
    t.s = gives && n->window && slot >= 0 ? present + slot * all_states(n) : final;
    ops->linear(&t);
    t.from = t.s;
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, h->n.batch * h->n.heads * h->chunks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, linear_attention, "LinearAttention", 2, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
HN_TACTIC(cpu, ms_linear_attention, "com.microsoft.LinearAttention", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
