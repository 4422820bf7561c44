/* The driver of Strassen's method over a tier's kernels: halves that do not come out even, pieces of the
 * inner length, columns that are left over, epilogues; and rows and columns that must not meet. */
#include "strassen_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/product/strassen_driver.h"
#include "conv_cases.h"

/* What is special about the operands: nothing; a row, or a column, far larger than the others, which must not
 * spoil theirs; a row that is not a number; a column that is 0 and stays so; a channel of A that is far
 * larger, or half of them, and B smaller by as much there, so that nothing of it shows; channels of unlike
 * scales, which are others in the lower rows of A, so that what is large there is not in the upper rows. */
typedef enum special {
  EVEN,
  LARGE_ROW,
  LARGE_COLUMN,
  NAN_ROW,
  ZERO_COLUMN,
  LARGE_CHANNEL,
  LARGE_HALF,
  UNLIKE_CHANNELS,
  SPECIALS
} special;

typedef struct product_case {
  int64_t m, apart, n, k;
  uint32_t threads, flags;
  size_t l1;
  special what;
} product_case;

static const float large = 1e6f;

/* The factor of channel i of a row of A. */
static float scale_of(const product_case *s, size_t row, size_t i) {
  static const float unlike[4] = {1, 1000, 0.001f, 30};
  switch (s->what) {
  case LARGE_CHANNEL: return i == (size_t)s->k / 3 ? large : 1;
  case LARGE_HALF: return i < (size_t)s->k / 2 ? large : 1;
  case UNLIKE_CHANNELS: return unlike[(i + (row >= (size_t)s->m / 2)) % 4];
  default: return 1;
  }
}

static void fill(ck *c, const product_case *s, float *a, float *b) {
  const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k, row = m / 3, column = n / 3;
  ck_fill(c, a, m * k, CK_RANDOM);
  ck_fill(c, b, n * k, CK_RANDOM);
  for (size_t i = 0; i < k; i++) {
    if (s->what == LARGE_ROW) a[row * k + i] *= large;
    if (s->what == NAN_ROW) a[row * k + i] = i == k / 2 ? NAN : a[row * k + i];
    if (s->what == LARGE_COLUMN) b[i * n + column] *= large;
    if (s->what == ZERO_COLUMN) b[i * n + column] = 0;
    for (size_t r = 0; r < m; r++) a[r * k + i] *= scale_of(s, r, i);
    for (size_t r = 0; r < n; r++) b[i * n + r] /= scale_of(s, 0, i);
  }
}

static void check_case(ck *c, hn_isa isa, const product_case *s) {
  const size_t m = (size_t)s->m, n = (size_t)s->n, k = (size_t)s->k;
  const hn_gemm_ops *o = hn_gemm_find(isa);
  hn_strassen p = {
      .isa = isa, .m = s->m, .n = s->n, .k = s->k, .x_row = s->k, .y_row = s->n, .apart = s->apart};
  ck_case(c, "product %zux%zux%zu apart %lld threads %u flags %u l1 %zu special %d", m, n, k,
          (long long)s->apart, s->threads, s->flags, s->l1, (int)s->what);
  if (!hn_strassen_plan(&p, s->threads, s->l1, 1u << 20)) exit(6);
  const size_t packed = hn_gemm_packed_size(o, n, k);
  float *a = ck_alloc(c, m * k, 0), *b = ck_alloc(c, n * k, 0), *y = ck_alloc(c, m * n, 0),
        *r = ck_alloc(c, m * n, 0), *bias = ck_alloc(c, n, 0),
        *w = ck_alloc(c, packed + hn_strassen_marks(&p), 0),
        *workspace = ck_alloc(c, hn_strassen_workspace(&p, s->threads), 0);
  fill(c, s, a, b);
  ck_fill(c, r, m * n, CK_RANDOM);
  ck_fill(c, bias, n, CK_RANDOM);
  hn_gemm_pack_b(o, b, (ptrdiff_t)n, 1, k, n, 0, n, w);
  hn_strassen_mark(&p, w, w + packed);
  const hn_epilogue e = {.flags = s->flags,
                         .bias = bias,
                         .residual = s->flags & HN_EPI_RESIDUAL ? r : NULL,
                         .residual_view = {0, 0, 0, s->n},
                         .lo = -0.5f,
                         .hi = 2};
  hn_strassen_exec(&p, a, w, y, &e, workspace, ck_serial, NULL);
  /* The largest of the rows that may meet, and of all columns: what may meet differs by HN_STRASSEN_APART in
   * size. */
  double most_a = 0, most_b = 0;
  for (size_t i = 0; i < m * k; i++)
    if (!(s->what == LARGE_ROW && i / k == m / 3)) most_a = fmax(most_a, fabs((double)a[i]));
  for (size_t i = 0; i < n * k; i++)
    if (!(s->what == LARGE_COLUMN && i % n == n / 3)) most_b = fmax(most_b, fabs((double)b[i]));
  /* What is scaled is summed as usual. */
  const bool usual = s->what == LARGE_CHANNEL || s->what == LARGE_HALF || s->what == UNLIKE_CHANNELS;
  const double norm = usual ? 0 : (3.0 * (double)k + 30) * (double)k * CK_EPS * most_a * most_b;
  for (size_t i = 0; i < m; i++)
    for (size_t j = 0; j < n; j++) {
      double sum = 0, size = 0;
      for (size_t q = 0; q < k; q++) {
        const double x = (double)a[i * k + q] * (double)b[q * n + j];
        sum += x, size += fabs(x);
      }
      if (s->flags & HN_EPI_BIAS) sum += (double)bias[j], size += fabs((double)bias[j]);
      if (s->flags & HN_EPI_RESIDUAL) sum += (double)r[i * n + j], size += fabs((double)r[i * n + j]);
      double bound = fmax(norm, (double)(k + 4) * CK_EPS * size);
      if (s->flags & HN_EPI_CLAMP) sum = fmin(2, fmax(-0.5, sum));
      if (s->what == NAN_ROW && i == m / 3) {
        if (!isnan(y[i * n + j])) ck_near(c, i * n + j, y[i * n + j], (double)NAN, 0);
        continue;
      }
      if (s->what == ZERO_COLUMN && j == n / 3 && !s->flags) bound = 0;
      ck_near(c, i * n + j, y[i * n + j], sum, bound);
    }
  ck_release_all(c);
}

void ck_strassen_products(ck *c, hn_isa isa) {
  static const int64_t sizes[][4] = {/* m, apart, n, k */
                                     {48, 48, 64, 256},   {49, 49, 70, 258},   {150, 50, 128, 300},
                                     {131, 131, 96, 514}, {64, 64, 200, 1026}, {530, 530, 64, 256}};
  static const uint32_t flags[] = {0, HN_EPI_BIAS, HN_EPI_BIAS | HN_EPI_RESIDUAL,
                                   HN_EPI_RESIDUAL | HN_EPI_CLAMP};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int what = 0; what < SPECIALS; what++) {
      const size_t at = i + (size_t)what;
      /* a small L1 cuts the inner length into pieces */
      check_case(c, isa,
                 &(product_case){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], 1 + at % 3,
                                 flags[what == ZERO_COLUMN ? 0 : at % 4], at % 2 ? 48u << 10 : 8u << 10,
                                 (special)what});
    }
}
