/* The definition in C. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "base/fault.h"

enum { MR = 4 };

static void tile(const hn_int8_tile *t) {
  const float zero = HN_FAULT("int8_zero") ? 0 : (float)t->zero, lo = t->is_signed ? -128 : 0,
              hi = t->is_signed ? 127 : 255;
  for (uint32_t i = 0; i < t->m; i++) {
    uint32_t sum[HN_INT8_BLOCK];
    for (int j = 0; j < HN_INT8_BLOCK; j++) sum[j] = (uint32_t)t->bias[j];
    const int8_t *b = t->b;
    for (uint32_t s = 0; s < t->segments; s++) {
      const uint8_t *a = t->a + (ptrdiff_t)i * t->lda + (s ? t->segment_at[s] : 0);
      for (size_t k = HN_FAULT("int8_last_k") ? 4 : 0; k < t->k; k += 4, b += 64)
        for (int j = 0; j < HN_INT8_BLOCK; j++)
          for (int q = 0; q < 4; q++) sum[j] += (uint32_t)((int32_t)a[k + (size_t)q] * b[4 * j + q]);
    }
    for (int j = 0; t->row_sum && j < HN_INT8_BLOCK; j++)
      sum[j] += (uint32_t)t->row_sum[i] * (uint32_t)t->offset[j];
    unsigned char *c = (unsigned char *)t->c + (ptrdiff_t)i * t->ldc;
    if (t->whole) {
      memcpy(c, sum, (HN_FAULT("int8_whole_tail") ? t->n - 1 : t->n) * sizeof *sum);
      continue;
    }
    if (t->wide) {
      for (uint32_t j = 0; j < (HN_FAULT("int8_wide_tail") ? t->n - 1 : t->n); j++)
        ((float *)(void *)c)[j] = (float)(int32_t)sum[j] * t->scale[j];
      continue;
    }
    for (uint32_t j = 0; j < (HN_FAULT("int8_tail_mask") ? t->n - 1 : t->n); j++) {
      const float v = rintf((float)(int32_t)sum[j] * t->scale[j]) + zero, r = v < lo ? lo : v > hi ? hi : v;
      c[j] = t->is_signed ? (unsigned char)(int8_t)r : (unsigned char)r;
    }
  }
}

static void sum_rows(const hn_int8_rows *r) {
  for (int64_t i = 0; i < r->rows; i++) {
    uint32_t sum = 0;
    for (uint32_t s = 0; s < r->segments; s++) {
      const uint8_t *a = r->a + (ptrdiff_t)i * r->lda + (s ? r->segment_at[s] : 0);
      for (size_t k = HN_FAULT("int8_sum_rows") ? 1 : 0; k < r->k; k++) sum += a[k];
    }
    r->sums[i] = (int32_t)sum;
  }
}

static void operand(const hn_int8_operand *o) {
  for (size_t j = 0; j < (o->n + HN_INT8_BLOCK - 1) / HN_INT8_BLOCK * HN_INT8_BLOCK; j++) {
    int8_t *dst = o->dst + j / HN_INT8_BLOCK * HN_INT8_BLOCK * o->k_packed + j % HN_INT8_BLOCK * 4;
    const size_t last = HN_FAULT("int8_operand_tail") && o->n % HN_INT8_BLOCK ? o->n - 1 : o->n;
    o->sums[j] = 0;
    for (size_t k = 0; k < o->k_packed; k++) {
      const int8_t v =
          j < last && k < o->k ? (int8_t)(o->b[(ptrdiff_t)k * o->ldb + (ptrdiff_t)j] ^ o->turn) : 0;
      dst[k / 4 * 64 + k % 4] = v;
      o->sums[j] += v;
    }
  }
}

static void nothing(void) {}

static const hn_int8_ops ops = {.mr = MR,
                                .nr = 16,
                                .k_step = 4,
                                .whole_rows = 1,
                                .rate = 0.5,
                                .begin = nothing,
                                .end = nothing,
                                .tile = tile,
                                .sum_rows = sum_rows,
                                .operand = operand};
const struct hn_kernel hn_kernel_gemm_int8_scalar = {"gemm_int8_scalar", "gemm_int8", "u8s8", HN_ISA_SCALAR,
                                                     &ops};
