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
  return hn_bf16_packed((size_t)n, (size_t)k_steps, p->parts > 1);
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
    o->pack_keys(t->k + (key + c) * p->k_row, p->k_row,
                 (size_t)(n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL), (size_t)p->depth,
                 s->k + packed(p, c, steps(p->depth)), parts);
  for (int64_t c = 0; c < p->depth_v; c += HN_BF16_PANEL)
    o->pack_values(t->v + key * p->v_row + c, p->v_row,
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

/* m rows from `row` on, against n keys from `key` on. */
static void part(const hn_attention_job *j, const hn_attention_task *t, scratch *s, int64_t row, int64_t m,
                 int64_t key, int64_t n) {
  const hn_attention *p = j->p;
  const hn_bf16_ops *o = j->bf16;
  const hn_attention_bf16_ops *w = j->bf16_ops;
  const uint32_t parts = (uint32_t)p->parts;
  const ptrdiff_t a_row = hn_bf16_a_row(parts);
  hn_bf16_tile tile = {.step = s->step,
                       .row = a_row,
                       .lo = 32,
                       .rows = (uint32_t)p->tile_rows,
                       .m = (uint32_t)m,
                       .x3 = parts > 1};
  o->rows_to_steps(t->q + row * p->q_row, p->q_row, (size_t)m, (size_t)p->depth, s->q, hn_bf16_a_step(parts),
                   parts > 1);
  tile.a = s->q;
  tile.steps = (size_t)steps(p->depth);
  tile.short_from = tile.steps - 1, tile.short_pairs = hn_bf16_short_pairs(p->depth);
  for (int64_t c = 0; c < n; c += HN_BF16_PANEL) {
    tile.b = s->k + packed(p, c, steps(p->depth));
    tile.c = s->score + c / HN_BF16_PANEL * HN_SCORE_PANEL;
    tile.n = (uint32_t)(n - c < HN_BF16_PANEL ? n - c : HN_BF16_PANEL);
    multiply(o, &tile);
  }
  float keep[HN_BF16_ROWS], take[HN_BF16_ROWS];
  for (int64_t i = 0; i < m; i++) {
    hn_mask_row mask[HN_ATTENTION_MASKS];
    float *top = &s->top[row - t->first + i], *sum = &s->sum[row - t->first + i];
    const float before = *top;
    hn_attention_mask_rows(p, t, row + i, key, mask);
    const float add = w->row(s->score + i * HN_BF16_PANEL, (size_t)n, p->scale, mask, p->n_masks, top,
                             s->weight + i * a_row, parts);
    /* The result so far shrinks as its row's maximum grows, and is divided by the sum in the end. */
    keep[i] = key == 0                                               ? 0
              : *top == before || HN_FAULT("attention_bf16_rescale") ? 1.0f
                                                                     : expf(before - *top);
    *sum = (key == 0 ? 0 : *sum * keep[i]) + add;
    take[i] = 1;
    if (key + n == p->keys) {
      take[i] = 1.0f / *sum;
      if (key > 0) keep[i] *= take[i];
    }
  }
  tile.a = s->weight;
  tile.steps = (size_t)steps(n);
  tile.short_from = tile.steps - 1, tile.short_pairs = hn_bf16_short_pairs(n);
  tile.c = s->c;
  for (int64_t c = 0; c < p->depth_v; c += HN_BF16_PANEL) {
    tile.b = s->v + packed(p, c, steps(n));
    tile.n = (uint32_t)(p->depth_v - c < HN_BF16_PANEL ? p->depth_v - c : HN_BF16_PANEL);
    multiply(o, &tile);
    for (int64_t i = 0; i < m; i++)
      w->blend(t->y + (row + i) * p->y_row + c, s->c + i * HN_BF16_PANEL, tile.n, keep[i], take[i]);
  }
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
