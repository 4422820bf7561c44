#include "optimize/match/attention.h"

#include <math.h>
#include <string.h>

typedef enum sight { UNCLEAR = -1, HIDDEN, SEEN } sight;

/* Whether a constant mask lets a query see a key, as is, or not. What is about the least number is as good as
 * nothing; *finite: it is no infinity, which hides whatever else is added. */
static sight sees(int64_t kind, float value, const void *data, int64_t at, bool *finite) {
  enum { ADDED, KEEPS };
  float x = value;
  if (kind != ADDED) {
    const bool set = ((const uint8_t *)data)[at] != 0;
    if (set == (kind == KEEPS)) return SEEN;
    if (!(value < -1e30f)) return UNCLEAR;
  } else {
    memcpy(&x, (const char *)data + at * (int64_t)sizeof x, sizeof x); /* at any alignment */
    if (x == 0) return SEEN;
    if (!(value * x < -1e30f)) return UNCLEAR;
  }
  *finite = *finite || !isinf(x);
  return HIDDEN;
}

/* The keys [*from, *end) that a row of the mask shows. */
static bool shows(const hn_attention_hit *h, uint32_t mask, const char *data, int64_t row, int64_t *from,
                  int64_t *end, bool *finite) {
  const hone_tensor_desc *d = &h->in[HN_ATTENTION_MASK + mask].desc;
  const int64_t keys = d->dim[d->rank - 1], at = row * d->stride[d->rank - 2], step = d->stride[d->rank - 1];
  int64_t k = 0;
#define SEES(K) sees(h->mask_kind[mask], h->mask_value[mask], data, at + (K)*step, finite)
  while (k < keys && SEES(k) == HIDDEN) k++;
  *from = k;
  while (k < keys && SEES(k) == SEEN) k++;
  *end = k;
  while (k < keys && SEES(k) == HIDDEN) k++;
#undef SEES
  return k == keys && *from < *end;
}

bool hn_attention_band(const hn_attention_hit *h, uint32_t mask, int64_t band[2], bool *finite) {
  *finite = false;
  const hn_strided *v = &h->in[HN_ATTENTION_MASK + mask];
  const hone_tensor *t = v->base->producer ? NULL : v->base->constant;
  const int32_t n = v->desc.rank - 2;
  if (!t || !t->data) return false;
  for (int32_t i = 0; i < n; i++)
    if (v->desc.stride[i] && v->desc.dim[i] > 1) return false;
  const int64_t rows = v->desc.dim[n], keys = v->desc.dim[n + 1];
  const char *data =
      (const char *)t->data + v->offset * (t->desc.dtype == HONE_DTYPE_F32 ? (int64_t)sizeof(float) : 1);
  if (t->desc.dtype != (h->mask_kind[mask] ? HONE_DTYPE_BOOL : HONE_DTYPE_F32)) return false;
  int64_t low = -rows, high = keys, from, end;
  /* Where a row's begin or end lies inside, it says where those of all others lie. */
  for (int64_t r = 0; r < rows; r++) {
    if (!shows(h, mask, data, r, &from, &end, finite)) return false;
    if (from > 0 && low == -rows) low = from - r;
    if (end < keys && high == keys) high = end - r;
  }
  for (int64_t r = 0; r < rows; r++) {
    shows(h, mask, data, r, &from, &end, finite);
    if (from != (r + low > 0 ? r + low : 0) || end != (r + high < keys ? r + high : keys)) return false;
  }
  band[0] = low, band[1] = high;
  return true;
}
