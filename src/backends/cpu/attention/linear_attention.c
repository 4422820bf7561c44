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

enum { Q, K, V, PAST, DECAY, BETA };
enum { Y, PRESENT };
enum { COLUMNS = 64 };

typedef struct blob_head {
  hn_isa isa;
  int64_t batch, tokens, q_heads, heads, d_k, d_v, chunks;
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
  h->batch = q->dim[0], h->tokens = q->dim[1];
  h->q_heads = hone_node_int(s->node, "q_num_heads", 0), h->heads = hone_node_int(s->node, "kv_num_heads", 0);
  if (h->heads < 1 || h->q_heads < h->heads) return hn_refuse(why, "the numbers of heads");
  h->d_k = q->dim[2] / h->q_heads, h->d_v = v->dim[2] / h->heads;
  if (hone_desc_count(q) < 1 || hone_desc_count(v) < 1) return hn_refuse(why, "an empty operand");
  if (strstr(rule, "gated")) h->decays = s->input[DECAY].desc.dim[2];
  if (strstr(rule, "delta")) h->betas = s->input[BETA].desc.dim[2];
  h->chunks = hn_div_up(h->d_v, COLUMNS);
  h->scale = hone_node_float(s->node, "scale", 0);
  if (h->scale == 0) h->scale = 1.0f / sqrtf((float)h->d_k);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.25);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  /* Factors of a token for each thread, and the states where nobody asks for them. */
  n->workspace_bytes = (size_t)(m->threads * hn_fill_up(h.d_k, 16)) * sizeof(float);
  if (!hn_step_gives(s, PRESENT))
    n->workspace_bytes += (size_t)(h.batch * h.heads * h.d_k * h.d_v) * sizeof(float);
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_state_ops *ops = hn_state_find(h->isa);
  const int64_t chunk = index % h->chunks, line = index / h->chunks, b = line / h->heads,
                head = line % h->heads, each = h->q_heads / h->heads, at = chunk * COLUMNS,
                state = h->d_k * h->d_v;
  float *decay = (float *)r->workspace + thread * hn_fill_up(h->d_k, 16),
        *states = hn_step_gives(r->step, PRESENT)
                      ? r->out[PRESENT]
                      : (float *)r->workspace + r->threads * hn_fill_up(h->d_k, 16);
  hn_linear_token t = {.s = states + line * state + at,
                       .s_row = h->d_v,
                       .d_k = (size_t)h->d_k,
                       .columns = (size_t)(h->d_v - at < COLUMNS ? h->d_v - at : COLUMNS),
                       .decay = h->decays ? decay : NULL,
                       .q_row = h->d_k,
                       .y_row = h->d_v,
                       .queries = (size_t)each,
                       .scale = h->scale};
  const float *past = hn_step_has(r->step, PAST) ? (const float *)r->in[PAST] + line * state + at : NULL;
  for (int64_t i = 0; i < h->d_k; i++)
    if (past)
      memcpy(t.s + i * h->d_v, past + i * h->d_v, t.columns * sizeof(float));
    else
      memset(t.s + i * h->d_v, 0, t.columns * sizeof(float));
  for (int64_t i = 0; i < h->tokens; i++) {
    const int64_t token = b * h->tokens + i;
    if (h->decays) {
      const float *g = (const float *)r->in[DECAY] + token * h->decays;
      if (h->decays == h->heads) {
        ops->exp(decay, g + head, 1);
        for (int64_t k = 1; k < h->d_k; k++) decay[k] = decay[0];
      } else {
        ops->exp(decay, g + head * h->d_k, (size_t)h->d_k);
      }
    }
    if (h->betas)
      t.beta = (const float *)r->in[BETA] + token * h->betas +
               (h->betas == 1 || HN_FAULT("linear_attention_beta") ? 0 : head);
    t.k = (const float *)r->in[K] + (token * h->heads + head) * h->d_k;
    t.v = (const float *)r->in[V] + (token * h->heads + head) * h->d_v + at;
    t.q = (const float *)r->in[Q] + (token * h->q_heads + head * each) * h->d_k;
    t.y = (float *)r->out[Y] + (token * h->q_heads + head * each) * h->d_v + at;
    ops->linear(&t);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, h->batch * h->heads * h->chunks, task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, linear_attention, "LinearAttention", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
