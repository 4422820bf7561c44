/* Inverse of f32 matrices, in f64. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/invert/invert.h"
#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

typedef struct blob_head {
  hn_isa isa;
  int64_t count, n, pitch;
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_invert_find(h->isa)) return hn_refuse(why, "no kernels for %s", hn_isa_name(h->isa));
  if (s->n_epilogue) return hn_refuse(why, "no epilogue");
  if (!hn_step_plain_f32(x) || !hn_step_plain_f32(y) || x->rank < 2)
    return hn_refuse(why, "not row-major f32 of a known shape");
  if (hone_desc_count(x) < 1) return hn_refuse(why, "an empty operand");
  h->n = x->dim[x->rank - 1];
  if (h->n > INT32_MAX) return hn_refuse(why, "a matrix of more than 2^31 rows");
  h->count = hone_desc_count(x) / (h->n * h->n);
  h->pitch = hn_fill_up(h->n, HN_INVERT_BLOCK);
  return true;
}

static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  blob_head h;
  return describe(s, m, &h, why);
}

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return 0;
  const double n = (double)h.n;
  return hn_step_seconds(m, (double)h.count * 4 * n * n * (n + 16), 8 * (double)h.count * n * n, 0.2);
}

/* A thread's matrix, the rows of a block and the exchanges. */
static size_t own_bytes(const blob_head *h) {
  return hn_round_up(
      (size_t)((h->n + HN_INVERT_BLOCK) * h->pitch) * sizeof(double) + (size_t)h->n * sizeof(int32_t), 64);
}

static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *error) {
  blob_head h;
  hone_reason why = {""};
  if (!describe(s, m, &h, &why)) return hn_not_described(s, &why, error);
  n->blob_bytes = sizeof h;
  n->workspace_bytes = own_bytes(&h) * m->threads;
  return HONE_OK;
}

static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {
  hone_reason why = {""};
  if (describe(s, m, blob, &why)) return HONE_OK;
  return hn_not_described(s, &why, error);
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  int64_t per_task;
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  double *work = (double *)(void *)((unsigned char *)j->run->workspace + own_bytes(h) * thread);
  int32_t *order = (int32_t *)(void *)(work + (h->n + HN_INVERT_BLOCK) * h->pitch);
  const struct hn_invert_ops *ops = hn_invert_find(h->isa);
  const int64_t size = h->n * h->n, first = index * j->per_task,
                end = first + j->per_task < h->count ? first + j->per_task : h->count;
  for (int64_t i = first; i < end; i++)
    ops->matrix((float *)j->run->out[0] + i * size,
                (const float *)j->run->in[0] + (HN_FAULT("inverse_matrix") ? 0 : i) * size, (size_t)h->n,
                (size_t)h->pitch, work, order);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  /* Tasks of ten microseconds or more. */
  job j = {r, h, 40000 / (h->n * h->n * (h->n + 16)) + 1};
  (void)error;
  r->parallel(r->pool, hn_div_up(h->count, j.per_task), task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, inverse, "com.microsoft.Inverse", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
