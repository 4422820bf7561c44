/* Attention of small heads, f32: a query a lane. Each score of a vector of queries is one instruction for
 * each number of a key, and maxima and sums are along keys, so that nothing is packed and nothing goes across
 * a vector. Keys and values are read one number at a time: long ones are the gemm kernel's. */
#include "backends/cpu/attention/attention_driver.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

enum { MOST_KEYS = 256 }; /* whose scores lie in L1 */

/* Cycles of a batch, about: a number that is read for all lanes is most of a multiply-add, with long vectors
 * more of it; a vector of weights takes 14, a mask one more, 3 where it is turned. */
static double cycles(const hn_attention *p, int64_t lanes) {
  double each = (lanes > 8 ? 0.8 : 0.7) * (double)(p->depth + p->depth_v) + 14;
  for (uint32_t i = 0; i < p->n_masks; i++) each += p->mask[i].row ? 3 : 1;
  const double vectors = (double)hn_div_up(p->rows, lanes);
  return vectors * ((double)p->keys * each + 60) + (double)(p->rows * (p->depth + p->depth_v)) * 0.5;
}

/* The same by packed keys and values. */
static double packed_cycles(const hn_attention *p, int64_t lanes) {
  const double scores = (double)(p->rows * p->keys), numbers = (double)(p->depth + p->depth_v);
  const double columns = (double)(p->depth + hn_fill_up(p->depth_v, lanes));
  return scores * (columns / 2 / 0.85 + 16) / (double)lanes + 80 * (double)p->rows +
         (p->direct ? 0 : (double)p->keys * numbers);
}

/* ...and by packed keys and values that stay where they are: whole vectors of keys have weights. Few columns
 * of values are few sums at once, and 16 registers hold no more. */
static double short_cycles(const hn_attention *p, int64_t lanes) {
  const double padded = (double)hn_fill_up(p->keys, lanes), columns = (double)hn_fill_up(p->depth_v, lanes);
  const double mix = columns / 2 / (lanes <= 8 ? 0.7 : p->depth_v <= 2 * lanes ? 0.6 : 0.85);
  const double row = padded * ((double)p->depth / 2 / 0.85 + 16 + p->n_masks) + (double)p->keys * mix;
  return (double)p->rows * (row / (double)lanes + 40) + 1.2 * (double)(p->keys * p->depth);
}

bool hn_attention_lanes_plan(hn_attention *p, uint32_t threads) {
  const hn_attention_ops *o = hn_attention_find(p->isa);
  if (p->is_short && !p->direct) p->lane_cycles = short_cycles(p, (int64_t)o->lanes);
  if (!o || !o->head || !hn_transpose_find(p->isa) || p->ends || p->begins || p->keys > MOST_KEYS ||
      p->block < p->keys || p->rows < 1)
    return false;
  int64_t turned = 0;
  for (uint32_t i = 0; i < p->n_masks; i++) {
    const hn_attention_mask *m = &p->mask[i];
    if (m->row == 0) continue;
    if (m->kind != HN_MASK_ADD || m->col != 1) return false;
    turned++;
  }
  const int64_t lanes = (int64_t)o->lanes;
  const double here = cycles(p, lanes);
  if (here > (p->lane_cycles > 0 ? p->lane_cycles : packed_cycles(p, lanes))) return false;
  p->lane_cycles = here;
  p->part_rows = lanes;
  hn_attention_divide(p, threads);
  p->q_at = 0;
  p->weight_at = p->depth * lanes;
  p->score_at = p->weight_at + p->keys * lanes;
  p->c_at = p->score_at + turned * p->keys * lanes;
  p->top_at = p->c_at + p->depth_v * lanes;
  return true;
}

/* n rows of `columns` into lanes; what lanes are left is 0. */
static void to_lanes(const hn_attention_job *j, float *to, const float *x, int64_t row, int64_t n,
                     int64_t columns) {
  const int64_t lanes = (int64_t)j->ops->lanes;
  if (n < lanes) memset(to, 0, (size_t)(columns * lanes) * sizeof *to);
  j->transpose->matrix[2](to, (ptrdiff_t)lanes, x, (ptrdiff_t)row, (size_t)n, (size_t)columns);
}

void hn_attention_lanes_task(void *job, int64_t index, uint32_t thread) {
  const hn_attention_job *j = job;
  const hn_attention *p = j->p;
  const hn_attention_task t = hn_attention_task_at(j, index);
  const int64_t lanes = (int64_t)j->ops->lanes;
  float *own = j->workspace + (int64_t)thread * p->thread_floats;
  hn_attention_head h = {.q = own + p->q_at,
                         .k = t.k,
                         .v = t.v,
                         .k_row = (ptrdiff_t)p->k_row,
                         .k_col = (ptrdiff_t)p->k_col,
                         .v_row = (ptrdiff_t)p->v_row,
                         .keys = (size_t)p->keys,
                         .depth = (size_t)p->depth,
                         .depth_v = (size_t)p->depth_v,
                         .scale = p->scale,
                         .nan_to_zero = p->nan_to_zero,
                         .n_masks = p->n_masks,
                         .weights = own + p->weight_at,
                         .y = own + p->c_at};
  for (int64_t r = t.first, n; r < t.end; r += n) {
    n = t.end - r < lanes ? t.end - r : lanes;
    to_lanes(j, own + p->q_at, (const float *)t.q + r * p->q_row, p->q_row, n, p->depth);
    float *mask = own + p->score_at;
    for (uint32_t i = 0; i < p->n_masks; i++) {
      const hn_attention_mask *m = &p->mask[i];
      h.in_lanes[i] = m->row != 0;
      h.mask[i] = (hn_mask_row){m->kind, t.mask[i], (ptrdiff_t)m->col, m->value};
      if (m->row == 0) continue;
      const int64_t from = HN_FAULT("attention_lanes_mask") ? 0 : r;
      to_lanes(j, mask, (const float *)t.mask[i] + from * m->row, m->row, n, p->keys);
      h.mask[i].at = mask;
      mask += p->keys * lanes;
    }
    j->ops->head(&h);
    j->transpose->matrix[2]((float *)t.y + r * p->y_row, (ptrdiff_t)p->y_row, h.y, (ptrdiff_t)lanes,
                            (size_t)p->depth_v, (size_t)n);
  }
}
