#include "backends/cpu/recurrent/byte_parts.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"
#include "base/wide.h"

enum {
  BLOCK = 16,
  EACH = 3,
  PARTS = EACH * HN_BYTE_PARTS_ROWS,
  COLUMNS = 64,
  NEAR = 4096 /* floats that stay in L1 */
};

static int64_t row_of(int64_t k) { return hn_fill_up(k, 64); }

size_t hn_byte_parts_scratch(int64_t k) {
  /* a row, its numbers, scales and sums, what they come to */
  return (size_t)(row_of(k) + PARTS * row_of(k) / 4 + 2 * PARTS + hn_max(NEAR, PARTS * COLUMNS));
}

typedef float floats __attribute__((vector_size(BLOCK * sizeof(float))));
typedef int8_t bytes __attribute__((vector_size(BLOCK)));

/* What numbers leave of a row of whole blocks. Halves, as the largest number times its scale may be infinite.
 */
HN_WIDE_BODY void leave_body(float *row, const int8_t *numbers, float scale, int64_t n) {
  floats x;
  bytes b;
  for (int64_t i = 0; i < n; i += BLOCK) {
    memcpy(&x, row + i, sizeof x), memcpy(&b, numbers + i, sizeof b);
    x = 0.5f * x - 0.5f * scale * __builtin_convertvector(b, floats);
    x += x;
    memcpy(row + i, &x, sizeof x);
  }
}
HN_WIDE(void, leave, leave_body, (float *row, const int8_t *numbers, float scale, int64_t n),
        (row, numbers, scale, n))

/* to += the parts, `apart` floats from one to the next. */
HN_WIDE_BODY void add_body(float *to, const float *part, int64_t apart, int64_t n) {
  floats x, y;
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) {
    memcpy(&x, to + i, sizeof x);
    for (int k = EACH - 1; k >= 0; k--) memcpy(&y, part + k * apart + i, sizeof y), x += y;
    memcpy(to + i, &x, sizeof x);
  }
  for (; i < n; i++)
    for (int k = EACH - 1; k >= 0; k--) to[i] += part[k * apart + i];
}
HN_WIDE(void, add, add_body, (float *to, const float *part, int64_t apart, int64_t n), (to, part, apart, n))

/* What lies in scratch behind a row's floats. */
typedef struct places {
  int8_t *numbers;
  float *scale, *y;
  int32_t *sum;
} places;

static places places_of(const hn_coded *w, float *scratch) {
  const int64_t row = row_of((int64_t)w->block);
  float *scale = scratch + row + PARTS * row / 4;
  return (places){(int8_t *)(scratch + row), scale, scale + 2 * PARTS, (int32_t *)(void *)(scale + PARTS)};
}

void hn_byte_parts_bring(const hn_coded *w, hn_isa isa, const float *const *from, int64_t k, uint32_t rows,
                         float *scratch) {
  const hn_coded_int8_ops *ops = hn_coded_int8_find(isa);
  const int64_t block = (int64_t)w->block;
  const places p = places_of(w, scratch);
  for (uint32_t i = 0; i < rows; i++) {
    memcpy(scratch, from[i], (size_t)k * sizeof *scratch);
    memset(scratch + k, 0, (size_t)(block - k) * sizeof *scratch);
    for (int64_t part = 0, at = EACH * i; part < EACH; part++, at++) {
      if (part) leave(scratch, p.numbers + (at - 1) * block, p.scale[at - 1], block);
      ops->narrow(w, scratch, p.numbers + at * block, &p.scale[at], &p.sum[at]);
    }
    if (HN_FAULT("byte_parts_second")) p.scale[EACH * i + 1] = 0;
  }
}

void hn_byte_parts_add(const hn_coded *w, hn_isa isa, uint32_t rows, int64_t n0, int64_t n1, float *const *to,
                       float *scratch) {
  const hn_coded_int8_ops *ops = hn_coded_int8_find(isa);
  const int64_t some = hn_max(NEAR / (EACH * hn_max(rows, 1)) / COLUMNS, 1) * COLUMNS;
  const places p = places_of(w, scratch);
  const hn_coded_rows a = {p.numbers, p.scale, p.sum};
  for (int64_t n = n0; n < n1; n += some) {
    const int64_t end = hn_min(n + some, n1);
    for (uint32_t i = 0; i < rows; i++)
      for (int64_t c = n; c < end; c += BLOCK) __builtin_prefetch(to[i] + c, 1, 3);
    ops->product(w, &a, EACH * rows, (size_t)n, (size_t)end, p.y, some);
    for (uint32_t i = 0; i < rows; i++) add(to[i] + n, p.y + EACH * i * some, some, end - n);
  }
}
