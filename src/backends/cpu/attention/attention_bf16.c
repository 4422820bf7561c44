/* Attention on the gemm_bf16 kernels: Q K^T and weights x V as products of bf16 parts (see gemm_bf16.h for
 * their error), sums, maxima and exponentials in f32. Blocks of up to 32 rows; their scores lie as the kernel
 * leaves them, panel behind panel, and a panel of scores becomes a step of the second product's A. */
#include "backends/cpu/attention/attention_driver.h"

#include <math.h>

#include "base/fault.h"
#include "base/integers.h"

enum { FLOATS = 16, MAX_STEPS = 64 };

static int64_t pad(int64_t n) { return hn_fill_up(n, FLOATS); }
static int64_t steps(int64_t k) { return hn_div_up(k, HN_BF16_STEP); }

static size_t packed(const hn_attention *p, int64_t n, int64_t k_steps) {
  return hn_bf16_parted((size_t)n, (size_t)k_steps, (uint32_t)p->parts);
}

static int64_t packed_floats(const hn_attention *p, int64_t n, int64_t k) {
  return pad((int64_t)packed(p, n, steps(k)) / 2);
}

void hn_attention_bf16_plan(hn_attention *p, uint32_t threads) {
  /* As many row tiles of equal height as a block holds. */
  const int64_t tile = hn_bf16_find(p->isa)->rows, tiles = HN_BF16_ROWS / tile;
  const int64_t blocks = hn_div_up(p->rows, tiles * tile), a = hn_bf16_a_step((uint32_t)p->parts) / 2;
  p->tile_rows = hn_div_up(hn_div_up(p->rows, blocks ? blocks : 1), tiles);
  if (p->tile_rows < 1) p->tile_rows = 1;
  p->part_rows = tiles * p->tile_rows;
  hn_attention_divide(p, threads);
  p->v_at = packed_floats(p, p->block, p->depth);
  p->q_at = p->v_at + packed_floats(p, p->depth_v, p->block);
  p->score_at = p->q_at + a * steps(p->depth);
  p->weight_at = p->score_at + HN_SCORE_PANEL * steps(p->block);
  p->c_at = p->weight_at + a * steps(p->block);
  p->top_at = p->c_at + HN_SCORE_PANEL;
}

typedef struct scratch {
  uint16_t *k, *v, *q, *weight;
  float *score, *c, *top, *sum;
  int32_t step[MAX_STEPS];
} scratch;

static scratch scratch_of(const hn_attention_job *j, uint32_t thread) {
  const hn_attention *p = j->p;
  float *f = j->workspace + (int64_t)thread * p->thread_floats;
  scratch s = {.k = (uint16_t *)(void *)f,
               .v = (uint16_t *)(void *)(f + p->v_at),
               .q = (uint16_t *)(void *)(f + p->q_at),
               .weight = (uint16_t *)(void *)(f + p->weight_at),
               .score = f + p->score_at,
               .c = f + p->c_at,
               .top = f + p->top_at,
               .sum = f + p->sum_at};
  for (int32_t i = 0; i < MAX_STEPS; i++) s.step[i] = i * (int32_t)hn_bf16_a_step((uint32_t)p->parts);
  return s;
}

static void pack(const hn_attention *p, const hn_attention_bf16_ops *o, const hn_attention_task *t,
                 scratch *s, int64_t key, int64_t n) {
  const uint32_t parts = (uint32_t)p->parts;
  for (int64_t c = 0; c < n; c += HN_BF16_PANEL)
    o->pack_keys(hn_attention_place(t->k, (key + c) * p->k_row, p->narrow_k), p->narrow_k, p->k_row,
                 (size_t)(n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL), (size_t)p->depth,
                 s->k + packed(p, c, steps(p->depth)), parts);
  for (int64_t c = 0; c < p->depth_v; c += HN_BF16_PANEL)
    o->pack_values(hn_attention_place(t->v, key * p->v_row + c, p->narrow_v), p->narrow_v, p->v_row,
                   (size_t)(p->depth_v - c < HN_BF16_PANEL ? p->depth_v - c : HN_BF16_PANEL), (size_t)n,
                   s->v + packed(p, c, steps(n)), parts);
}

/* The rows of `tile`, as many at a time as a call takes. */
static void multiply(const hn_bf16_ops *o, const hn_bf16_tile *tile) {
  hn_bf16_tile t = *tile;
  const uint32_t most = tile->rows * o->row_tiles;
  for (uint32_t i = 0; i < tile->m; i += most) {
    t.a = tile->a + i * tile->row;
    t.c = tile->c + i * HN_BF16_PANEL;
    t.m = tile->m - i < most ? tile->m - i : most;
    o->tile(&t);
  }
}

/* m rows of Q from `row` on as A. */
static void bring(const hn_attention_job *j, const hn_attention_task *t, scratch *s, int64_t row, int64_t m) {
  const hn_attention *p = j->p;
  const void *q = hn_attention_place(t->q, row * p->q_row, p->narrow_q);
  const ptrdiff_t step = hn_bf16_a_step((uint32_t)p->parts);
  if (p->narrow_q)
    j->bf16->copy_to_steps(q, p->q_row, (size_t)m, (size_t)p->depth, s->q, step);
  else
    j->bf16->rows_to_steps(q, p->q_row, (size_t)m, (size_t)p->depth, s->q, step, (uint32_t)p->parts);
}

/* m rows of scores become weights. keep, take: what of the result so far and of the new products makes the
 * result. It shrinks as its row's maximum grows, and is divided by the sum in the end. */
static void weigh(const hn_attention_job *j, const hn_attention_task *t, scratch *s, int64_t row, int64_t m,
                  int64_t key, int64_t n, float *keep, float *take) {
  const hn_attention *p = j->p;
  hn_mask_row mask[HN_BF16_ROWS][HN_ATTENTION_MASKS];
  float *top = s->top + (row - t->first), *sum = s->sum + (row - t->first);
  float before[HN_BF16_ROWS], add[HN_BF16_ROWS];
  for (int64_t i = 0; i < m; i++) {
    before[i] = top[i];
    if (p->n_masks) hn_attention_mask_rows(p, t, row + i, key, mask[i]);
  }
  for (int64_t c = 0; c < n && p->cap != 0 && !HN_FAULT("attention_bf16_cap"); c += HN_BF16_PANEL)
    for (int64_t i = 0; i < m; i++)
      hn_attention_bend(j, s->score + c / HN_BF16_PANEL * HN_SCORE_PANEL + i * HN_BF16_PANEL,
                        n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL);
  j->bf16_ops->rows(&(hn_weight_rows){.x = s->score,
                                      .m = (size_t)m,
                                      .n = (size_t)n,
                                      .scale = hn_attention_scale(p),
                                      .mask = mask,
                                      .n_masks = p->n_masks,
                                      .top = top,
                                      .sum = add,
                                      .to = s->weight,
                                      .parts = (uint32_t)p->parts});
  for (int64_t i = 0; i < m; i++) {
    keep[i] = key == 0                                                    ? 0
              : top[i] == before[i] || HN_FAULT("attention_bf16_rescale") ? 1.0f
                                                                          : expf(before[i] - top[i]);
    sum[i] = (key == 0 ? 0 : sum[i] * keep[i]) + add[i];
    take[i] = 1;
    if (key + n == p->keys) {
      take[i] = 1.0f / sum[i];
      if (key > 0) keep[i] *= take[i];
    }
  }
}

/* m rows from `row` on, against n keys from `key` on. */
static void part(const hn_attention_job *j, const hn_attention_task *t, scratch *s, int64_t row, int64_t m,
                 int64_t key, int64_t n) {
  const hn_attention *p = j->p;
  const hn_bf16_ops *o = j->bf16;
  const uint32_t parts = (uint32_t)p->parts;
  float keep[HN_BF16_ROWS], take[HN_BF16_ROWS];
  hn_bf16_tile tile = {.step = s->step,
                       .row = hn_bf16_a_row(parts),
                       .lo = 32,
                       .rows = (uint32_t)p->tile_rows,
                       .m = (uint32_t)m,
                       .parts = (uint32_t)parts};
  bring(j, t, s, row, m);
  tile.a = s->q;
  tile.steps = (size_t)steps(p->depth);
  tile.short_from = tile.steps - 1, tile.short_pairs = hn_bf16_short_pairs(p->depth);
  for (int64_t c = 0; c < n; c += HN_BF16_PANEL) {
    tile.b = s->k + packed(p, c, steps(p->depth));
    tile.c = s->score + c / HN_BF16_PANEL * HN_SCORE_PANEL;
    tile.n = (uint32_t)(n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL);
    multiply(o, &tile);
  }
  weigh(j, t, s, row, m, key, n, keep, take);
  tile.a = s->weight;
  tile.steps = (size_t)steps(n);
  tile.short_from = tile.steps - 1, tile.short_pairs = hn_bf16_short_pairs(n);
  tile.c = s->c;
  for (int64_t c = 0; c < p->depth_v; c += HN_BF16_PANEL) {
    void *y = hn_attention_place(t->y, row * p->y_row + c, p->narrow_y);
    tile.b = s->v + packed(p, c, steps(n));
    tile.n = (uint32_t)(p->depth_v - c < HN_BF16_PANEL ? p->depth_v - c : HN_BF16_PANEL);
    multiply(o, &tile);
    if (p->narrow_y)
      j->bf16_ops->blend_narrow(y, p->y_row, s->c, (size_t)m, tile.n, take);
    else
      j->bf16_ops->blend(y, p->y_row, s->c, (size_t)m, tile.n, keep, take);
  }
  if (!p->nan_to_zero || key + n < p->keys || HN_FAULT("attention_bf16_nan_to_zero")) return;
  for (int64_t i = 0; i < m; i++)
    if (!(s->sum[row + i - t->first] > 0)) hn_attention_clear_row(p, t, row + i);
}

void hn_attention_bf16_task(void *job, int64_t index, uint32_t thread) {
  const hn_attention_job *j = job;
  const hn_attention *p = j->p;
  const hn_bf16_ops *o = j->bf16;
  const hn_attention_task t = hn_attention_task_at(j, index);
  scratch s = scratch_of(j, thread);
  for (int64_t r = t.first; r < t.end; r++) s.top[r - t.first] = -INFINITY;
  o->begin((uint32_t)p->tile_rows);
  for (int64_t key = 0; key < p->keys; key += p->block) {
    const int64_t n = p->keys - key < p->block ? p->keys - key : p->block;
    pack(p, j->bf16_ops, &t, &s, key, n);
    for (int64_t r = t.first; r < t.end; r += p->part_rows)
      part(j, &t, &s, r, t.end - r < p->part_rows ? t.end - r : p->part_rows, key, n);
  }
  o->end();
}
