/* MatMulNBits of many rows: some columns of codes are widened into a thread's part of L2, then all rows go
 * through the product of f32. */
#include <string.h>

#include "backends/cpu/kernels/features.h"

#include "backends/cpu/product/coded_step.h"
#include "backends/cpu/product/matmul_driver.h"
#include "base/integers.h"
#include "base/mem.h"

typedef struct blob_head {
  hn_coded_step d; /* first: the blob's form */
  hn_matmul p;
} blob_head;

_Static_assert(sizeof(blob_head) <= HN_CODED_HEAD, "panels begin behind the head");

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  hn_matmul *p = &h->p;
  memset(h, 0, sizeof *h);
  if (!hn_coded_describe(s, m, &h->d, why)) return false;
  *p = (hn_matmul){.isa = h->d.isa,
                   .m = h->d.m,
                   .n = h->d.n,
                   .k = h->d.k,
                   .a_row = h->d.k,
                   .a_col = 1,
                   .b_row = h->d.n,
                   .b_col = 1,
                   .alpha = 1};
  if (!hn_gemm_find(p->isa)) return hn_refuse(why, "no gemm kernel for %s", hn_isa_name(p->isa));
  hn_matmul_plan(p, m->threads, m->l1, m->l2);
  return true;
}

/* K in whole groups of codes. */
static int64_t depth(const blob_head *h) { return hn_fill_up(h->d.k, 8); }

static double cost_of(const blob_head *h, const hone_step *s, const hone_machine *m) {
  const hn_gemm_ops *o = hn_gemm_find(h->d.isa);
  const double columns = (double)hn_gemm_packed_size(o, (size_t)h->d.n, 1), waste = (double)h->d.n / columns,
               threads = m->threads ? m->threads : 1;
  const double turns = (double)hn_div_up(h->p.n_blocks, (int64_t)threads) * threads / (double)h->p.n_blocks;
  const double widen = columns * (double)h->d.k / o->vw * (o->vw < 16 ? 3.2 : h->d.bits == 8 ? 2.6 : 2.0) /
                       threads / hn_core_hertz(o, m),
               products = hn_step_seconds(m, s->cost.flops, 0, 0.85 * waste), read = hn_coded_reading(&h->d, m);
  return (products + (widen > read ? widen : read)) * turns + hn_epilogue_seconds(s, m, true);
}

/* Floats of a thread: a block of columns, a panel of codes where gemm's panels are narrower, and scratch. */
static size_t block_floats(const blob_head *h) {
  return hn_round_up((size_t)hn_fill_up(h->p.block, HN_CODED_PANEL) * (size_t)depth(h), 16);
}
static size_t scratch_floats(const blob_head *h) {
  return hn_round_up(hn_conv_scratch(&h->p.conv, hn_gemm_find(h->d.isa)), 16);
}

static void need_of(const blob_head *h, const hone_step *s, const hone_machine *m, hone_tactic_need *n) {
  (void)s;
  hn_coded_need(&h->d, n);
  n->workspace_bytes = (block_floats(h) + scratch_floats(h)) * (m->threads ? m->threads : 1) * sizeof(float);
}

static hone_status fill(blob_head *h, const hone_step *s, void *blob, hone_error *error) {
  (void)error;
  memcpy(blob, h, sizeof *h);
  hn_coded_fill(&h->d, s, blob);
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

/* Columns [n0, n1) as gemm's panels: k rows of all of a panel's columns. */
static void widen(const job *j, int64_t n0, int64_t n1, float *to) {
  const hn_matmul *p = &j->h->p;
  for (int64_t n = n0; n < n1; n += j->gemm->nr) {
    const size_t width = hn_gemm_panel_width(j->gemm, (size_t)p->n, (size_t)n);
    j->ops->widen(&j->w, (size_t)n, width, 0, (size_t)depth(j->h), to, width);
    to += (size_t)p->k * width; /* what is beyond K is written over, or not read */
  }
}

static void task(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const hn_matmul *p = &j->h->p;
  const int64_t n0 = t * p->block, n1 = hn_min(n0 + p->block, p->n);
  float *block = j->workspace + thread * (block_floats(j->h) + scratch_floats(j->h)),
        *scratch = block + block_floats(j->h);
  widen(j, n0, n1, block);
  const hn_conv_args args = {.conv = &p->conv,
                             .ops = j->gemm,
                             .x = j->a,
                             .w = block,
                             .w_column = n0,
                             .y = j->y,
                             .epilogue = j->e,
                             .scratch = scratch};
  hn_conv_block(&args, 0, 0, p->conv.tiles, n0, n1, scratch);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  hn_epilogue e;
  (void)error;
  hn_epilogue_bind(r->step, h->d.isa, true, hn_step_has(r->step, HN_CODED_BIAS) ? r->in[HN_CODED_BIAS] : NULL,
                   r->in, &e);
  job j = {h,        hn_gemm_find(h->d.isa), hn_coded_find(h->d.isa), &e, hn_coded_matrix(&h->d, r),
           r->in[0], r->out[0],              r->workspace};
  r->parallel(r->pool, h->p.n_blocks, task, &j);
  return HONE_OK;
}

HN_DESCRIBED_SIZED(blob_head)

HN_TACTIC(cpu, matmul_n_bits_tiles, "com.microsoft.MatMulNBits", 1, .accepts = accepts, .cost = cost,
          .need = need, .prepack = prepack, .run = run, .shared = hn_coded_shared);
