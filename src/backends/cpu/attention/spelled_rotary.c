/* Turning by positions as lowering finds it spelled out: x, and a cosine and a sine for every number of it,
 * as views of whatever memory they lie in. A task is some rows. */
#include <string.h>

#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { X, COS, SIN, INPUTS };

typedef struct blob_head {
  int32_t rank;                          /* without the last dimension */
  int64_t dim[HONE_MAX_RANK];            /* of the rows */
  int64_t stride[INPUTS][HONE_MAX_RANK]; /* in floats */
  int64_t rows, half, per_task;
  bool neighbours;
  hn_isa isa;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_attention_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (!s->node || s->n_inputs != INPUTS || s->n_epilogue)
    return hn_refuse(why, "not of the form that lowering makes");
  const hone_tensor_desc *y = &s->output[0].desc;
  if (y->dtype != HONE_DTYPE_F32 || y->layout != HONE_LAYOUT_ROW_MAJOR || !hone_desc_known(y) || y->rank < 1)
    return hn_refuse(why, "the result is not f32 in row-major");
  h->rank = y->rank - 1;
  h->half = y->dim[h->rank] / 2;
  h->rows = 1;
  for (int32_t d = 0; d < h->rank; d++) h->rows *= h->dim[d] = y->dim[d];
  for (int i = 0; i < INPUTS; i++) {
    const hone_tensor_desc *d = &s->input[i].desc;
    if (d->dtype != HONE_DTYPE_F32) return hn_refuse(why, "an operand is not f32");
    if (d->rank != y->rank || memcmp(d->dim, y->dim, (size_t)y->rank * sizeof *d->dim) != 0 ||
        d->layout != HONE_LAYOUT_STRIDED || d->stride[h->rank] != 1)
      return hn_refuse(why, "an operand has another form");
    memcpy(h->stride[i], d->stride, (size_t)h->rank * sizeof *d->stride);
  }
  h->neighbours = hone_node_int(s->node, "interleaved", 0) != 0;
  h->per_task = 4096 / (h->half + 1) + 1;
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  return hn_step_seconds(m, 4 * n, 8 * n, 0.2);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const hn_attention_ops *ops = hn_attention_find(h->isa);
  const int64_t first = index * h->per_task,
                end = first + h->per_task < h->rows ? first + h->per_task : h->rows, size = 2 * h->half;
  int64_t at[HONE_MAX_RANK], from[INPUTS] = {0}, rest = first;
  (void)thread;
  for (int32_t d = h->rank; d-- > 0;) {
    at[d] = rest % h->dim[d];
    rest /= h->dim[d];
    for (int i = 0; i < INPUTS; i++) from[i] += at[d] * h->stride[i][d];
  }
  for (int64_t row = first; row < end; row++) {
    const int which = HN_FAULT("spelled_rotary_sine") ? COS : SIN;
    ops->rotate((float *)r->out[0] + row * size, (const float *)r->in[X] + from[X],
                (const float *)r->in[COS] + from[COS], (const float *)r->in[which] + from[which],
                (size_t)h->half, h->neighbours);
    for (int32_t d = h->rank; d-- > 0;) {
      for (int i = 0; i < INPUTS; i++) from[i] += h->stride[i][d];
      if (++at[d] < h->dim[d]) break;
      for (int i = 0; i < INPUTS; i++) from[i] -= h->dim[d] * h->stride[i][d];
      at[d] = 0;
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  r->parallel(r->pool, hn_div_up(h->rows, h->per_task), task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, spelled_rotary, "SpelledRotary", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
