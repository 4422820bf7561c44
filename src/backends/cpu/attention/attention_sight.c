/* What masks that come with the run hide. A prompt's mask hides half of all keys, and a text that is shorter
 * than others of its batch hides its end; nobody knows before. A mask costs a load a score, the two products
 * that it saves 2 x depth multiply-adds.
 *
 * A score is at most b = |scale| |q| max |k|, so a key whose mask is m gets at most m + b, and the row's
 * largest score is at least M - b, where M is the row's largest mask: below a limit of M - 2 b - 110 a weight
 * is exp of less than -104, which is 0 in f32. That holds for minus infinity, for the lowest number and for
 * -10000 alike, and for rows that see nothing no key is below the limit. Queries or keys that are no numbers
 * make b none, and everything is seen. Values are not looked at: one that is no number behind a key that is
 * hidden is not multiplied by its weight of 0, so it makes no result NaN. Of two
 * masks the first sum is rounded by no more than the score, so that scores count twice; of three it may be
 * rounded by more, and nothing is hidden. */
#include <math.h>

#include "backends/cpu/attention/attention_driver.h"
#include "base/fault.h"
#include "base/integers.h"

/* Fewer panels of keys than this are not worth a look. */
enum { FEW_PANELS = 4 };

int64_t hn_attention_sight_plan(hn_attention *p, int64_t at) {
  p->looks = !p->heads && !p->parts && !p->direct && !p->in_lanes && p->n_masks > 0 && p->n_masks <= 2 &&
             (p->k_col == 1 || p->depth == 1 || p->k_row == 1) &&
             p->keys >= FEW_PANELS * (int64_t)hn_gemm_find(p->isa)->nr && p->keys <= INT32_MAX;
  p->sight_at = at;
  if (!p->looks) return at;
  const int64_t parts = hn_div_up(p->chunk_rows, p->part_rows ? p->part_rows : 1);
  return at + hn_fill_up(parts * (int64_t)(sizeof(hn_attention_sight) / sizeof(float)), 16);
}

static double length(const hn_attention_job *j, const float *x, int64_t n) {
  float square;
  j->ops->dots(&square, 1, x, n, 1, x, n, 1, (size_t)n);
  return sqrt((double)square);
}

/* At least the length of the longest key; none where one of them is infinite or no number. */
static double longest(const hn_attention_job *j, const float *k) {
  const hn_attention *p = j->p;
  double most = 0, odd = 0, sum = 0;
  const bool rows = p->k_col == 1 || p->depth == 1;
  for (int64_t i = 0; i < p->keys && rows; i++) {
    const double l = length(j, k + i * p->k_row, p->depth);
    most = l > most ? l : most;
    odd += 0 * l;
  }
  if (rows) return most + odd;
  /* Keys that lie as columns: of all of them together. */
  for (int64_t d = 0; d < p->depth; d++) {
    const double l = length(j, k + d * p->k_col, p->keys);
    sum += l * l;
  }
  return sqrt(sum) + 0 * sum;
}

/* The sight of rows [first, end), where scores are at most `far` times a query's length; below 0: as if they
 * were 0. */
static hn_attention_sight part_sight(const hn_attention_job *j, const hn_attention_task *t, int64_t first,
                                     int64_t end, double far) {
  const hn_attention *p = j->p;
  const double rounding = 1.0 / (1 << 22);
  int64_t low = p->keys, high = 0, least, furthest, none;
  hn_attention_places(p, first, &least, &none);
  hn_attention_places(p, end - 1, &none, &furthest);
  /* Until the rows so far see everything: nothing is hidden from the first row of most. */
  for (int64_t r = end - 1; r >= first && !(low <= least && high >= furthest); r--) {
    int64_t from, last;
    hn_attention_places(p, r, &from, &last);
    if (from >= last) continue;
    hn_mask_row m[HN_ATTENTION_MASKS];
    hn_attention_mask_rows(p, t, r, from, m);
    const size_t n = (size_t)(last - from);
    const double most = j->ops->most(n, m, p->n_masks);
    double bound = 0;
    if (far >= 0 || far != far) {
      bound = far * length(j, (const float *)t->q + r * p->q_row, p->depth) * 1.001;
      /* Scores that Tanh bends: |cap tanh(s)| is at most |cap| and at most |cap s|. */
      if (p->cap != 0) bound = fabs((double)p->cap) * (bound > 1 ? 1 : bound) + 0 * bound;
    }
    const double gap =
        (110 + (p->n_masks > 1 ? 4 : 2) * bound + 2 * rounding * fabs(most)) * (1 + 2 * rounding);
    size_t a, b;
    j->ops->within(n, (float)(most - gap), m, p->n_masks, &a, &b);
    if (HN_FAULT("attention_sight") && b > a + 1 && (int64_t)b < last - from) b = a + (b - a) / 2;
    if (from + (int64_t)a < low) low = from + (int64_t)a;
    if (from + (int64_t)b > high) high = from + (int64_t)b;
  }
  return high > low ? (hn_attention_sight){(int32_t)low, (int32_t)high}
                    : (hn_attention_sight){0, (int32_t)p->keys};
}

void hn_attention_look(const hn_attention_job *j, const hn_attention_task *t, hn_attention_sight *sight) {
  const hn_attention *p = j->p;
  double far = -1; /* what is hidden then, if anything, is worth the keys' lengths */
  for (int64_t r = t->first, i = 0; r < t->end; r += p->part_rows, i++) {
    const int64_t end = t->end - r < p->part_rows ? t->end : r + p->part_rows;
    sight[i] = part_sight(j, t, r, end, far);
    if (far >= 0 || far != far) continue;
    int64_t from, last, none;
    hn_attention_places(p, r, &from, &none);
    hn_attention_places(p, end - 1, &none, &last);
    if (sight[i].from <= from && sight[i].end >= last) continue;
    far = fabs((double)p->scale) * longest(j, t->k);
    sight[i] = part_sight(j, t, r, end, far);
  }
}
