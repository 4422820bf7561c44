/* Adapter of the kernels from floats behind a product to codes. Codes are those of the function in doubles,
 * but for values so near to the middle between two that the function's error may carry them over it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/act_codes/act_codes.h"
#include "check.h"

typedef struct function {
  hone_pw_op op;
  float p[2];
  double ulps, of_x, fixed; /* error: ulps of the result, |x| times this, this */
  double instructions, divisions;
} function;

static const function functions[] = {
    {HONE_PW_NONE, {0}, 0, 0, 0, 0, 0},
    {HONE_PW_RELU, {0}, 0, 0, 0, 1, 0},
    {HONE_PW_CLIP, {-0.5f, 2.25f}, 0, 0, 0, 2, 0},
    {HONE_PW_LEAKYRELU, {0.1f}, 1, 0, 0, 3, 0},
    /* on the ramp |0.2 x| <= 1 */
    {HONE_PW_HARDSIGMOID, {0.2f, 0.5f}, 0, 0, 3 * CK_EPS, 3, 0},
    {HONE_PW_HARDSWISH, {1.0f / 6, 0.5f}, 1, 3 * CK_EPS, 0, 4, 0},
    {HONE_PW_SIGMOID, {0}, 2.5, 0, 0, 18, 1},
    {HONE_PW_TANH, {0}, 2.5, 0, 0, 19, 1},
    /* |x| times the error of a probability: vec_gelu.h, vec_silu.h */
    {HONE_PW_GELU_ERF, {0}, 1, 2 * CK_EPS, 0, 20, 0},
    {HONE_PW_SILU, {1.0f}, 3, CK_EPS, 0, 18, 0},
    {HONE_PW_SILU, {1.7f}, 3, CK_EPS, 0, 18, 0},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static double value(const function *f, double x) {
  const double a = (double)f->p[0], b = (double)f->p[1], ramp = fmin(1, fmax(0, a * x + b));
  if (isnan(x)) return x;
  switch (f->op) {
  case HONE_PW_RELU: return fmax(0, x);
  case HONE_PW_CLIP: return fmin(b, fmax(a, x));
  case HONE_PW_LEAKYRELU: return x < 0 ? a * x : x;
  case HONE_PW_HARDSIGMOID: return ramp;
  case HONE_PW_HARDSWISH: return x * ramp;
  case HONE_PW_SIGMOID: return 1 / (1 + exp(-x));
  case HONE_PW_TANH: return tanh(x);
  case HONE_PW_GELU_ERF: return 0.5 * x * (1 + erf(x * M_SQRT1_2));
  case HONE_PW_SILU: return x / (1 + exp(-a * x));
  default: return x;
  }
}

static int code_of(double quotient, float zero, bool is_signed) {
  const double q = rint(quotient) + (double)zero, lo = is_signed ? -128 : 0, hi = is_signed ? 127 : 255;
  return !(q > lo) ? (int)lo : q > hi ? (int)hi : (int)q;
}

/* What the code of f(x) has to be: `have` where that is the code of a value as near as the function's error.
 */
static int wanted(const function *f, float x, float scale, const hn_act_codes *a, int have) {
  const double want = value(f, (double)x), size = fabs(want), t = isfinite(x) ? fabs((double)x) : 0;
  if (!isfinite(want)) return code_of(want, a->zero, a->is_signed);
  /* without an error the quotient is that of f32 */
  const bool exact = f->ulps + f->of_x + f->fixed == 0;
  const double off = f->ulps * CK_EPS * size + f->of_x * t + f->fixed + (exact ? 0 : CK_EPS * size);
  const double quotient = exact ? (double)((float)want / scale) : want / (double)scale,
               by = off / (double)scale;
  const int low = code_of(quotient - by, a->zero, a->is_signed),
            high = code_of(quotient + by, a->zero, a->is_signed);
  return have < low ? low : have > high ? high : have;
}

static void check_block(ck *c, const struct hn_act_codes_ops *ops, const function *f, size_t rows, size_t n,
                        unsigned form, enum ck_fill fill) {
  const size_t gap = form & 1 ? 5 : 0, y_pitch = n + (form & 2 ? 7 : 0), bytes = (rows - 1) * y_pitch + n,
               words = (bytes + 3) / 4;
  const bool vectors = form & 4, is_signed = form & 8, biased = form & 16;
  float *x = ck_alloc(c, (rows - 1) * (n + gap) + n, 0), *factor = ck_alloc(c, n, 0),
        *bias = ck_alloc(c, n, 0), *scale = ck_alloc(c, n, 0), *over = ck_alloc(c, n, 0);
  unsigned char *y = (unsigned char *)(ck_alloc(c, words, 0) + words) - bytes;
  ck_fill(c, x, (rows - 1) * (n + gap) + n, fill);
  for (size_t i = 0; i < n; i++) {
    bias[i] = (float)(int)(ck_random(c) % 64 - 32) / 16;
    factor[i] = (float)(1 + ck_random(c) % 7) / 4;
    scale[i] = 0.004f * (float)(1 + ck_random(c) % 9);
    over[i] = 1 / scale[i];
  }
  memset(y, 0x5a, bytes);
  const hn_act_codes a = {.factor = biased ? factor : NULL,
                          .bias = biased ? bias : NULL,
                          .act = f->op,
                          .p = {f->p[0], f->p[1]},
                          .scale = scale,
                          .over = over,
                          .zero = is_signed ? -7 : 113,
                          .vectors = vectors,
                          .is_signed = is_signed};
  ck_case(c, "op=%d p=%g rows=%zu n=%zu form=%u fill=%s", (int)f->op, (double)f->p[0], rows, n, form,
          ck_fill_name(fill));
  ck_true(c, hn_act_codes_takes(f->op, f->p), "the function is refused");
  ops->rows(&a, y, (ptrdiff_t)y_pitch, x, (ptrdiff_t)(n + gap), rows, n);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < y_pitch && i * y_pitch + j < bytes; j++) {
      const unsigned char got = y[i * y_pitch + j];
      if (j >= n) {
        ck_same(c, i * y_pitch + j, (float)got, (float)0x5a);
        continue;
      }
      const float v = x[i * (n + gap) + j] * (biased ? factor[j] : 1) + (biased ? bias[j] : 0);
      const int have = is_signed ? (signed char)got : got;
      ck_same(c, i * y_pitch + j, (float)have, (float)wanted(f, v, scale[vectors ? j : 0], &a, have));
    }
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  static const struct {
    size_t rows, n;
  } shapes[] = {{1, 1},  {1, 16}, {2, 7},  {3, 17}, {1, 32}, {2, 32},
                {5, 31}, {4, 33}, {7, 64}, {3, 77}, {32, 32}};
  for (int f = 0; f < FUNCTIONS; f++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (unsigned form = 0; form < 32; form++)
        check_block(c, k->ops, &functions[f], shapes[s].rows, shapes[s].n, form, form % CK_FILLS);
}

struct job {
  const struct hn_act_codes_ops *ops;
  hn_act_codes a;
  const float *x;
  unsigned char *y;
};
enum { ROWS = 32, N = 32 };
static void run_job(void *arg) {
  struct job *j = arg;
  j->ops->rows(&j->a, j->y, N, j->x, N, ROWS, N);
}

static void bench(ck *c, const struct hn_kernel *k) {
  const struct hn_kernel *scalar = hn_kernel_find("act_codes", "f32", HN_ISA_SCALAR);
  float *x = ck_alloc(c, ROWS * N, 0), *bias = ck_alloc(c, N, 0), *scale = ck_alloc(c, N, 0),
        *over = ck_alloc(c, N, 0);
  unsigned char *y = (unsigned char *)ck_alloc(c, ROWS * N / 4, 0);
  const float *factor = NULL;
  ck_fill(c, x, ROWS * N, CK_RANDOM);
  for (int i = 0; i < N; i++) bias[i] = 0.1f, scale[i] = 0.0213f, over[i] = 1 / 0.0213f;
  static const hone_pw_op ops[] = {HONE_PW_NONE, HONE_PW_HARDSWISH, HONE_PW_SILU};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    const function *f = functions;
    while (f->op != ops[i]) f++;
    struct job j = {k->ops, {factor, bias, f->op, {f->p[0], f->p[1]}, scale, over, 113, true, false}, x, y};
    const double t = ck_time(run_job, &j);
    j.ops = scalar->ops;
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    /* bias; scale, clamp, round, pack */
    const ck_work work = {.instructions = (f->instructions + 6) * ROWS * N,
                          .divisions = k == scalar ? f->divisions * ROWS * N : 0,
                          .read = 4.0 * ROWS * N,
                          .written = 1.0 * ROWS * N};
    char label[64];
    snprintf(label, sizeof label, "%s 32x32",
             ops[i] == HONE_PW_NONE   ? "bias"
             : ops[i] == HONE_PW_SILU ? "silu"
                                      : "hardswish");
    ck_bench_line(c, label, t, &work, ts);
  }
}

const ck_family ck_family_act_codes = {"act_codes", check, bench};
