/* Products of few rows by coded weights: codes are widened in registers, as they are read. Of many rows they
 * would be widened for every few of them. */
#include "backends/cpu/product/coded_step.h"
#include "base/integers.h"
#include "base/mem.h"

static bool describe(const hone_step *s, const hone_machine *m, const hn_coded_few_config *config,
                     hn_coded_step *d, hone_reason *why) {
  return config->describe(s, m, d, why);
}

/* Cycles of a thread, of as many rows as a tile of the tier has: for a vector of weights to become numbers,
 * and for a multiply-add. */
static double cost_of(const hn_coded_step *d, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(d->isa);
  const double lanes = o->vw, rows = (double)d->m, most = lanes >= 16 ? 8 : 4,
               tiles = (double)hn_div_up(d->m, (int64_t)most);
  const double widen = d->bits == 16  ? 1
                       : lanes < 16   ? 2.2
                       : d->bits == 8 ? 1.8
                                      : 1.1,
               multiply = lanes < 16 ? 0.6 : 0.65;
  const double vectors = (double)d->n * (double)hn_coded_row(d) / lanes / (m->threads ? m->threads : 1);
  const double compute = vectors * (tiles * widen + rows * multiply) / hn_core_hertz(o, m),
               read = hn_coded_reading(d, m);
  return (compute > read ? compute + 0.2 * read : read + 0.2 * compute) + 2e-6 +
         hn_epilogue_seconds(s, m, true);
}

static size_t sums_bytes(const hn_coded_step *d) {
  return d->zeros ? (size_t)(d->m * d->blocks) * sizeof(float) : 0;
}

static void need_of(const hn_coded_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s, (void)m;
  hn_coded_need(d, n);
  n->workspace_bytes = hn_coded_rows_bytes(d) + sums_bytes(d);
}

typedef struct job {
  const hn_coded_step *d;
  const hn_coded_ops *ops;
  const hn_epilogue *e;
  hn_coded w;
  const float *a, *sums;
  float *y;
  int64_t per_task;
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_coded_step *d = j->d;
  const int64_t from = index * j->per_task, end = hn_min(from + j->per_task, d->n);
  (void)thread;
  j->ops->product(&j->w, j->a, j->sums, (size_t)d->m, (size_t)from, (size_t)end, j->y + from, d->n);
  hn_coded_finish(d, j->e, j->y, from, end);
}

hone_status hn_coded_few_run(const hone_step_run *r, const hn_coded_few_config *config, hone_error *error) {
  const hn_coded_step *d = r->blob;
  hn_epilogue e;
  (void)config, (void)error;
  hn_coded_bind(d, r, &e);
  float *sums = (float *)(void *)((char *)r->workspace + hn_coded_rows_bytes(d));
  job j = {d,
           hn_coded_find(d->isa),
           &e,
           hn_coded_matrix(d, r),
           hn_coded_rows_of(d, r->in[0], r->workspace),
           d->zeros ? sums : NULL,
           r->out[0],
           hn_coded_columns(d, r->threads)};
  for (int64_t i = 0; i < d->m && d->zeros; i++)
    j.ops->sums(&j.w, j.a + i * hn_coded_row(d), sums + i * d->blocks);
  r->parallel(r->pool, hn_div_up(d->n, j.per_task), task, &j);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_coded_few, hn_coded_step, hn_coded_fill)
