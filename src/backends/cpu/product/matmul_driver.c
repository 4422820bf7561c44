#include "backends/cpu/product/matmul_driver.h"

#include "base/fault.h"
#include "base/integers.h"
#include "base/mem.h"

void hn_matmul_plan(hn_matmul *p, uint32_t threads, size_t l1, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->batches = 1;
  for (int32_t i = 0; i < p->n_batch_dims; i++) p->batches *= p->batch[i];
  hn_conv *c = &p->conv;
  *c = (hn_conv){.batch = 1,
                 .groups = 1,
                 .cin = p->k,
                 .cout = p->n,
                 .in = {1, 1, p->m},
                 .grid = {1, 1, p->m},
                 .stride = {1, 1, 1},
                 .in_pitch = p->a_row,
                 .in_batch = p->m * p->k,
                 .in_k = p->a_col,
                 .out = {p->m * p->n, p->m * p->n, p->m * p->n, p->n},
                 .n_runs = 1,
                 .k = p->k};
  hn_conv_plan(c, o, p->packed ? threads : 1, l1, l2);
  if (p->packed) {
    p->thread_floats = (int64_t)hn_conv_scratch(c, o);
    return;
  }
  /* Blocks of columns: packed B in half of L2, and enough tasks for the threads. */
  int64_t block = (int64_t)(l2 / 2 / 4) / (p->k ? p->k : 1) / o->nr, panels = c->n_panels;
  if (block < 1) block = 1;
  int64_t want = p->batches >= 2 * (int64_t)threads
                     ? 1
                     : (2 * (int64_t)threads + p->batches - 1) / (p->batches ? p->batches : 1);
  if (threads == 1 || (double)p->m * (double)p->n * (double)p->k < 1e5) want = 1;
  if (block * want > panels) block = panels / want > 0 ? panels / want : 1;
  p->block = block * o->nr;
  p->n_blocks = panels ? hn_div_up(panels, block) : 0;
  p->thread_floats =
      (int64_t)(hn_round_up(hn_conv_scratch(c, o), 16) + hn_round_up((size_t)(p->block * p->k), 16));
}

size_t hn_matmul_packed(const hn_matmul *p) {
  return p->packed ? hn_gemm_packed_size(hn_gemm_find(p->isa), (size_t)p->n, (size_t)p->k) : 0;
}

size_t hn_matmul_workspace(const hn_matmul *p, uint32_t threads) {
  return (size_t)p->thread_floats * threads;
}

static void scale(float *x, size_t n, float alpha) {
  if (alpha == 1.0f || HN_FAULT("matmul_alpha")) return;
  for (size_t i = 0; i < n; i++) x[i] *= alpha;
}

void hn_matmul_pack(const hn_matmul *p, const float *b, float *dst) {
  hn_gemm_pack_b(hn_gemm_find(p->isa), b, p->b_row, p->b_col, (size_t)p->k, (size_t)p->n, 0, (size_t)p->n,
                 dst);
  scale(dst, hn_matmul_packed(p), p->alpha);
}

typedef struct job {
  const hn_matmul *p;
  const hn_gemm_ops *ops;
  const float *a, *b;
  float *c;
  const hn_epilogue *e;
  float *workspace;
} job;

/* One block of columns of one product: pack it, then run all rows over it. */
static void task(void *arg, int64_t t, uint32_t thread) {
  const job *j = arg;
  const hn_matmul *p = j->p;
  int64_t block = t % p->n_blocks, batch = t / p->n_blocks, a_at = 0, b_at = 0, rest = batch;
  for (int32_t i = p->n_batch_dims - 1; i >= 0; i--) {
    int64_t q = rest % p->batch[i];
    rest /= p->batch[i];
    a_at += q * p->a_batch[i];
    b_at += q * p->b_batch[i];
  }
  if (HN_FAULT("matmul_b_batch")) b_at = 0;
  int64_t n0 = block * p->block, n1 = n0 + p->block < p->n ? n0 + p->block : p->n, c_at = batch * p->m * p->n;
  float *packed = j->workspace + thread * p->thread_floats;
  float *scratch = packed + hn_round_up((size_t)(p->block * p->k), 16);
  const hn_gemm_ops *o = j->ops;
  /* Panels are laid out by their distance from n0, as hn_gemm_pack_b lays them out from 0. */
  hn_gemm_pack_b(o, j->b + b_at + n0 * p->b_col, p->b_row, p->b_col, (size_t)p->k, (size_t)(p->n - n0), 0,
                 (size_t)(n1 - n0), packed);
  scale(packed, hn_gemm_packed_size(o, (size_t)(n1 - n0), (size_t)p->k), p->alpha);
  hn_epilogue e = *j->e;
  hn_epilogue_shift(&e, c_at);
  hn_conv_args args = {.conv = &p->conv,
                       .ops = o,
                       .x = j->a + a_at,
                       .w = packed,
                       .w_column = n0,
                       .y = j->c + c_at,
                       .epilogue = &e,
                       .scratch = scratch,
                       .strip = hn_strip_find(p->isa)};
  hn_conv_block(&args, 0, 0, p->conv.tiles, n0, n1, scratch);
}

void hn_matmul_exec(const hn_matmul *p, const float *a, const float *b, float *c, const hn_epilogue *e,
                    float *workspace, hn_parallel_fn parallel, void *pool) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  if (p->packed) {
    hn_conv_args args = {.conv = &p->conv,
                         .ops = o,
                         .x = a,
                         .w = b,
                         .y = c,
                         .epilogue = e,
                         .scratch = workspace,
                         .strip = hn_strip_find(p->isa)};
    hn_conv_exec(&args, parallel, pool);
    return;
  }
  if (p->m == 0 || p->n == 0) return;
  job j = {p, o, a, b, c, e, workspace};
  parallel(pool, p->batches * p->n_blocks, task, &j);
}
