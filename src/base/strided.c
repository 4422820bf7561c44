#include "base/strided.h"

#include <string.h>

int64_t hn_strided_bytes(const hone_tensor_desc *d) {
  const int64_t n = hone_desc_count(d);
  int64_t last = 0, bytes;
  if (n <= 0) return n;
  for (int32_t i = 0; i < d->rank; i++) {
    int64_t reach;
    if (d->stride[i] < 0 && d->dim[i] > 1) return -1;
    if (d->dim[i] == 1) continue;
    if (__builtin_mul_overflow(d->dim[i] - 1, d->stride[i], &reach)) return -1;
    if (__builtin_add_overflow(last, reach, &last)) return -1;
  }
  if (__builtin_add_overflow(last, 1, &last)) return -1;
  return __builtin_mul_overflow(last, (int64_t)hone_dtype_size(d->dtype), &bytes) ? -1 : bytes;
}

int64_t hn_strided_memory(const hone_tensor_desc *d) {
  const int64_t bytes = hone_desc_bytes(d), reach = hn_strided_bytes(d);
  return reach > bytes ? reach : bytes;
}

bool hn_strided_shares(const hone_tensor_desc *d) {
  int64_t reach = 0; /* of the dimensions with smaller strides */
  bool seen[HONE_MAX_RANK] = {0};
  if (hone_desc_count(d) <= 1) return false;
  for (int32_t k = 0; k < d->rank; k++) {
    int32_t least = -1;
    for (int32_t i = 0; i < d->rank; i++)
      if (!seen[i] && (least < 0 || d->stride[i] < d->stride[least])) least = i;
    seen[least] = true;
    if (d->dim[least] == 1) continue;
    if (d->stride[least] <= reach) return true;
    reach += (d->dim[least] - 1) * d->stride[least];
  }
  return false;
}

bool hn_strided_dense(const hone_tensor_desc *d) {
  int64_t step = 1;
  if (hone_desc_count(d) <= 1) return true;
  for (int32_t i = d->rank - 1; i >= 0; i--) {
    if (d->dim[i] != 1 && d->stride[i] != step) return false;
    step *= d->dim[i];
  }
  return true;
}

/* Dimensions in which both go on where the next one ends are one; those of size 1 are none. */
typedef struct walk {
  int32_t rank;
  int64_t dim[HONE_MAX_RANK], a[HONE_MAX_RANK], b[HONE_MAX_RANK];
} walk;

static walk merged(const hone_tensor_desc *from, const hone_tensor_desc *to) {
  walk w = {0};
  for (int32_t i = 0; i < from->rank; i++) {
    const int64_t n = from->dim[i], a = from->stride[i], b = to->stride[i];
    const int32_t last = w.rank - 1;
    if (n == 1) continue;
    if (last >= 0 && w.a[last] == a * n && w.b[last] == b * n) {
      w.dim[last] *= n;
      w.a[last] = a;
      w.b[last] = b;
      continue;
    }
    w.dim[w.rank] = n;
    w.a[w.rank] = a;
    w.b[w.rank++] = b;
  }
  if (w.rank) return w;
  return (walk){1, {1}, {1}, {1}};
}

#define ROW(type)                                                                                            \
  for (int64_t i = 0; i < n; i++) ((type *)to)[i * b] = ((const type *)from)[i * a]

static void copy_row(char *to, const char *from, int64_t n, int64_t a, int64_t b, size_t size) {
  if (a == 1 && b == 1) {
    memcpy(to, from, (size_t)n * size);
    return;
  }
  switch (size) {
  case 1: ROW(uint8_t); return;
  case 2: ROW(uint16_t); return;
  case 4: ROW(uint32_t); return;
  case 8: ROW(uint64_t); return;
  default:
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)(i * b) * size, from + (size_t)(i * a) * size, size);
  }
}

void hn_strided_copy(const hone_tensor *from, const hone_tensor *to) {
  if (hone_desc_count(&from->desc) <= 0) return;
  const size_t size = hone_dtype_size(from->desc.dtype);
  const walk w = merged(&from->desc, &to->desc);
  const int32_t inner = w.rank - 1;
  int64_t index[HONE_MAX_RANK] = {0}, a = 0, b = 0;
  for (int32_t d = inner; d >= 0;) {
    copy_row((char *)to->data + (size_t)b * size, (const char *)from->data + (size_t)a * size, w.dim[inner],
             w.a[inner], w.b[inner], size);
    for (d = inner - 1; d >= 0; d--) {
      a += w.a[d];
      b += w.b[d];
      if (++index[d] < w.dim[d]) break;
      a -= w.a[d] * w.dim[d];
      b -= w.b[d] * w.dim[d];
      index[d] = 0;
    }
  }
}
