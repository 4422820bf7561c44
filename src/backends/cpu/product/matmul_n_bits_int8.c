/* MatMulNBits of a model that allows A as 8-bit numbers (accuracy_level 4): a scale for each of a row's
 * blocks, products of bytes, sums of a block in i32. */
#include "backends/cpu/kernels/features.h"
#include "backends/cpu/product/coded_step.h"
#include "base/integers.h"
#include "base/mem.h"

enum { INT8_LEVEL = 4 };

static bool describe(const hone_step *s, const hone_machine *m, hn_coded_step *d, hone_reason *why) {
  if (!hn_coded_describe_nbits(s, m, d, why)) return false;
  if (d->level != INT8_LEVEL) return hn_refuse(why, "accuracy_level is %lld, not 4", (long long)d->level);
  if (s->math < HONE_MATH_F32) return hn_refuse(why, "the step wants products in f32");
  if (d->zeros == 2) return hn_refuse(why, "zero points are no codes");
  if (d->block > 65536) return hn_refuse(why, "sums of a block leave the range of i32");
  return hn_coded_int8_find(d->isa) || hn_refuse(why, "no kernels for %s", hn_isa_name(d->isa));
}

static double cost_of(const hn_coded_step *d, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(d->isa);
  const hn_coded_int8_ops *ops = hn_coded_int8_find(d->isa);
  const double rows = (double)d->m, tiles = (double)hn_div_up(d->m, ops->rows),
               threads = m->threads ? m->threads : 1;
  /* Of four values of k and a vector of columns: bytes, a product; and what scaling a block takes. */
  const double vectors = (double)hn_div_up(d->n, HN_CODED_PANEL) * HN_CODED_PANEL / ops->lanes / threads,
               quads = vectors * (double)hn_coded_row(d) / 4, blocks = vectors * (double)d->blocks;
  const double cycles = quads * (tiles * 0.9 + rows * 0.65) + blocks * (tiles * 2 + rows * 2.2) +
                        rows * (double)hn_coded_row(d) * 0.25;
  const double compute = cycles / hn_core_hertz(o, m), read = hn_coded_reading(d, m);
  return (compute > read ? compute + 0.2 * read : read + 0.2 * compute) + 2e-6 +
         hn_epilogue_seconds(s, m, true);
}

/* The rows in f32 where they are not whole blocks, then scales, sums and numbers. */
typedef struct places {
  size_t scale, sum, a, bytes;
} places;

static places places_of(const hn_coded_step *d) {
  places p;
  const size_t blocks = (size_t)(d->m * d->blocks);
  p.scale = hn_coded_rows_bytes(d);
  p.sum = p.scale + hn_round_up(blocks * sizeof(float), 64);
  p.a = p.sum + hn_round_up(blocks * sizeof(int32_t), 64);
  p.bytes = p.a + hn_round_up((size_t)(d->m * hn_coded_row(d)), 64);
  return p;
}

static void need_of(const hn_coded_step *d, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s, (void)m;
  hn_coded_need(d, n);
  n->workspace_bytes = places_of(d).bytes;
}

typedef struct job {
  const hn_coded_step *d;
  const hn_coded_int8_ops *ops;
  const hn_epilogue *e;
  hn_coded w;
  hn_coded_rows rows;
  const float *a;
  char *workspace;
  places at;
  float *y;
  int64_t per_task;
} job;

static void narrow(void *arg, int64_t i, uint32_t thread) {
  const job *j = arg;
  const hn_coded_step *d = j->d;
  const int64_t row = hn_coded_row(d);
  (void)thread;
  j->ops->narrow(&j->w, j->a + i * row, (int8_t *)j->workspace + j->at.a + i * row,
                 (float *)(void *)(j->workspace + j->at.scale) + i * d->blocks,
                 (int32_t *)(void *)(j->workspace + j->at.sum) + i * d->blocks);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_coded_step *d = j->d;
  const int64_t from = index * j->per_task, end = hn_min(from + j->per_task, d->n);
  (void)thread;
  j->ops->product(&j->w, &j->rows, (size_t)d->m, (size_t)from, (size_t)end, j->y + from, d->n);
  hn_coded_finish(d, j->e, j->y, from, end);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const hn_coded_step *d = r->blob;
  hn_epilogue e;
  (void)error;
  hn_coded_bind(d, r, &e);
  job j = {.d = d,
           .ops = hn_coded_int8_find(d->isa),
           .e = &e,
           .w = hn_coded_matrix(d, r),
           .a = hn_coded_rows_of(d, r->in[0], r->workspace),
           .workspace = r->workspace,
           .at = places_of(d),
           .y = r->out[0],
           .per_task = hn_coded_columns(d, r->threads)};
  j.rows = (hn_coded_rows){.a = (const int8_t *)j.workspace + j.at.a,
                           .scale = (const float *)(const void *)(j.workspace + j.at.scale),
                           .sum = (const int32_t *)(const void *)(j.workspace + j.at.sum)};
  if (d->m * hn_coded_row(d) < 65536)
    for (int64_t i = 0; i < d->m; i++) narrow(&j, i, 0);
  else
    r->parallel(r->pool, d->m, narrow, &j);
  r->parallel(r->pool, hn_div_up(d->n, j.per_task), task, &j);
  return HONE_OK;
}

static void work(const hone_step *s, const hone_machine *m, hone_work *w) {
  (void)s, (void)m;
  w->arithmetic = HONE_ARITHMETIC_INT8_VECTORS;
}

HN_DESCRIBED_SIZED(hn_coded_step, hn_coded_fill)

HN_TACTIC(cpu, matmul_n_bits_int8, "com.microsoft.MatMulNBits", 2, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run, .work = work, .shared = hn_coded_shared_nbits);
