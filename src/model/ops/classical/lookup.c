#include "model/ops/classical/lookup.h"

#include <stdlib.h>

#include "model/ops/common/bulk.h"

/* A key, and where it stands in its list. */
typedef struct hn_lookup_key {
  hone_string text;
  double real;
  int64_t whole, at;
} key;

static key key_of(const hone_tensor *t, int64_t i) {
  key k = {.at = i};
  if (t->desc.dtype == HONE_DTYPE_STRING)
    k.text = ((const hone_string *)t->data)[i];
  else if (hone_dtype_is_float(t->desc.dtype))
    k.real = hn_get_f64(t, i);
  else
    k.whole = hn_get_i64(t, i);
  return k;
}

static int compare_text(hone_string a, hone_string b) {
  const size_t n = a.len < b.len ? a.len : b.len;
  const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
  return c ? c : (a.len > b.len) - (a.len < b.len);
}

/* NaN behind all numbers. */
static int compare(const key *a, const key *b) {
  const int text = compare_text(a->text, b->text);
  if (text) return text;
  if (a->whole != b->whole) return a->whole < b->whole ? -1 : 1;
  if (isnan(a->real) || isnan(b->real)) return (int)isnan(a->real) - (int)isnan(b->real);
  return (a->real > b->real) - (a->real < b->real);
}

static int by_key(const void *a, const void *b) {
  const key *x = a, *y = b;
  const int c = compare(x, y);
  return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* The place of the last key that equals k; -1: none. */
static int64_t find(const key *keys, int64_t n, const key *k) {
  int64_t first = 0, end = n;
  while (first < end) {
    const int64_t middle = first + (end - first) / 2;
    if (compare(&keys[middle], k) <= 0)
      first = middle + 1;
    else
      end = middle;
  }
  return first && compare(&keys[first - 1], k) == 0 ? keys[first - 1].at : -1;
}

hone_status hn_lookup_make(hone_call *call, const hone_tensor *keys, hn_lookup *out, hone_error *error) {
  *out = (hn_lookup){hn_scratch(call, hn_count(keys), sizeof *out->keys, error), hn_count(keys)};
  if (!out->keys) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < out->n; i++) out->keys[i] = key_of(keys, i);
  qsort(out->keys, (size_t)out->n, sizeof *out->keys, by_key);
  return HONE_OK;
}

int64_t hn_lookup_find(const hn_lookup *l, const hone_tensor *x, int64_t i) {
  const key k = key_of(x, i);
  return find(l->keys, l->n, &k);
}
