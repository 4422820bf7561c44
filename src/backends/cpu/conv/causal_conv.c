/* CausalConvWithState: a line at a time. The first results, which reach into what came before, read a copy of
 * both ends. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/state/state.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { X, W, BIAS, PAST };
enum { Y, PRESENT };
enum { MOST_TAPS = 64 };

typedef struct blob_head {
  hn_isa isa;
  int64_t lines, channels, n, taps, per_task;
  bool swish, present;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[X].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_state_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (hone_node_int(s->node, "channels_last", 0)) return hn_refuse(why, "channels last");
  if (hone_node_int(s->node, "dilation", 1) != 1) return hn_refuse(why, "taps that lie apart");
  if (hone_node_int(s->node, "state_window", 0)) return hn_refuse(why, "a window of states");
  h->present = hn_step_gives(s, PRESENT);
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (hn_step_has(s, i) && !hn_step_plain_f32(&s->input[i].desc))
      return hn_refuse(why, "input %u is not row-major f32 of a known shape", i);
  if (!hn_step_plain_f32(&s->output[Y].desc) || (h->present && !hn_step_plain_f32(&s->output[PRESENT].desc)))
    return hn_refuse(why, "an output is not row-major f32 of a known shape");
  h->channels = x->dim[1], h->lines = x->dim[0] * h->channels, h->n = x->dim[2];
  h->taps = s->input[W].desc.dim[2];
  if (h->lines < 1 || h->n < 1) return hn_refuse(why, "an empty input");
  if (h->taps > MOST_TAPS) return hn_refuse(why, "%lld taps", (long long)h->taps);
  h->swish = strcmp(hone_node_string(s->node, "activation", "none"), "none") != 0;
  h->per_task = 16384 / (h->n * h->taps) + 1;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_step_seconds(m, 2 * s->cost.macs, s->cost.bytes, 0.3);
}

static void line(const hone_step_run *r, const blob_head *h, const hn_state_ops *ops, int64_t i) {
  float ends[2 * MOST_TAPS];
  const size_t before = (size_t)h->taps - 1, n = (size_t)h->n, head = n < before ? n : before;
  const int64_t c = i % h->channels;
  const float *x = (const float *)r->in[X] + i * h->n, *w = (const float *)r->in[W] + c * h->taps,
              bias = hn_step_has(r->step, BIAS) ? ((const float *)r->in[BIAS])[c] : 0.0f;
  float *y = (float *)r->out[Y] + i * h->n;
  if (hn_step_has(r->step, PAST))
    memcpy(ends, (const float *)r->in[PAST] + i * (int64_t)before, before * sizeof *ends);
  else
    memset(ends, 0, before * sizeof *ends);
  memcpy(ends + before, x, head * sizeof *ends);
  if (head) ops->causal(y, ends, head, w, (size_t)h->taps, bias, h->swish);
  if (n > head) ops->causal(y + head, x, n - head, w, (size_t)h->taps, bias, h->swish);
  if (!h->present) return;
  /* The last ones of what came before and x. */
  float *present = (float *)r->out[PRESENT] + i * (int64_t)before;
  if (n >= before)
    memcpy(present, x + (n - before), before * sizeof *present);
  else
    memcpy(present, ends + (HN_FAULT("causal_state") ? 0 : n), before * sizeof *present);
}

/* One place of each of the lines [first, end): a channel's taps are too few for vectors of their own. */
static inline __attribute__((always_inline)) void places_of(const hone_step_run *r, const blob_head *h,
                                                            int64_t taps, int64_t first, int64_t end) {
  const float *x = r->in[X], *bias = hn_step_has(r->step, BIAS) ? r->in[BIAS] : NULL,
              *past = hn_step_has(r->step, PAST) ? r->in[PAST] : NULL;
  float *y = r->out[Y], *present = h->present ? r->out[PRESENT] : NULL;
  const int64_t before = taps - 1;
  for (int64_t i = first; i < end; i++) {
    const int64_t c = i % h->channels;
    const float *w = (const float *)r->in[W] + c * taps;
    float sum = (bias ? bias[c] : 0.0f) + w[before] * x[i];
    for (int64_t k = 0; past && k < before; k++) sum += w[k] * past[i * before + k];
    y[i] = sum;
    if (!present) continue;
    for (int64_t k = 0; k + 1 < before; k++) present[i * before + k] = past ? past[i * before + k + 1] : 0.0f;
    if (before) present[i * before + before - 1] = HN_FAULT("causal_place") ? 0.0f : x[i];
  }
}

static void places(const hone_step_run *r, const blob_head *h, const hn_state_ops *ops, int64_t first,
                   int64_t end) {
  enum { RUN = 64 };
  float *y = r->out[Y];
  if (h->taps == 4) /* what all networks of today have */
    places_of(r, h, 4, first, end);
  else
    places_of(r, h, h->taps, first, end);
  for (int64_t i = first; h->swish && i < end; i += RUN) {
    const int64_t n = end - i < RUN ? end - i : RUN;
    float e[RUN];
    for (int64_t k = 0; k < n; k++) e[k] = -y[i + k];
    ops->exp(e, e, (size_t)n);
    for (int64_t k = 0; k < n; k++) y[i + k] /= 1.0f + e[k];
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_state_ops *ops = hn_state_find(h->isa);
  const int64_t first = index * h->per_task,
                end = first + h->per_task < h->lines ? first + h->per_task : h->lines;
  (void)thread;
  if (h->n == 1)
    places(r, h, ops, first, end);
  else
    for (int64_t i = first; i < end; i++) line(r, h, ops, i);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, hn_div_up(h->lines, h->per_task), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, causal_conv, "CausalConvWithState", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
HN_TACTIC(cpu, ms_causal_conv, "com.microsoft.CausalConvWithState", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run);
