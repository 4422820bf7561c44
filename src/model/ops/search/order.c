/* Orders of elements, and a stable sort. */
#include "model/ops/search/order.h"

static int64_t key_of(double v) {
  if (v != v) return INT64_MAX;
  if (v == 0) return 0;
  uint64_t bits;
  memcpy(&bits, &v, 8);
  return bits >> 63 ? -(int64_t)(bits & INT64_MAX) : (int64_t)bits;
}

/* The same order in fewer bits. */
static int64_t key_of_f32(uint32_t bits) {
  const int64_t size = bits & 0x7fffffff, key = bits >> 31 ? -size : size;
  return size > 0x7f800000 ? HN_ORDER_NAN : key;
}

void hn_order_keys(int64_t *keys, const void *src, hone_dtype dtype, int64_t first, int64_t n) {
  enum { RUN = 256 };
  if (dtype == HONE_DTYPE_F32) {
    const uint32_t *bits = (const uint32_t *)src + first;
    for (int64_t i = 0; i < n; i++) keys[i] = key_of_f32(bits[i]);
    return;
  }
  double v[RUN];
  for (int64_t at = 0; hone_dtype_is_float(dtype) && at < n; at += RUN) {
    const int64_t some = n - at < RUN ? n - at : RUN;
    hn_read_f64(v, src, dtype, first + at, some);
    for (int64_t i = 0; i < some; i++) keys[at + i] = key_of(v[i]);
  }
  if (hone_dtype_is_float(dtype)) return;
  hn_read_i64(keys, src, dtype, first, n);
  if (dtype == HONE_DTYPE_U64)
    for (int64_t i = 0; i < n; i++) keys[i] ^= INT64_MIN;
}

/* Merges from[lo..mid) and from[mid..hi) into to[lo..hi). */
static void merge(const int64_t *from, int64_t *to, int64_t lo, int64_t mid, int64_t hi, hn_compare compare,
                  const void *context) {
  int64_t a = lo, b = mid;
  for (int64_t i = lo; i < hi; i++)
    to[i] = b >= hi || (a < mid && compare(context, from[a], from[b]) <= 0) ? from[a++] : from[b++];
}

void hn_sort(int64_t *index, int64_t *spare, int64_t n, hn_compare compare, const void *context) {
  int64_t *from = index, *to = spare;
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t lo = 0; lo < n; lo += 2 * width) {
      int64_t mid = lo + width < n ? lo + width : n, hi = lo + 2 * width < n ? lo + 2 * width : n;
      merge(from, to, lo, mid, hi, compare, context);
    }
    int64_t *t = from;
    from = to;
    to = t;
  }
  if (from != index) memcpy(index, from, (size_t)n * sizeof *index);
}

enum { FEW = 48, NARROW = 8, WIDE = 11 /* bits of a digit */ };

static void insert_keys(int64_t *keys, int64_t *index, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    const int64_t key = keys[i], at = index[i];
    int64_t k = i;
    for (; k > 0 && keys[k - 1] > key; k--) keys[k] = keys[k - 1], index[k] = index[k - 1];
    keys[k] = key, index[k] = at;
  }
}

/* What a sort by digits of so many bits costs: passes over the counters and, four times as dear, the keys. */
static int64_t cost(int digit, int64_t n, uint64_t span) {
  int64_t passes = 0;
  for (int shift = 0; shift < 64 && span >> shift; shift += digit) passes++;
  return passes * ((INT64_C(1) << digit) + 4 * n);
}

/* From the lowest digit up; digits above what the keys span need no pass. */
void hn_sort_keys(int64_t *keys, int64_t *index, int64_t *spare_keys, int64_t *spare, int64_t n) {
  if (n <= FEW) {
    insert_keys(keys, index, n);
    return;
  }
  int64_t least = keys[0], most = keys[0], *from = keys, *from_index = index, *to = spare_keys,
          *to_index = spare;
  for (int64_t i = 1; i < n; i++) {
    least = keys[i] < least ? keys[i] : least;
    most = keys[i] > most ? keys[i] : most;
  }
  const uint64_t base = (uint64_t)least, span = (uint64_t)most - base;
  const int digit = cost(NARROW, n, span) < cost(WIDE, n, span) ? NARROW : WIDE;
  const size_t values = (size_t)1 << digit;
  for (int shift = 0; shift < 64 && span >> shift; shift += digit) {
    int64_t place[1 << WIDE], sum = 0;
    memset(place, 0, values * sizeof *place);
    for (int64_t i = 0; i < n; i++) place[((uint64_t)from[i] - base) >> shift & (values - 1)]++;
    for (size_t v = 0; v < values; v++) {
      const int64_t count = place[v];
      place[v] = sum, sum += count;
    }
    for (int64_t i = 0; i < n; i++) {
      const int64_t at = place[((uint64_t)from[i] - base) >> shift & (values - 1)]++;
      to[at] = from[i], to_index[at] = from_index[i];
    }
    int64_t *t = from;
    from = to, to = t;
    t = from_index, from_index = to_index, to_index = t;
  }
  if (from == keys) return;
  memcpy(keys, from, (size_t)n * sizeof *keys);
  memcpy(index, from_index, (size_t)n * sizeof *index);
}
