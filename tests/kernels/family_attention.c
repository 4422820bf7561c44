/* Adapter of the attention kernels: scores to weights, and the rescaling of a row.
 *
 * Bound of exp(t - m), relative: t carries a rounding for the scale and one for each mask added, m those of
 * the largest t, the difference one more; they move exp by their absolute size; exp itself 1 ulp. The sum:
 * that of its terms, and of adding n of them. */
#include <math.h>
#include <stdio.h>

#include "backends/cpu/kernels/attention/attention.h"
#include "check.h"

enum { MOST = 1100 };

/* Masks of a case, by its number: none, one of each kind, constants for the row, and all at once. */
enum { FORMS = 7 };
static uint32_t masks_of(int form, const float *add, const uint8_t *bytes, hn_mask_row *m) {
  static const float fill = -INFINITY;
  const hn_mask_row all[] = {{HN_MASK_ADD, add, 1, 0.5f},
                             {HN_MASK_KEEP, bytes, 1, -3.0f},
                             {HN_MASK_DROP, bytes, 1, fill},
                             {HN_MASK_ADD, add, 0, -2.0f},
                             {HN_MASK_KEEP, bytes, 0, -1.0f}};
  if (form == 0) return 0;
  if (form <= 5) {
    m[0] = all[form - 1];
    return 1;
  }
  m[0] = all[2], m[1] = all[0], m[2] = all[1];
  return 3;
}

static void check_row(ck *c, const hn_attention_ops *ops, size_t n, enum ck_fill fill, int form, float scale,
                      float top) {
  float *x = ck_alloc(c, n, n % 3), *add = ck_alloc(c, n ? n : 1, 1);
  /* The bytes end at the guard page, too. */
  uint8_t *bytes = (uint8_t *)ck_alloc(c, n / 4 + 1, 0) + (n / 4 + 1) * 4 - (n ? n : 1);
  double t[MOST], err[MOST], most = top, top_err = 0, sum = 0, moved = 0;
  hn_mask_row mask[HN_ATTENTION_MASKS];
  ck_fill(c, x, n, fill);
  if (fill == CK_RANDOM)
    for (size_t i = 0; i < n; i++) x[i] *= 20.0f;
  for (size_t i = 0; i < (n ? n : 1); i++) add[i] = i % 5 == 3 ? -10000.0f : 0.25f * (float)(i % 3);
  for (size_t i = 0; i < (n ? n : 1); i++) bytes[i] = (uint8_t)(i % 4 == 1 ? 0 : i % 7 + 1);
  const uint32_t masks = masks_of(form, add, bytes, mask);
  for (size_t i = 0; i < n; i++) {
    t[i] = (double)x[i] * (double)scale;
    err[i] = CK_EPS * fabs(t[i]) + CK_TINY;
    for (uint32_t k = 0; k < masks; k++) {
      const size_t at = mask[k].step ? i : 0;
      if (mask[k].kind == HN_MASK_ADD) {
        t[i] += (double)mask[k].value * (double)add[at];
        err[i] += CK_EPS * (fabs(t[i]) + fabs((double)mask[k].value * (double)add[at]));
      } else if ((bytes[at] != 0) != (mask[k].kind == HN_MASK_KEEP))
        t[i] = (double)mask[k].value, err[i] = 0;
    }
    most = isnan(t[i]) || isnan(most) ? NAN : fmax(most, t[i]);
  }
  for (size_t i = 0; i < n; i++)
    if (t[i] == most) top_err = fmax(top_err, err[i]);
  ck_case(c, "row n=%zu fill=%s form=%d scale=%g top=%g", n, ck_fill_name(fill), form, (double)scale,
          (double)top);
  float got_top = top;
  const float got = ops->row(x, n, scale, mask, masks, &got_top);
  ck_near(c, n, got_top, most, top_err);
  const double m = most == -INFINITY ? 0 : most;
  for (size_t i = 0; i < n; i++) {
    const double want = exp(t[i] - m), off = err[i] + top_err + CK_EPS * fabs(t[i] - m);
    const double rel = isfinite(off) ? off + 2 * CK_EPS : 0;
    ck_near(c, i, x[i], want, 1.01 * rel * want + 4 * CK_TINY);
    sum += want;
    if (isfinite(want)) moved += 1.01 * rel * want + 4 * CK_TINY;
  }
  ck_near(c, n + 1, got, sum, moved + (double)(n + 2) * CK_EPS * sum);
  ck_release_all(c);
}

static void check_scale(ck *c, const hn_attention_ops *ops, size_t n) {
  float *x = ck_alloc(c, n, n % 2), before[MOST];
  ck_fill(c, x, n, CK_SPECIAL);
  for (size_t i = 0; i < n; i++) before[i] = x[i];
  ck_case(c, "scale n=%zu", n);
  ops->scale(x, n, 0.37f);
  for (size_t i = 0; i < n; i++) ck_same(c, i, x[i], before[i] * 0.37f);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49, 64, 127, 128, 1009};
  static const float tops[] = {-INFINITY, 3.0f, 40.0f};
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    for (int fill = 0; fill < CK_FILLS; fill++)
      for (int form = 0; form < FORMS; form++)
        for (size_t t = 0; t < sizeof tops / sizeof *tops; t++)
          check_row(c, k->ops, lengths[l], fill, form, t == 1 ? 1.0f : 0.125f, tops[t]);
    check_scale(c, k->ops, lengths[l]);
  }
}

struct job {
  const hn_attention_ops *ops;
  float *y;
  const float *x;
  size_t rows, n;
  const hn_mask_row *mask;
};
static void run_job(void *arg) {
  struct job *j = arg;
  for (size_t r = 0; r < j->rows; r++) {
    float top = -INFINITY, *y = j->y + r * j->n;
    const float *x = j->x + r * j->n;
    for (size_t i = 0; i < j->n; i++) y[i] = x[i];
    j->ops->row(y, j->n, 0.125f, j->mask, 1, &top);
  }
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const size_t lengths[] = {49, 128, 512};
  const struct hn_kernel *scalar = hn_kernel_find("attention", "f32", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    const size_t n = lengths[i], rows = 16;
    float *x = ck_alloc(c, n * rows, 0), *add = ck_alloc(c, n, 0);
    for (size_t q = 0; q < n; q++) add[q] = 0;
    const hn_mask_row mask = {HN_MASK_ADD, add, 1, 1.0f};
    struct job j = {k->ops, ck_alloc(c, n * rows, 0), x, rows, n, &mask};
    ck_fill(c, x, n * rows, CK_RANDOM);
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[48];
    snprintf(label, sizeof label, "rows 16x%zu masked", n);
    /* scale and mask, maximum, subtract, exp, sum */
    const double all = (double)(n * rows);
    ck_bench_line(c, label, t, &(ck_work){.instructions = 20 * all, .read = 4 * all, .written = 4 * all}, ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_attention = {"attention", check, bench};
