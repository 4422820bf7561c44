/* Attention whose heads are mixed with each other (talking heads), f32: for some rows at a time the scores of
 * all heads are made; row by row they are mixed, become weights and are mixed again; then come the products
 * with V. Scores never leave L2, and nothing is turned for the mixes: the same row of each head are rows of
 * one small product. */
#include "backends/cpu/attention/attention_driver.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

enum { FLOATS = 16, FEWEST_ROWS = 4 };

static int64_t pad(int64_t n) { return hn_fill_up(n, FLOATS); }

bool hn_attention_mixed_plan(hn_attention *p, uint32_t threads, size_t l2) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->block = p->keys;
  p->score_ld = pad(p->keys);
  /* An eighth of L2 for scores, beside the keys and values that they are made of; more where that would be
   * less than a tile, and fewer rows than a tile at last. */
  const int64_t row = p->heads * p->score_ld * (int64_t)sizeof(float), tiles = hn_div_up(p->rows, o->mr),
                most = (int64_t)(l2 / 2) / row;
  p->tile_rows = hn_div_up(p->rows, tiles ? tiles : 1);
  if (p->tile_rows > most) {
    if (most < FEWEST_ROWS) return false;
    p->tile_rows = most;
  }
  const int64_t part = (int64_t)(l2 / 8) / row / (p->tile_rows ? p->tile_rows : 1);
  p->part_rows = p->tile_rows * (part > 1 ? part : 1);
  /* A task packs the keys and values of all heads: no more tasks than threads. */
  const int64_t outer = p->batches / p->heads,
                want = outer < (int64_t)threads ? hn_div_up(threads, outer ? outer : 1) : 1,
                parts = hn_div_up(p->rows, p->part_rows ? p->part_rows : 1);
  p->chunk_rows = p->part_rows * hn_div_up(parts ? parts : 1, want);
  p->chunks = hn_div_up(p->rows, p->chunk_rows ? p->chunk_rows : 1);
  p->v_at = p->heads * pad((int64_t)hn_gemm_packed_size(o, (size_t)p->keys, (size_t)p->depth));
  p->score_at =
      p->v_at + p->heads * pad((int64_t)hn_gemm_packed_size(o, (size_t)p->depth_v, (size_t)p->keys));
  p->c_at = p->score_at + p->heads * p->part_rows * p->score_ld; /* a row of every head */
  p->thread_floats = p->c_at + p->heads * p->score_ld;
  return true;
}

typedef struct mixed {
  const hn_attention_job *j;
  hn_attention_task head[HN_ATTENTION_HEADS];
  float *k, *v, *score, *row;
  int64_t k_step, v_step, score_step; /* from head to head */
} mixed;

/* The same row of every head, x, becomes the weights of V. */
static void weigh(const mixed *m, int64_t at, float *x) {
  const hn_attention *p = m->j->p;
  const hn_attention_ops *o = m->j->ops;
  const size_t heads = (size_t)p->heads, n = (size_t)p->keys;
  hn_mask_row mask[HN_ATTENTION_HEADS][HN_ATTENTION_MASKS];
  float factor[HN_ATTENTION_HEADS * HN_ATTENTION_HEADS], sum[HN_ATTENTION_HEADS], *y = m->row;
  /* Before Softmax, where masks that come before the mix are done with. */
  uint32_t done = 0;
  for (size_t h = 0; h < heads; h++) hn_attention_mask_rows(p, &m->head[h], at, 0, mask[h]);
  if (p->mix_before) {
    float scale = p->scale;
    done = p->masks_before;
    if (done) {
      for (size_t h = 0; h < heads; h++) o->scores(x + (ptrdiff_t)h * m->score_step, n, scale, mask[h], done);
      scale = 1;
    }
    for (size_t i = 0; i < heads * heads; i++) factor[i] = p->factor[0][i] * scale;
    o->across(y, p->score_ld, x, m->score_step, n, factor, p->sum[0], heads);
  } else {
    for (size_t h = 0; h < heads; h++)
      memcpy(y + (ptrdiff_t)h * p->score_ld, x + (ptrdiff_t)h * m->score_step, n * sizeof *y);
  }
  for (size_t h = 0; h < heads; h++) {
    float top = -INFINITY;
    const float all = o->row(y + (ptrdiff_t)h * p->score_ld, n, p->mix_before ? 1.0f : p->scale,
                             mask[h] + done, p->n_masks - done, &top);
    sum[h] = 1.0f / (HN_FAULT("attention_mixed_sum") && h ? 1.0f : all);
  }
  if (p->mix_behind) {
    for (size_t i = 0; i < heads * heads; i++) factor[i] = p->factor[1][i] * sum[i % heads];
    o->across(x, m->score_step, y, p->score_ld, n, factor, p->sum[1], heads);
    return;
  }
  for (size_t h = 0; h < heads; h++) {
    float *to = x + (ptrdiff_t)h * m->score_step;
    memcpy(to, y + (ptrdiff_t)h * p->score_ld, n * sizeof *y);
    o->scale(to, n, sum[h]);
  }
}

void hn_attention_mixed_task(void *job, int64_t index, uint32_t thread) {
  const hn_attention_job *j = job;
  const hn_attention *p = j->p;
  float *own = j->workspace + (int64_t)thread * p->thread_floats;
  mixed m = {.j = j,
             .k = own,
             .v = own + p->v_at,
             .score = own + p->score_at,
             .row = own + p->c_at,
             .k_step = p->v_at / p->heads,
             .v_step = (p->score_at - p->v_at) / p->heads,
             .score_step = p->part_rows * p->score_ld};
  const int64_t first = index % p->chunks * p->chunk_rows,
                end = first + p->chunk_rows < p->rows ? first + p->chunk_rows : p->rows;
  for (int64_t h = 0; h < p->heads; h++) {
    hn_attention_task *t = &m.head[h];
    *t = hn_attention_batch_at(j, index / p->chunks * p->heads + h);
    hn_attention_pack_keys(j, t->k, p->keys, m.k + h * m.k_step);
    hn_gemm_pack_b(j->gemm, t->v, p->v_row, 1, (size_t)p->keys, (size_t)p->depth_v, 0, (size_t)p->depth_v,
                   m.v + h * m.v_step);
  }
  for (int64_t r = first, n; r < end; r += n) {
    n = end - r < p->part_rows ? end - r : p->part_rows;
    for (int64_t h = 0; h < p->heads; h++)
      hn_attention_product(j, (const float *)m.head[h].q + r * p->q_row, p->q_row, m.k + h * m.k_step,
                           p->depth, 0, m.score + h * m.score_step, p->score_ld, n, p->keys, p->depth, false);
    for (int64_t i = 0; i < n; i++) weigh(&m, r + i, m.score + i * p->score_ld);
    for (int64_t h = 0; h < p->heads; h++)
      hn_attention_product(j, m.score + h * m.score_step, p->score_ld, m.v + h * m.v_step, p->keys, 0,
                           (float *)m.head[h].y + r * p->y_row, p->y_row, n, p->depth_v, p->keys, false);
  }
}
