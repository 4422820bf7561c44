/* Products of many rows by coded weights: a chunk of K of a panel's codes is widened into L1, where a block
 * of rows meets it, in the products of f32. The rows' chunk is brought together once for a group of panels,
 * whose results stay in L2 from chunk to chunk. */
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/product/coded_step.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

typedef struct blob_head {
  hn_coded_step d;       /* first: the blob's form */
  int64_t chunk;         /* values of K, a multiple of 8 */
  int64_t pitch;         /* of the rows that were brought together */
  int64_t rows, columns; /* of a block and of a group */
  int64_t tasks;
} blob_head;

_Static_assert(sizeof(blob_head) <= HN_CODED_HEAD, "panels begin behind the head");

static bool describe(const hone_step *s, const hone_machine *m, const hn_coded_tiles_config *config,
                     blob_head *h, hone_reason *why) {
  enum { LEAST = 32, LINE = 16, MOST_ROWS = 512, PANELS = 8 };
  memset(h, 0, sizeof *h);
  if (!config->describe(s, m, &h->d, why)) return false;
  const hn_gemm_ops *o = hn_gemm_find(h->d.isa);
  if (!o) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(h->d.isa));
  /* A panel and a tile of rows share L1. */
  const int64_t room = (int64_t)m->l1 * 3 / 4 / (int64_t)sizeof(float) / (o->nr + o->mr);
  const int64_t most = room / 8 * 8 > LEAST ? room / 8 * 8 : LEAST;
  h->chunk = hn_min(hn_fill_up(hn_div_up(h->d.k, hn_div_up(h->d.k, most)), 8), hn_fill_up(h->d.k, 8));
  /* An odd number of cache lines from row to row, so that they spread over the sets of L1. */
  h->pitch = hn_fill_up(h->chunk, LINE) + (hn_fill_up(h->chunk, LINE) / LINE % 2 ? 0 : LINE);
  h->rows = hn_div_up(h->d.m, hn_div_up(h->d.m, MOST_ROWS));
  h->columns = hn_max((int64_t)m->l2 / 4 / (int64_t)sizeof(float) / h->rows / o->nr, PANELS) * o->nr;
  const int64_t panels = hn_div_up(h->d.n, o->nr), threads = m->threads ? m->threads : 1;
  h->tasks = hn_min(panels, threads > 1 ? 2 * threads : 1);
  return true;
}

/* Cycles of a thread for a vector of weights to become numbers in L1, and for a value of A to be brought. */
static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(h->d.isa);
  const double columns = (double)hn_gemm_packed_size(o, (size_t)h->d.n, 1), waste = (double)h->d.n / columns,
               threads = m->threads ? m->threads : 1, hertz = hn_core_hertz(o, m);
  const double busy = (double)hn_div_up(h->tasks, (int64_t)threads) * threads / (double)h->tasks;
  const double widen = columns * (double)h->d.k / o->vw *
                       (h->d.bits == 16  ? 2.2
                        : o->vw < 16     ? 4.5
                        : h->d.bits == 8 ? 3.2
                                         : 2.6) /
                       threads / hertz;
  const double groups = (double)hn_div_up(h->d.n, h->columns) / threads,
               blocks = (double)hn_div_up(h->d.m, h->rows);
  const double bring = (double)(h->d.m * h->d.k) * 0.15 * (groups > 1 ? groups : 1) / hertz;
  const double products = hn_step_seconds(m, s->cost.flops, 0, 0.85 * waste),
               read = hn_coded_reading(&h->d, m);
  return (products + bring + (widen * blocks > read ? widen * blocks : read)) * busy +
         hn_epilogue_seconds(s, m, true);
}

static size_t panel_floats(const blob_head *h) {
  return hn_round_up((size_t)(h->chunk + 8) * hn_gemm_find(h->d.isa)->nr, 16);
}
static size_t thread_floats(const blob_head *h) {
  return panel_floats(h) + hn_round_up((size_t)(h->rows * h->pitch), 16);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  hn_coded_need(&h->d, n);
  n->workspace_bytes = thread_floats(h) * (m->threads ? m->threads : 1) * sizeof(float);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  hn_coded_pack(&h->d, s, blob);
  return HONE_OK;
}

typedef struct job {
  const blob_head *h;
  const hn_gemm_ops *gemm;
  const hn_coded_ops *ops;
  const hn_epilogue *e;
  hn_coded w;
  const float *a;
  float *y, *workspace;
} job;

/* Rows [m0, m1) over K's values [k0, k1) of the panel at column n, which is widened at `panel`. */
typedef struct part {
  int64_t m0, m1, k0, k1, n;
} part;

static void multiply(const job *j, const part *p, const float *rows, const float *panel) {
  const blob_head *h = j->h;
  const hn_epilogue *e = j->e;
  const bool last = p->k1 == h->d.k;
  const int64_t ldr = e->residual_view.pixel;
  hn_gemm_tile t = {.lda = h->pitch,
                    .b = panel,
                    .ldc = h->d.n,
                    .k = (size_t)(p->k1 - p->k0),
                    .segment = (size_t)(p->k1 - p->k0),
                    .n = (uint32_t)hn_min(h->d.n - p->n, j->gemm->nr),
                    .accumulate = p->k0 > 0 && !HN_FAULT("coded_chunk"),
                    .flags = last ? e->flags : 0,
                    .lo = e->lo,
                    .hi = e->hi,
                    .slope = e->slope,
                    .bias = e->bias ? e->bias + p->n : NULL,
                    .ldr = ldr};
  for (int64_t i = p->m0; i < p->m1; i += t.m) {
    t.m = (uint32_t)hn_min(p->m1 - i, j->gemm->mr);
    t.a = rows + (i - p->m0) * h->pitch, t.c = j->y + i * h->d.n + p->n;
    t.residual = e->residual ? e->residual + i * ldr + p->n : NULL;
    j->gemm->tile(&t);
    if (last && e->n_post) hn_epilogue_post_pixels(e, t.c, t.ldc, t.m, (size_t)p->n, t.n, 0, 0, 0, i);
  }
}

/* A block of rows over columns [n0, n1). */
static void group(const job *j, part p, int64_t n0, int64_t n1, float *panel) {
  const blob_head *h = j->h;
  float *rows = panel + panel_floats(h);
  for (p.k0 = 0; p.k0 < h->d.k; p.k0 = p.k1) {
    p.k1 = hn_min(p.k0 + h->chunk, h->d.k);
    for (int64_t i = p.m0; i < p.m1; i++)
      memcpy(rows + (i - p.m0) * h->pitch, j->a + i * h->d.k + p.k0, (size_t)(p.k1 - p.k0) * sizeof *rows);
    for (p.n = n0; p.n < n1; p.n += j->gemm->nr) {
      const size_t width = hn_gemm_panel_width(j->gemm, (size_t)h->d.n, (size_t)p.n);
      j->ops->widen(&j->w, (size_t)p.n, width, (size_t)p.k0, (size_t)hn_fill_up(p.k1, 8), panel, width);
      multiply(j, &p, rows, panel);
    }
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t nr = j->gemm->nr, panels = hn_div_up(h->d.n, nr), n0 = index * panels / h->tasks * nr,
                n1 = hn_min((index + 1) * panels / h->tasks * nr, h->d.n);
  part p = {0};
  for (; p.m0 < h->d.m; p.m0 = p.m1) {
    p.m1 = hn_min(p.m0 + h->rows, h->d.m);
    for (int64_t n = n0; n < n1; n += h->columns)
      group(j, p, n, hn_min(n + h->columns, n1), j->workspace + thread * thread_floats(h));
  }
}

hone_status hn_coded_tiles_run(const hone_step_run *r, const hn_coded_tiles_config *config,
                               hone_error *error) {
  const blob_head *h = r->blob;
  hn_epilogue e;
  (void)config, (void)error;
  hn_epilogue_bind(r->step, h->d.isa, true, hn_coded_bias(&h->d, r), r->in, &e);
  job j = {h,
           hn_gemm_find(h->d.isa),
           hn_coded_find(h->d.isa),
           &e,
           hn_coded_matrix(&h->d, r),
           r->in[0],
           r->out[0],
           r->workspace};
  r->parallel(r->pool, h->tasks, task, &j);
  return HONE_OK;
}

HN_FAMILY_DESCRIBED(hn_coded_tiles, blob_head, fill)
