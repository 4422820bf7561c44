#include "backends/cpu/attention/attention_driver.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "base/fault.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/mem.h"

/* Keys up to this many are one block: their scores for a tile of rows fit in L1. */
enum { ONE_BLOCK = 512, MANY_BLOCK = 256, FLOATS = 16, FEW_ROWS = 8, AT_ONCE = 8 };

static int64_t pad(int64_t n) { return hn_fill_up(n, FLOATS); }

void hn_attention_divide(hn_attention *p, uint32_t threads) {
  /* Enough tasks for the threads to share evenly; a task packs all keys, so it should have many rows. */
  const int64_t want = threads > 1 && p->batches < 4 * (int64_t)threads
                           ? hn_div_up(4 * (int64_t)threads, p->batches ? p->batches : 1)
                           : 1;
  const int64_t parts = hn_div_up(p->rows, p->part_rows ? p->part_rows : 1);
  p->chunk_rows = p->part_rows * hn_div_up(parts ? parts : 1, want);
  p->chunks = hn_div_up(p->rows, p->chunk_rows ? p->chunk_rows : 1);
}

static void plan_f32(hn_attention *p, uint32_t threads, size_t l1) {
  const hn_gemm_ops *o = hn_gemm_find(p->isa);
  p->score_ld = pad(p->block);
  p->direct = p->rows <= FEW_ROWS && (p->k_col == 1 || p->depth == 1);
  /* Values of few keys stay in L1 and are read where they lie. */
  const hn_attention_ops *ops = hn_attention_find(p->isa);
  p->is_short = ops->rows && p->block == p->keys && p->keys <= HN_ATTENTION_SHORT * (int64_t)ops->lanes;
  p->in_lanes = !p->sinks && p->cap == 0 && hn_attention_lanes_plan(p, threads);
  if (p->in_lanes) {
    p->is_short = false;
    return;
  }
  const int64_t tiles = hn_div_up(p->rows, o->mr);
  p->tile_rows = hn_div_up(p->rows, tiles ? tiles : 1);
  int64_t part = (int64_t)(l1 * 2 / 3 / sizeof(float)) / p->score_ld / (p->tile_rows ? p->tile_rows : 1);
  /* Rows whose scores are made together see the same keys, so where bands are, few of them do. */
  p->part_rows = p->tile_rows * (part > 1 && !p->ends && !p->begins ? part : 1);
  hn_attention_divide(p, threads);
  p->v_at = pad((int64_t)hn_gemm_packed_size(o, (size_t)p->block, (size_t)p->depth));
  p->score_at = p->v_at + pad((int64_t)hn_gemm_packed_size(o, (size_t)p->depth_v, (size_t)p->block));
  p->top_at = p->score_at + p->part_rows * p->score_ld;
}

bool hn_attention_plan(hn_attention *p, uint32_t threads, size_t l1, size_t l2) {
  const int64_t nr = p->parts ? HN_BF16_PANEL : hn_gemm_find(p->isa)->nr;
  p->batches = 1;
  for (int32_t i = 0; i < p->n_batch; i++) p->batches *= p->batch[i];
  p->block = p->keys <= ONE_BLOCK ? p->keys : MANY_BLOCK;
  /* Packed K and V of a block in half of L2. */
  const int64_t fits = (int64_t)(l2 / 2 / sizeof(float)) / (p->depth + p->depth_v + 1) / nr * nr;
  if (p->block > fits) p->block = fits > nr ? fits : nr;
  if (p->block > p->keys) p->block = p->keys;
  if (p->heads)
    return hn_attention_mixed_plan(p, threads, l2);
  else if (p->parts)
    hn_attention_bf16_plan(p, threads);
  else
    plan_f32(p, threads, l1);
  p->sum_at = p->top_at + pad(p->chunk_rows);
  p->thread_floats = hn_attention_sight_plan(p, p->sum_at + pad(p->chunk_rows));
  return true;
}

bool hn_attention_has(const hn_attention *p) {
  if (!p->parts) return hn_gemm_find(p->isa) && hn_attention_find(p->isa);
  const hn_bf16_ops *o = hn_bf16_find(p->isa);
  return o && hn_attention_bf16_find(p->isa) && (uint32_t)p->parts <= o->parts;
}

size_t hn_attention_workspace(const hn_attention *p, uint32_t threads) {
  return (size_t)p->thread_floats * threads;
}

static int64_t mask_bytes(const hn_attention_mask *m, int64_t elements) {
  return elements * (m->kind == HN_MASK_ADD ? (int64_t)sizeof(float) : 1);
}

hn_attention_task hn_attention_batch_at(const hn_attention_job *j, int64_t batch) {
  const hn_attention *p = j->p;
  hn_attention_task t = {.q = j->q, .k = j->k, .v = j->v, .y = j->y, .sink = p->sink};
  int64_t rest = batch, at_mask[HN_ATTENTION_MASKS] = {0};
  for (int32_t i = p->n_batch - 1; i >= 0; i--) {
    const int64_t b = rest % p->batch[i];
    rest /= p->batch[i];
    t.q = hn_attention_place(t.q, b * p->q_batch[i], p->narrow_q);
    t.k = hn_attention_place(t.k, b * p->k_batch[i], p->narrow_k);
    t.v = hn_attention_place(t.v, b * p->v_batch[i], p->narrow_v);
    t.y = hn_attention_place(t.y, b * p->y_batch[i], p->narrow_y);
    if (t.sink) t.sink += b * p->sink_batch[i];
    for (uint32_t m = 0; m < p->n_masks; m++) at_mask[m] += b * p->mask[m].batch[i];
  }
  for (uint32_t m = 0; m < p->n_masks; m++)
    t.mask[m] = (const char *)j->mask[m] + mask_bytes(&p->mask[m], at_mask[m]);
  return t;
}

hn_attention_task hn_attention_task_at(const hn_attention_job *j, int64_t index) {
  const hn_attention *p = j->p;
  hn_attention_task t = hn_attention_batch_at(j, index / p->chunks);
  t.first = index % p->chunks * p->chunk_rows;
  t.end = t.first + p->chunk_rows < p->rows ? t.first + p->chunk_rows : p->rows;
  return t;
}

void hn_attention_mask_rows(const hn_attention *p, const hn_attention_task *t, int64_t row, int64_t key,
                            hn_mask_row *out) {
  for (uint32_t i = 0; i < p->n_masks; i++) {
    const hn_attention_mask *m = &p->mask[i];
    const int64_t at = row * (HN_FAULT("attention_mask_row") ? 0 : m->row) + key * m->col;
    out[i] = (hn_mask_row){m->kind, (const char *)t->mask[i] + mask_bytes(m, at), m->col, m->value};
  }
}

void hn_attention_clear_row(const hn_attention *p, const hn_attention_task *t, int64_t row) {
  for (int64_t c = 0; c < p->depth_v; c++) {
    float sum = 0;
    for (int64_t key = 0; key < p->keys; key++) {
      const void *v = hn_attention_place(t->v, key * p->v_row + c, p->narrow_v);
      sum += 0.0f * (p->narrow_v ? hn_bf16_to_f32(*(const uint16_t *)v) : *(const float *)v);
    }
    void *y = hn_attention_place(t->y, row * p->y_row + c, p->narrow_y);
    if (p->narrow_y)
      *(uint16_t *)y = hn_f32_to_bf16(sum);
    else
      *(float *)y = sum;
  }
}

/* ------------------------------------------------------------------ f32 */

void hn_attention_pack_keys(const hn_attention_job *j, const float *k, int64_t n, float *dst) {
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
    j->transpose->matrix[2](panel, (ptrdiff_t)w, k + c * p->k_row, p->k_row, live, (size_t)p->depth);
  }
}

void hn_attention_product(const hn_attention_job *j, const float *a, ptrdiff_t lda, const float *b,
                          int64_t b_k, int64_t from, float *c, ptrdiff_t ldc, int64_t rows, int64_t n,
                          int64_t k, bool accumulate) {
  const hn_gemm_ops *o = j->gemm;
  const int64_t tile_rows = j->p->tile_rows;
  hn_gemm_tile t = {.lda = lda, .ldc = ldc, .k = (size_t)k, .segment = (size_t)k, .accumulate = accumulate};
  for (int64_t c0 = 0; c0 < n; c0 += o->nr) {
    t.n = (uint32_t)(n - c0 < o->nr ? n - c0 : o->nr);
    t.b = b + c0 * b_k + from * (int64_t)hn_gemm_panel_width(o, (size_t)n, (size_t)c0);
    for (int64_t r = 0; r < rows; r += tile_rows) {
      t.m = (uint32_t)(rows - r < tile_rows ? rows - r : tile_rows);
      t.a = a + r * lda;
      t.c = c + r * ldc + c0;
      o->tile(&t);
    }
  }
}

void hn_attention_places(const hn_attention *p, int64_t row, int64_t *from, int64_t *end) {
  const int64_t at = row + p->place;
  *from = p->begins && at > p->window ? at - p->window : 0;
  *end = p->ends && at + 1 < p->keys ? at + 1 - (HN_FAULT("attention_band") ? 1 : 0) : p->keys;
  if (*end < *from) *end = *from;
}

/* Scores of one row become weights; the row of the result follows when its maximum has grown. */
static void weigh(const hn_attention_job *j, const hn_attention_task *t, float *score, int64_t row,
                  int64_t key, int64_t keys, bool first, float *y, float *top, float *sum) {
  const hn_attention *p = j->p;
  const hn_attention_ops *o = j->ops;
  hn_mask_row m[HN_ATTENTION_MASKS];
  int64_t from, end;
  hn_attention_places(p, row, &from, &end);
  from = from > key ? from - key : 0;
  end = end < key + keys ? end - key : keys;
  if (from >= end) from = end = 0;
  if (from) memset(score, 0, (size_t)from * sizeof *score);
  if (end < keys) memset(score + end, 0, (size_t)(keys - end) * sizeof *score);
  const float before = *top;
  float part = 0;
  if (from < end) {
    hn_attention_mask_rows(p, t, row, key + from, m);
    if (p->cap != 0 && !HN_FAULT("attention_cap")) hn_attention_bend(j, score + from, end - from);
    part = o->row(score + from, (size_t)(end - from), hn_attention_scale(p), m, p->n_masks, top);
  }
  if (first) {
    *sum = part;
    return;
  }
  /* Still nothing to be seen: there is nothing to rescale. */
  const float shrink = *top == before || HN_FAULT("attention_rescale") ? 1.0f : expf(before - *top);
  *sum = *sum * shrink + part;
  if (shrink != 1.0f) o->scale(y, (size_t)p->depth_v, shrink);
}

/* Scores of rows that see one block of at most SHORT vectors. */
static void weigh_short(const hn_attention_job *j, const hn_attention_task *t, float *score, int64_t row,
                        int64_t m, int64_t key, int64_t n, float *top, float *sum) {
  const hn_attention *p = j->p;
  hn_mask_row mask[AT_ONCE * HN_ATTENTION_MASKS];
  int32_t seen[2 * AT_ONCE];
  for (int64_t i = 0; i < m; i += AT_ONCE) {
    const int64_t some = m - i < AT_ONCE ? m - i : AT_ONCE;
    for (int64_t r = 0; r < some; r++) {
      int64_t from, end;
      hn_attention_places(p, row + i + r, &from, &end);
      seen[2 * r] = (int32_t)(from > key ? from - key : 0);
      seen[2 * r + 1] = (int32_t)(end < key + n ? end - key : n);
      if (seen[2 * r] >= seen[2 * r + 1]) seen[2 * r] = seen[2 * r + 1] = 0;
      hn_attention_mask_rows(p, t, row + i + r, key, mask + r * p->n_masks);
    }
    if (HN_FAULT("attention_short") && i > 0) continue;
    if (p->cap != 0)
      for (int64_t r = 0; r < some; r++) hn_attention_bend(j, score + (i + r) * p->score_ld, n);
    j->ops->rows(score + i * p->score_ld, p->score_ld, (size_t)some, (size_t)n, hn_attention_scale(p), mask,
                 p->n_masks, seen, top + i, sum + i);
  }
}

/* What the number beside a row's scores adds to their sum of weights. */
static float beside(const hn_attention *p, const hn_attention_task *t, int64_t row, float top) {
  if (!p->sinks) return 0;
  return expf((t->sink ? t->sink[row * p->sink_row] : 0.0f) - top);
}

/* Keys and values of a block, packed or where they lie. */
typedef struct key_block {
  int64_t at, n;
  const float *k, *v;
} key_block;

/* The keys that rows [first, end) see, by their places and, where masks were looked at, by those. */
static void seen_by(const hn_attention *p, int64_t first, int64_t end, const hn_attention_sight *sight,
                    int64_t *from, int64_t *last) {
  int64_t none;
  hn_attention_places(p, first, from, &none);
  hn_attention_places(p, end - 1, &none, last);
  if (!p->looks) return;
  if (sight->from > *from) *from = sight->from;
  if (sight->end < *last) *last = sight->end;
}

/* What m rows from r on see of a block: their scores, weights and part of the result. at: of their places in
 * top and sum. */
static void part_f32(const hn_attention_job *j, const hn_attention_task *t, const key_block *b, int64_t r,
                     int64_t m, const hn_attention_sight *sight, float *score, float *top, float *sum) {
  const hn_attention *p = j->p;
  const hn_attention_ops *o = j->ops;
  const float *q = (const float *)t->q + r * p->q_row;
  float *y = (float *)t->y + r * p->y_row;
  int64_t from, last;
  seen_by(p, r, r + m, sight, &from, &last);
  if (b->at >= last || b->at + b->n <= from) return;
  const bool first = b->at <= from;
  /* Whole panels of keys. */
  const int64_t panel = p->direct ? 1 : j->gemm->nr;
  int64_t lo = from > b->at ? (from - b->at) / panel * panel : 0, hi = hn_fill_up(last - b->at, panel);
  if (hi > b->n) hi = b->n;
  const int64_t n = hi - lo;
  if (p->direct)
    o->dots(score, p->score_ld, q, p->q_row, (size_t)m, b->k + lo * p->k_row, p->k_row, (size_t)n,
            (size_t)p->depth);
  else
    hn_attention_product(j, q, p->q_row, b->k + lo * p->depth, p->depth, 0, score, p->score_ld, m, n,
                         p->depth, false);
  if (p->is_short)
    weigh_short(j, t, score, r, m, b->at + lo, n, top, sum);
  else
    for (int64_t i = 0; i < m; i++)
      weigh(j, t, score + i * p->score_ld, r + i, b->at + lo, n, first, y + i * p->y_row, &top[i], &sum[i]);
  if (p->direct || p->is_short)
    o->mix(y, p->y_row, score, p->score_ld, (size_t)m, b->v + lo * p->v_row, p->v_row, (size_t)n,
           (size_t)p->depth_v, !first);
  else
    hn_attention_product(j, score, p->score_ld, b->v, b->n, lo, y, p->y_row, m, p->depth_v, n, !first);
  if (b->at + b->n >= last)
    for (int64_t i = 0; i < m; i++) {
      if (p->nan_to_zero && !(sum[i] > 0) && !HN_FAULT("attention_nan_to_zero"))
        hn_attention_clear_row(p, t, r + i);
      else
        o->scale(y + i * p->y_row, (size_t)p->depth_v, 1.0f / (sum[i] + beside(p, t, r + i, top[i])));
    }
}

static void task_f32(void *job, int64_t index, uint32_t thread) {
  const hn_attention_job *j = job;
  const hn_attention *p = j->p;
  const hn_attention_task t = hn_attention_task_at(j, index);
  float *packed_k = j->workspace + (int64_t)thread * p->thread_floats, *packed_v = packed_k + p->v_at,
        *score = packed_k + p->score_at, *top = packed_k + p->top_at, *sum = packed_k + p->sum_at;
  hn_attention_sight *sight = (hn_attention_sight *)(packed_k + p->sight_at);
  if (p->looks) hn_attention_look(j, &t, sight);
  int64_t begin = p->keys, end = 0;
  for (int64_t r = t.first, i = 0; r < t.end; r += p->part_rows, i++) {
    int64_t from, last;
    seen_by(p, r, t.end - r < p->part_rows ? t.end : r + p->part_rows, sight + i, &from, &last);
    if (from < begin) begin = from;
    if (last > end) end = last;
  }
  for (int64_t r = t.first; r < t.end; r++) top[r - t.first] = -INFINITY;
  for (int64_t key = begin; key < end; key += p->block) {
    key_block b = {key, end - key < p->block ? end - key : p->block, (const float *)t.k + key * p->k_row,
                   (const float *)t.v + key * p->v_row};
    if (!p->direct) {
      hn_attention_pack_keys(j, b.k, b.n, packed_k);
      b.k = packed_k;
    }
    if (!p->direct && !p->is_short) {
      hn_gemm_pack_b(j->gemm, b.v, p->v_row, 1, (size_t)b.n, (size_t)p->depth_v, 0, (size_t)p->depth_v,
                     packed_v);
      b.v = packed_v;
    }
    for (int64_t r = t.first, i = 0; r < t.end; r += p->part_rows, i++)
      part_f32(j, &t, &b, r, t.end - r < p->part_rows ? t.end - r : p->part_rows, sight + i, score,
               &top[r - t.first], &sum[r - t.first]);
  }
}

void hn_attention_exec(const hn_attention *p, const void *q, const void *k, const void *v,
                       const void *const *mask, void *y, float *workspace, hn_parallel_fn parallel,
                       void *pool) {
  hn_attention_job j = {.p = p, .q = q, .k = k, .v = v, .y = y, .workspace = workspace};
  j.gemm = hn_gemm_find(p->isa);
  j.ops = hn_attention_find(p->isa);
  j.transpose = hn_transpose_find(p->isa);
  j.bf16 = hn_bf16_find(p->isa);
  j.bf16_ops = hn_attention_bf16_find(p->isa);
  j.tanh = hn_act_find(HONE_PW_TANH, p->isa);
  for (uint32_t i = 0; i < p->n_masks; i++) j.mask[i] = mask[p->mask[i].input];
  if (p->batches * p->rows == 0) return;
  parallel(pool, p->batches / (p->heads ? p->heads : 1) * p->chunks,
           p->heads      ? hn_attention_mixed_task
           : p->parts    ? hn_attention_bf16_task
           : p->in_lanes ? hn_attention_lanes_task
                         : task_f32,
           &j);
}
