#include "backends/cpu/common/attention_driver.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/transpose/transpose.h"
#include "base/fault.h"
#include "base/mem.h"

/* Keys up to this many are one block: their scores for a tile of rows fit in L1. */
enum { ONE_BLOCK = 512, MANY_BLOCK = 256, FLOATS = 16 };

static int64_t share(int64_t n, int64_t parts) { return (n + parts - 1) / parts; }
static int64_t pad(int64_t n) { return share(n, FLOATS) * FLOATS; }

void hn_attention_plan(hn_attention *p, uint32_t threads, size_t l1, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->batches = 1;
  for (int32_t i = 0; i < p->n_batch; i++) p->batches *= p->batch[i];
  p->block = p->keys <= ONE_BLOCK ? p->keys : MANY_BLOCK;
  /* Packed K and V of a block in half of L2. */
  const int64_t fits = (int64_t)(l2 / 2 / sizeof(float)) / (p->depth + p->depth_v + 1) / o->nr * o->nr;
  if (p->block > fits) p->block = fits > o->nr ? fits : o->nr;
  if (p->block > p->keys) p->block = p->keys;
  p->score_ld = pad(p->block);
  const int64_t tiles = share(p->rows, o->mr);
  p->tile_rows = share(p->rows, tiles ? tiles : 1);
  int64_t part = (int64_t)(l1 * 2 / 3 / sizeof(float)) / p->score_ld / (p->tile_rows ? p->tile_rows : 1);
  p->part_rows = p->tile_rows * (part > 1 ? part : 1);
  /* Enough tasks for the threads to share evenly; a task packs all keys, so it should have many rows. */
  const int64_t want = threads > 1 && p->batches < 4 * (int64_t)threads
                           ? share(4 * (int64_t)threads, p->batches ? p->batches : 1)
                           : 1;
  int64_t parts = share(p->rows, p->part_rows ? p->part_rows : 1);
  p->chunk_rows = p->part_rows * share(parts ? parts : 1, want);
  p->chunks = share(p->rows, p->chunk_rows ? p->chunk_rows : 1);
  p->v_at = pad((int64_t)hn_gemm_packed_size(o, (size_t)p->block, (size_t)p->depth));
  p->score_at = p->v_at + pad((int64_t)hn_gemm_packed_size(o, (size_t)p->depth_v, (size_t)p->block));
  p->top_at = p->score_at + p->part_rows * p->score_ld;
  p->sum_at = p->top_at + pad(p->chunk_rows);
  p->thread_floats = p->sum_at + pad(p->chunk_rows);
}

size_t hn_attention_workspace(const hn_attention *p, uint32_t threads) {
  return (size_t)p->thread_floats * threads;
}

typedef struct job {
  const hn_attention *p;
  const hn_gemm_ops *gemm;
  const hn_attention_ops *ops;
  hn_transpose_fn transpose;
  const float *q, *k, *v;
  const void *mask[HN_ATTENTION_MASKS];
  float *y, *workspace;
} job;

/* K^T of n keys as the gemm kernel's B. */
static void pack_keys(const job *j, const float *k, int64_t n, float *dst) {
  const hn_attention *p = j->p;
  const hn_gemm_ops *o = j->gemm;
  if (p->k_col != 1 || o->nr < 8 || !j->transpose) {
    hn_gemm_pack_b(o, k, p->k_col, p->k_row, (size_t)p->depth, (size_t)n, 0, (size_t)n, dst);
    return;
  }
  for (int64_t c = 0; c < n; c += o->nr) {
    const size_t w = hn_gemm_panel_width(o, (size_t)n, (size_t)c);
    const size_t live = (size_t)(n - c) < w ? (size_t)(n - c) : w;
    float *panel = dst + c * p->depth;
    if (live < w) memset(panel, 0, w * (size_t)p->depth * sizeof *panel);
    j->transpose(panel, (ptrdiff_t)w, k + c * p->k_row, p->k_row, live, (size_t)p->depth);
  }
}

/* C = A x packed B (+ C), rows x n, in tiles. */
static void product(const job *j, const float *a, ptrdiff_t lda, const float *b, float *c, ptrdiff_t ldc,
                    int64_t rows, int64_t n, int64_t k, bool accumulate) {
  const hn_gemm_ops *o = j->gemm;
  hn_gemm_tile t = {.lda = lda, .ldc = ldc, .k = (size_t)k, .segment = (size_t)k, .accumulate = accumulate};
  for (int64_t c0 = 0; c0 < n; c0 += o->nr) {
    t.n = (uint32_t)(n - c0 < o->nr ? n - c0 : o->nr);
    t.b = b + c0 * k;
    for (int64_t r = 0; r < rows; r += j->p->tile_rows) {
      t.m = (uint32_t)(rows - r < j->p->tile_rows ? rows - r : j->p->tile_rows);
      t.a = a + r * lda;
      t.c = c + r * ldc + c0;
      o->tile(&t);
    }
  }
}

/* Scores of one row become weights; the row of the result follows when its maximum has grown. */
static void weigh(const job *j, const void *const *mask, float *score, int64_t row, int64_t key, int64_t keys,
                  float *y, float *top, float *sum) {
  const hn_attention *p = j->p;
  hn_mask_row m[HN_ATTENTION_MASKS];
  for (uint32_t i = 0; i < p->n_masks; i++) {
    const hn_attention_mask *from = &p->mask[i];
    const int64_t at = row * (HN_FAULT("attention_mask_row") ? 0 : from->row) + key * from->col;
    m[i] = (hn_mask_row){
        from->kind, (const char *)mask[i] + at * (from->kind == HN_MASK_ADD ? (int64_t)sizeof(float) : 1),
        from->col, from->value};
  }
  const float before = *top;
  const float part = j->ops->row(score, (size_t)keys, p->scale, m, p->n_masks, top);
  if (key == 0) {
    *sum = part;
    return;
  }
  /* Still nothing to be seen: there is nothing to rescale. */
  const float shrink = *top == before || HN_FAULT("attention_rescale") ? 1.0f : expf(before - *top);
  *sum = *sum * shrink + part;
  if (shrink != 1.0f) j->ops->scale(y, (size_t)p->depth_v, shrink);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const hn_attention *p = j->p;
  int64_t rest = index / p->chunks, at_q = 0, at_k = 0, at_v = 0, at_y = 0, at_m[HN_ATTENTION_MASKS] = {0};
  for (int32_t i = p->n_batch - 1; i >= 0; i--) {
    const int64_t b = rest % p->batch[i];
    rest /= p->batch[i];
    at_q += b * p->q_batch[i];
    at_k += b * p->k_batch[i];
    at_v += b * p->v_batch[i];
    at_y += b * p->y_batch[i];
    for (uint32_t m = 0; m < p->n_masks; m++) at_m[m] += b * p->mask[m].batch[i];
  }
  const void *mask[HN_ATTENTION_MASKS];
  for (uint32_t m = 0; m < p->n_masks; m++)
    mask[m] =
        (const char *)j->mask[m] + at_m[m] * (p->mask[m].kind == HN_MASK_ADD ? (int64_t)sizeof(float) : 1);
  const int64_t r0 = index % p->chunks * p->chunk_rows;
  const int64_t r1 = r0 + p->chunk_rows < p->rows ? r0 + p->chunk_rows : p->rows;
  float *packed_k = j->workspace + (int64_t)thread * p->thread_floats, *packed_v = packed_k + p->v_at,
        *score = packed_k + p->score_at, *top = packed_k + p->top_at, *sum = packed_k + p->sum_at;
  for (int64_t r = r0; r < r1; r++) top[r - r0] = -INFINITY;
  for (int64_t key = 0; key < p->keys; key += p->block) {
    const int64_t n = p->keys - key < p->block ? p->keys - key : p->block;
    pack_keys(j, j->k + at_k + key * p->k_row, n, packed_k);
    hn_gemm_pack_b(j->gemm, j->v + at_v + key * p->v_row, p->v_row, 1, (size_t)n, (size_t)p->depth_v, 0,
                   (size_t)p->depth_v, packed_v);
    for (int64_t r = r0; r < r1; r += p->part_rows) {
      const int64_t m = r1 - r < p->part_rows ? r1 - r : p->part_rows;
      float *y = j->y + at_y + r * p->y_row;
      product(j, j->q + at_q + r * p->q_row, p->q_row, packed_k, score, p->score_ld, m, n, p->depth, false);
      for (int64_t i = 0; i < m; i++)
        weigh(j, mask, score + i * p->score_ld, r + i, key, n, y + i * p->y_row, &top[r + i - r0],
              &sum[r + i - r0]);
      product(j, score, p->score_ld, packed_v, y, p->y_row, m, p->depth_v, n, key > 0);
      if (key + n == p->keys)
        for (int64_t i = 0; i < m; i++)
          j->ops->scale(y + i * p->y_row, (size_t)p->depth_v, 1.0f / sum[r + i - r0]);
    }
  }
}

void hn_attention_exec(const hn_attention *p, const float *q, const float *k, const float *v,
                       const void *const *mask, float *y, float *workspace, hn_parallel_fn parallel,
                       void *pool) {
  const struct hn_transpose_ops *t = hn_transpose_find(p->isa);
  job j = {.p = p,
           .gemm = hn_gemm_find(p->isa),
           .ops = hn_attention_find(p->isa),
           .transpose = t ? t->matrix[2] : NULL,
           .q = q,
           .k = k,
           .v = v,
           .y = y,
           .workspace = workspace};
  for (uint32_t i = 0; i < p->n_masks; i++) j.mask[i] = mask[i];
  if (p->batches * p->rows == 0) return;
  parallel(pool, p->batches * p->chunks, task, &j);
}
