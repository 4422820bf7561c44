/* Moving elements between strided places. */
#include "model/ops/common/move.h"

void hn_strides(const int64_t *dim, int32_t rank, int64_t *stride) {
  int64_t step = 1;
  for (int32_t i = rank - 1; i >= 0; i--) {
    stride[i] = step;
    if (__builtin_mul_overflow(step, dim[i], &step)) step = 0;
  }
}

int64_t hn_product(const int64_t *dim, int32_t from, int32_t to) {
  int64_t n = 1;
  for (int32_t i = from; i < to; i++)
    if (dim[i] == 0) return 0;
  for (int32_t i = from; i < to; i++)
    if (dim[i] < 0 || __builtin_mul_overflow(n, dim[i], &n)) return -1;
  return n;
}

#define STRIDED(T)                                                                                           \
  for (int64_t i = 0; i < n; i++) ((T *)dst)[i * ds] = ((const T *)src)[i * ss];                             \
  return

static void move_run(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, size_t size) {
  if (ds == 1 && ss == 1) {
    memcpy(dst, src, (size_t)n * size);
    return;
  }
  switch (size) {
  case 1: STRIDED(uint8_t);
  case 2: STRIDED(uint16_t);
  case 4: STRIDED(uint32_t);
  case 8: STRIDED(uint64_t);
  default:
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds * (int64_t)size, src + i * ss * (int64_t)size, size);
  }
}

void hn_move(void *dst, const int64_t *dst_stride, const void *src, const int64_t *src_stride,
             const int64_t *dim, int32_t rank, size_t size) {
  int64_t d[HN_MOVE_RANK], ds[HN_MOVE_RANK], ss[HN_MOVE_RANK], index[HN_MOVE_RANK] = {0};
  int32_t r = 0;
  for (int32_t i = 0; i < rank; i++) { /* drop ones, join dimensions that are one run on both sides */
    if (dim[i] == 0) return;
    if (dim[i] == 1) continue;
    if (r > 0 && ds[r - 1] == dst_stride[i] * dim[i] && ss[r - 1] == src_stride[i] * dim[i]) {
      d[r - 1] *= dim[i];
      ds[r - 1] = dst_stride[i];
      ss[r - 1] = src_stride[i];
      continue;
    }
    d[r] = dim[i], ds[r] = dst_stride[i], ss[r] = src_stride[i];
    r++;
  }
  if (r == 0) {
    memcpy(dst, src, size);
    return;
  }
  char *to = dst;
  const char *from = src;
  for (;;) {
    move_run(to, ds[r - 1], from, ss[r - 1], d[r - 1], size);
    int32_t i = r - 2;
    for (; i >= 0; i--) {
      to += ds[i] * (int64_t)size;
      from += ss[i] * (int64_t)size;
      if (++index[i] < d[i]) break;
      to -= ds[i] * d[i] * (int64_t)size;
      from -= ss[i] * d[i] * (int64_t)size;
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

void hn_expand(hone_tensor *dst, const hone_tensor_desc *sd, const void *src) {
  const hone_tensor_desc *dd = &dst->desc;
  int64_t to[HONE_MAX_RANK], from[HONE_MAX_RANK], own[HONE_MAX_RANK];
  hn_strides(dd->dim, dd->rank, to);
  hn_strides(sd->dim, sd->rank, own);
  for (int32_t i = 0; i < dd->rank; i++) {
    int32_t j = i - (dd->rank - sd->rank);
    from[i] = j < 0 || sd->dim[j] == 1 ? 0 : own[j];
  }
  hn_move(dst->data, to, src, from, dd->dim, dd->rank, hone_dtype_size(dd->dtype));
}

void hn_fill(void *dst, const void *value, int64_t n, size_t size) {
  enum { PIECE = 16384 }; /* that is copied over and over from the first-level cache */
  if (n <= 0) return;
  const size_t total = (size_t)n * size;
  if (size == 1 || !memcmp(value, (const char *)value + 1, size - 1)) { /* all bytes are the same */
    memset(dst, *(const unsigned char *)value, total);
    return;
  }
  memcpy(dst, value, size);
  for (size_t done = size, step; done < total; done += step) { /* what is copied is always whole elements */
    step = done < PIECE ? done : PIECE / size * size;
    if (step > total - done) step = total - done;
    memcpy((char *)dst + done, dst, step);
  }
}
