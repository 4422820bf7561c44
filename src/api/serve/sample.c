/* The next token. Numbers are drawn from the sequence's seed and how many tokens it has: what else runs
 * beside it changes nothing. */
#include "api/serve/generate.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

enum { FIRST_CUT = 64, FARTHEST = 40 }; /* e^-40: what is less probable by so much is never drawn */

static bool before(const hn_candidate *a, const hn_candidate *b) {
  return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

static int by_logit(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a) ? 1 : 0; }

/* Numbers alone; the most probable one is *best. */
static uint32_t take_numbers(const float *logits, uint32_t n, hn_candidate *out, hn_candidate *best) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (isnan(logits[i]) || logits[i] == -INFINITY) continue;
    const hn_candidate c = {logits[i], i, 0};
    if (!count || before(&c, best)) *best = c;
    if (out) out[count] = c;
    count++;
  }
  return count;
}

static void sink(hn_candidate *heap, uint32_t n, uint32_t at) {
  for (;;) {
    uint32_t worst = at, left = 2 * at + 1;
    for (uint32_t k = left; k < n && k < left + 2; k++)
      if (before(&heap[worst], &heap[k])) worst = k;
    if (worst == at) return;
    const hn_candidate c = heap[at];
    heap[at] = heap[worst], heap[worst] = c;
    at = worst;
  }
}

/* The `k` most probable ones of all to the front, in their order: the least of those so far lies at the top
 * of a heap, and leaves it for a better one. */
static void cut(hn_candidate *c, uint32_t n, uint32_t k) {
  if (k < n) {
    for (uint32_t i = k / 2; i-- > 0;) sink(c, k, i);
    for (uint32_t i = k; i < n; i++) {
      if (!before(&c[i], &c[0])) continue;
      const hn_candidate worst = c[0];
      c[0] = c[i], c[i] = worst;
      sink(c, k, 0);
    }
  }
  qsort(c, k < n ? k : n, sizeof *c, by_logit);
}

/* Drops those that are too improbable to matter. */
static uint32_t drop(hn_candidate *c, uint32_t n, float top, float temperature) {
  const double least = (double)top - FARTHEST * (double)temperature;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++)
    if ((double)c[i].logit >= least) c[kept++] = c[i];
  return kept;
}

static void weigh(hn_candidate *c, uint32_t n, float top, float temperature) {
  for (uint32_t i = 0; i < n; i++)
    c[i].weight = c[i].logit == top ? 1 : exp(((double)c[i].logit - (double)top) / (double)temperature);
}

/* How many of the first make up `part` of all: they are brought to the front, more and more of them. */
static uint32_t nucleus(hn_candidate *c, uint32_t n, const hn_sampling *how, bool sorted) {
  double all = 0;
  for (uint32_t i = 0; i < n; i++) all += c[i].weight;
  for (uint32_t k = sorted || n < FIRST_CUT ? n : FIRST_CUT;; k = k > n / 8 ? n : 8 * k) {
    double sum = 0;
    if (!sorted) cut(c, n, k);
    for (uint32_t i = 0; i < k; i++) {
      sum += c[i].weight;
      if (sum >= (double)how->top_p * all) return i + 1;
    }
    if (k == n) return n;
  }
}

int64_t hn_sample(const float *logits, uint32_t n, const hn_sampling *how, uint32_t at, hn_candidate *room) {
  hn_candidate best = {0};
  const bool greedy = !(how->temperature > 0) || how->top_k == 1;
  uint32_t count = take_numbers(logits, n, greedy ? NULL : room, &best);
  if (!count) return -1;
  if (greedy || best.logit == INFINITY) return best.id;
  count = drop(room, count, best.logit, how->temperature);
  const bool some = how->top_k && how->top_k < count;
  if (some) cut(room, count, how->top_k), count = how->top_k;
  weigh(room, count, best.logit, how->temperature);
  if (how->top_p < 1) count = nucleus(room, count, how, some);
  double all = 0, sum = 0;
  for (uint32_t i = 0; i < count; i++) all += room[i].weight;
  hn_rng r = {hn_rng_mix(how->seed) + at * HN_RNG_STEP};
  const double u = hn_rng_unit(&r) * all;
  for (uint32_t i = 0; i < count; i++) {
    sum += room[i].weight;
    if (u < sum) return room[i].id;
  }
  return room[count - 1].id;
}
