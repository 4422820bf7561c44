/* The best of many keys, in order: the k-th largest is found by histograms over ever smaller ranges, what is
 * not below it is collected, and only that is sorted, by digits. */
#include "model/ops/search/best.h"

#include "base/fault.h"

#include <string.h>

enum {
  FEW = 16,   /* results that are kept in order while keys come */
  DIGIT = 8,  /* bits */
  FINE = 11,  /* bits of a histogram's buckets of many keys */
  COARSE = 6, /* of few */
  MANY = 1 << 11
};

int64_t hn_best_spare(int64_t n, int64_t k) { return n > 3 * k ? n : 3 * k; }

/* How far a key lies below the largest one; keys are anywhere in i64, so this is no signed difference. */
static uint64_t below(int64_t top, int64_t key) { return (uint64_t)top - (uint64_t)key; }

static int bits_of(uint64_t v) { return v ? 64 - __builtin_clzll(v) : 0; }

static void insert(int64_t *index, const int64_t *key, int64_t n, int64_t k) {
  int64_t have = 0;
  for (int64_t i = 0; i < n; i++) {
    if (have == k && key[i] <= key[index[k - 1]]) continue;
    int64_t at = have < k ? have++ : k - 1;
    for (; at > 0 && key[index[at - 1]] < key[i]; at--) index[at] = index[at - 1];
    index[at] = i;
  }
}

/* The k-th largest of key[n], 1 <= k <= n. */
static int64_t kth(const int64_t *key, int64_t n, int64_t k, int64_t *spare) {
  int64_t count[1 << FINE], low = key[0], top = key[0];
  for (int64_t i = 1; i < n; i++) {
    low = key[i] < low ? key[i] : low;
    top = key[i] > top ? key[i] : top;
  }
  while (low < top) {
    const int most = n < MANY ? COARSE : FINE, bits = bits_of(below(top, low)),
              shift = bits > most ? bits - most : 0;
    memset(count, 0, sizeof *count << most);
    for (int64_t i = 0; i < n; i++) count[below(top, key[i]) >> shift]++;
    uint64_t bucket = 0;
    while (count[bucket] < k) k -= count[bucket++];
    if (!shift) return (int64_t)((uint64_t)top - bucket);
    const int64_t from = top;
    int64_t m = 0;
    low = INT64_MAX, top = INT64_MIN;
    for (int64_t i = 0; i < n; i++) { /* may be the spare itself: what is written has been read */
      const int64_t v = key[i];
      if (below(from, v) >> shift != bucket) continue;
      spare[m++] = v;
      low = v < low ? v : low;
      top = v > top ? v : top;
    }
    key = spare, n = m;
  }
  return top;
}

/* The places of the k largest keys as they come, where least is the k-th largest. */
static void collect(int64_t *index, const int64_t *key, int64_t n, int64_t k, int64_t least) {
  int64_t above = 0, at = 0;
  for (int64_t i = 0; i < n; i++) above += key[i] > least;
  int64_t equal = k - above; /* the first of them are taken */
  for (int64_t i = 0; at < k; i++) {
    const int64_t same = (key[i] == least) & (equal > 0);
    index[at] = i;
    at += (key[i] > least) | same;
    equal -= HN_FAULT("best_ties") ? 0 : same;
  }
}

/* Sorts index[k], which rises, by keys that fall; digits in which no two keys differ cost nothing. */
static void sort(int64_t *index, const int64_t *key, int64_t k, int64_t *spare) {
  int64_t *from = index, *to = spare + 2 * k, top = key[index[0]];
  uint64_t *v = (uint64_t *)spare, *w = v + k, differ = 0;
  for (int64_t i = 1; i < k; i++) top = key[index[i]] > top ? key[index[i]] : top;
  for (int64_t i = 0; i < k; i++) differ |= v[i] = below(top, key[index[i]]);
  const int end = bits_of(differ);
  for (int shift = differ ? __builtin_ctzll(differ) : 0; shift < end; shift += DIGIT) {
    int64_t first[1 << DIGIT] = {0}, at = 0;
    for (int64_t i = 0; i < k; i++) first[v[i] >> shift & ((1 << DIGIT) - 1)]++;
    for (int d = 0; d < 1 << DIGIT; d++) {
      const int64_t n = first[d];
      first[d] = at, at += n;
    }
    for (int64_t i = 0; i < k; i++) {
      const int64_t place = first[v[i] >> shift & ((1 << DIGIT) - 1)]++;
      w[place] = v[i], to[place] = from[i];
    }
    uint64_t *const u = v;
    v = w, w = u;
    int64_t *const t = from;
    from = to, to = t;
  }
  if (from != index) memcpy(index, from, (size_t)k * sizeof *index);
}

void hn_best(int64_t *index, const int64_t *key, int64_t n, int64_t k, int64_t *spare) {
  if (k <= 0) return;
  if (k <= FEW) return insert(index, key, n, k);
  if (k < n)
    collect(index, key, n, k, kth(key, n, k, spare));
  else
    for (int64_t i = 0; i < n; i++) index[i] = i;
  sort(index, key, k, spare);
}
