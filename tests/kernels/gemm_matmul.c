/* The matmul driver (batches, broadcasting, transposed operands, packed and unpacked B) over a gemm kernel.
 */
#include "conv_cases.h"
#include "gemm_matmul.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/product/matmul_driver.h"

typedef struct matmul_case {
  int64_t m, n, k, batch[2];
  int a_broadcast, b_broadcast; /* bit i: dimension i is 1 on that side */
  bool ta, tb, packed;
  float alpha;
  uint32_t threads, flags;
} matmul_case;

static void check_case(ck *c, hn_isa isa, const matmul_case *s, enum ck_fill fill, size_t l2) {
  ck_case(
      c,
      "matmul %lldx%lldx%lld batch %lldx%lld bc %d/%d trans %d%d packed %d alpha %g flags %u fill=%s l2=%zu",
      (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->batch[0], (long long)s->batch[1],
      s->a_broadcast, s->b_broadcast, s->ta, s->tb, s->packed, (double)s->alpha, s->flags, ck_fill_name(fill),
      l2);
  hn_matmul p = {
      .isa = isa, .m = s->m, .n = s->n, .k = s->k, .alpha = s->alpha, .packed = s->packed, .n_batch_dims = 2};
  p.a_row = s->ta ? 1 : s->k, p.a_col = s->ta ? s->m : 1;
  p.b_row = s->tb ? 1 : s->n, p.b_col = s->tb ? s->k : 1;
  int64_t na = s->m * s->k, nb = s->k * s->n, nc = s->m * s->n;
  for (int i = 1; i >= 0; i--) {
    p.batch[i] = s->batch[i];
    p.a_batch[i] = s->a_broadcast >> i & 1 ? 0 : na;
    p.b_batch[i] = s->b_broadcast >> i & 1 ? 0 : nb;
    if (p.a_batch[i]) na *= s->batch[i];
    if (p.b_batch[i]) nb *= s->batch[i];
    nc *= s->batch[i];
  }
  hn_matmul_plan(&p, s->threads, 48u << 10, l2);
  float *a = ck_alloc(c, (size_t)na, 0), *b = ck_alloc(c, (size_t)nb, 0), *y = ck_alloc(c, (size_t)nc, 0),
        *r = ck_alloc(c, (size_t)nc, 0);
  float *bias = ck_alloc(c, (size_t)s->n, 0);
  float *ws = aligned_alloc(64, (hn_matmul_workspace(&p, 2) * 4 + 127) / 64 * 64),
        *packed = aligned_alloc(64, (hn_matmul_packed(&p) * 4 + 127) / 64 * 64);
  if (!ws || !packed) exit(6);
  ck_fill(c, a, (size_t)na, fill);
  ck_fill(c, b, (size_t)nb, fill);
  ck_fill(c, r, (size_t)nc, fill);
  ck_fill(c, bias, (size_t)s->n, fill);
  if (p.packed) hn_matmul_pack(&p, b, packed);
  hn_epilogue e = {.flags = s->flags,
                   .bias = bias,
                   .residual = s->flags & HN_EPI_RESIDUAL ? r : NULL,
                   .residual_view = {0, 0, 0, s->n}};
  hn_matmul_exec(&p, a, p.packed ? packed : b, y, &e, ws, ck_serial, NULL);
  for (int64_t i = 0; i < nc; i++) {
    int64_t col = i % s->n, row = i / s->n % s->m, b1 = i / (s->n * s->m) % s->batch[1],
            b0 = i / (s->n * s->m * s->batch[1]);
    const float *pa = a + b0 * p.a_batch[0] + b1 * p.a_batch[1],
                *pb = b + b0 * p.b_batch[0] + b1 * p.b_batch[1];
    double acc = 0, mag = 0;
    for (int64_t k = 0; k < s->k; k++) {
      double q = (double)pa[row * p.a_row + k * p.a_col] * pb[k * p.b_row + col * p.b_col] * (double)s->alpha;
      acc += q, mag += fabs(q);
    }
    if (s->flags & HN_EPI_BIAS) acc += bias[col], mag += fabs((double)bias[col]);
    if (s->flags & HN_EPI_RESIDUAL) acc += r[i], mag += fabs((double)r[i]);
    /* one rounding more a product than the tile kernel: alpha is multiplied into B; it may underflow there */
    double bound = (double)(3 * s->k + 4) * CK_EPS * mag * (1 + 1e-3) + (double)(s->k + 4) * CK_TINY;
    if (s->alpha != 1.0f) bound += (double)s->k * CK_TINY * 2e6; /* an underflown B times |A| <= 2^20 */
    ck_near(c, (size_t)i, y[i], acc, bound);
  }
  free(ws);
  free(packed);
  ck_release_all(c);
}

void ck_matmul(ck *c, hn_isa isa) {
  static const matmul_case cases[] = {
      {1, 1, 1, {1, 1}, 0, 0, false, false, true, 1, 2, 0},
      {17, 70, 33, {1, 1}, 0, 0, false, false, true, 1, 2, HN_EPI_BIAS},
      {17, 70, 33, {1, 1}, 0, 0, true, true, true, 0.5f, 2, HN_EPI_BIAS | HN_EPI_RESIDUAL},
      {29, 45, 64, {3, 2}, 0, 0, false, false, false, 1, 2, HN_EPI_RESIDUAL},
      {29, 100, 20, {2, 3}, 1, 2, false, true, false, 2, 2, HN_EPI_BIAS},
      {5, 130, 19, {1, 1}, 0, 0, true, false, false, 1, 2, 0},
      {64, 64, 300, {1, 1}, 0, 0, false, false, false, 1, 2, HN_EPI_BIAS},
      {3, 200, 50, {4, 1}, 2, 0, false, false, false, 1, 1, 0},
      {7, 9, 5, {0, 2}, 0, 0, false, false, false, 1, 2, 0},
      {4, 6, 0, {1, 2}, 0, 0, false, false, false, 1, 2, HN_EPI_BIAS},
      {1, 333, 77, {1, 1}, 0, 0, false, true, true, 1, 2, HN_EPI_BIAS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases && !ck_failed(c); i++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) {
      check_case(c, isa, &cases[i], (enum ck_fill)fill, 1u << 20);
      check_case(c, isa, &cases[i], (enum ck_fill)fill, 4u << 10);
    }
}
