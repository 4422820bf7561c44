#include "backends/cpu/recurrent/byte_rows.h"

#include <math.h>
#include <string.h>

#include "base/fault.h"
#include "base/integers.h"
#include "base/wide.h"

enum { BLOCK = 16, MIDDLE = 128 };

static int64_t row_of(int64_t k) { return hn_fill_up(k, 64); }

size_t hn_byte_rows_scratch(int64_t k) {
  return (size_t)(HN_BYTE_ROWS * row_of(k) / 4 + 3 * HN_BYTE_ROWS); /* codes; scales, sums and shifts */
}

/* ---- 8 bits */

hn_byte_ops hn_byte_ops_of(hn_isa isa) {
  return (hn_byte_ops){hn_reduce_find(isa), hn_quantize_find(isa), hn_coded_int8_find(isa)};
}

hn_byte_range hn_byte_range_of(const hn_byte_ops *o, const float *x, int64_t n) {
  enum { SOME = 4096 }; /* read twice, the second time from L1 */
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; i += SOME) {
    const int64_t some = hn_min(SOME, n - i);
    const float low = o->reduce->row[HN_REDUCE_MIN](x + i, (size_t)some),
                high = o->reduce->row[HN_REDUCE_MAX](x + i, (size_t)some);
    least = fminf(least, low), most = fmaxf(most, high);
    for (int64_t k = i; k < i + some && isnan(low); k++) {
      if (x[k] < least) least = x[k];
      if (x[k] > most) most = x[k];
    }
  }
  /* The formulas of ONNX, in its order. */
  hn_byte_range r = {.scale = (most - least) / 255};
  if (r.scale == 0) r.scale = 1; /* all zero: any scale will do */
  r.zero = HN_FAULT("byte_rows_zero") ? 0 : rintf(fminf(fmaxf(0 - least / r.scale, 0), 255));
  return r;
}

void hn_byte_round(const hn_byte_ops *o, const hn_byte_range *r, float by, const float *from, int64_t n,
                   uint8_t *codes, float *to) {
  o->quantize->quantize(codes, from, (size_t)n, &r->scale, &r->zero, false, false);
  o->quantize->dequantize(to, codes, (size_t)n, &by, &r->zero, false, false);
}

/* ---- products */

/* Bytes in words: sums of neighbours stay in fields of 16 bits for MANY vectors. */
#define LOW 0x00ff00ff00ff00ffu
#define TURN 0x8080808080808080u
enum { MANY = 64 };
typedef uint64_t words __attribute__((vector_size(64)));
typedef uint64_t pairs __attribute__((vector_size(BLOCK)));

/* Of four fields of 16 bits. */
HN_WIDE_BODY uint32_t fields(uint64_t sums) {
  sums = (sums & 0x0000ffff0000ffffu) + (sums >> 16 & 0x0000ffff0000ffffu);
  return (uint32_t)sums + (uint32_t)(sums >> 32);
}

/* Unsigned codes become signed ones, in place; their sum. n: of whole blocks. */
HN_WIDE_BODY int32_t turn_body(uint8_t *at, int64_t n) {
  const int32_t middle = MIDDLE * (int32_t)n;
  uint32_t sum = 0;
  words w;
  pairs p;
  while (n >= (int64_t)sizeof w) {
    words all = {0};
    for (int i = 0; i < MANY && n >= (int64_t)sizeof w; i++, at += sizeof w, n -= (int64_t)sizeof w) {
      memcpy(&w, at, sizeof w);
      all += (w & LOW) + (w >> 8 & LOW);
      w ^= TURN;
      memcpy(at, &w, sizeof w);
    }
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++) sum += fields(all[i]);
  }
  for (; n > 0; at += sizeof p, n -= (int64_t)sizeof p) {
    memcpy(&p, at, sizeof p);
    const pairs all = (p & LOW) + (p >> 8 & LOW);
    sum += fields(all[0]) + fields(all[1]);
    p ^= TURN;
    memcpy(at, &p, sizeof p);
  }
  return (int32_t)sum - middle;
}
HN_WIDE(int32_t, turn, turn_body, (uint8_t * at, int64_t n), (at, n))

/* What lies in scratch. Shifts: what a signed code of 0 stands for. */
typedef struct places {
  int8_t *numbers;
  float *scale;
  int32_t *shift, *sum;
} places;

static places places_of(const hn_coded *w, float *scratch) {
  float *scale = scratch + HN_BYTE_ROWS * row_of((int64_t)w->block) / 4;
  int32_t *ints = (int32_t *)(void *)(scale + HN_BYTE_ROWS);
  return (places){(int8_t *)(void *)scratch, scale, ints, ints + HN_BYTE_ROWS};
}

void hn_byte_rows_bring(const hn_byte_ops *o, const hn_byte_weights *w, const float *const *from,
                        const hn_byte_range *range, int64_t k, uint32_t rows, float *scratch) {
  const int64_t block = (int64_t)w->w.block;
  const places p = places_of(&w->w, scratch);
  for (uint32_t i = 0; i < rows; i++) {
    uint8_t *to = (uint8_t *)p.numbers + i * block;
    const hn_byte_range *r = &range[i];
    o->quantize->quantize(to, from[i], (size_t)k, &r->scale, &r->zero, false, false);
    memset(to + k, MIDDLE, (size_t)(block - k)); /* 0, as a signed one */
    p.sum[i] = turn(to, block);
    p.scale[i] = r->scale;
    p.shift[i] = MIDDLE - (int32_t)r->zero;
  }
}

void hn_byte_rows_add(const hn_byte_ops *o, const hn_byte_weights *w, uint32_t rows, int64_t n0, int64_t n1,
                      const float *const *base, float *const *to, float *scratch) {
  const places p = places_of(&w->w, scratch);
  hn_coded_end end[HN_BYTE_ROWS];
  for (uint32_t i = 0; i < rows; i++) end[i] = (hn_coded_end){to[i], base[i], p.shift[i]};
  const hn_coded_rows a = {p.numbers, p.scale, p.sum, end, w->sums};
  o->coded->product(&w->w, &a, rows, (size_t)n0, (size_t)n1, NULL, 0);
}
