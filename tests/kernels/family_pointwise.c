/* Adapter of the pointwise kernels: every instruction against its formula in double, in every operand form.
 *
 * Bounds: exact operations must equal the same f32 operation; the others are allowed the number of units in
 * the last place that vec/vec_math.h states, plus the effect of rounding an inner argument where the formula
 * has one (the derivation stands beside each case). */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/pointwise/pointwise.h"
#include "check.h"

#define ULP 0x1p-23 /* one unit in the last place is at most this, relative to the value */

typedef struct answer {
  double want, bound;
  bool exact; /* compare bit for bit with want rounded to f32 */
} answer;

static answer same(float v) { return (answer){(double)v, 0.0, true}; }
static answer near(double want, double ulps, double absolute) {
  return (answer){want, ulps * ULP * fabs(want) + ulps * CK_TINY + absolute, false};
}
static double clip01(double t) { return t > 1.0 ? 1.0 : t < 0.0 ? 0.0 : t; }
static float truth(bool b) { return b ? 1.0f : 0.0f; }
static float max_nan(float a, float b) { return isnan(a) ? a : isnan(b) ? b : a > b ? a : b; }
static float min_nan(float a, float b) { return isnan(a) ? a : isnan(b) ? b : a < b ? a : b; }

static answer oracle(hone_pw_op op, float a, float b, float c, float al, float be) {
  const double x = a, t = fabs(x);
  switch (op) {
  case HONE_PW_ADD: return same(a + b);
  case HONE_PW_SUB: return same(a - b);
  case HONE_PW_MUL: return same(a * b);
  case HONE_PW_DIV: return same(a / b);
  case HONE_PW_MIN: return same(min_nan(a, b));
  case HONE_PW_MAX: return same(max_nan(a, b));
  case HONE_PW_POW: return near(pow(x, b), 1, 0);
  case HONE_PW_PRELU: return same(a < 0 ? a * b : a);
  case HONE_PW_EQ: return same(truth(a == b));
  case HONE_PW_LT: return same(truth(a < b));
  case HONE_PW_LE: return same(truth(a <= b));
  case HONE_PW_GT: return same(truth(a > b));
  case HONE_PW_GE: return same(truth(a >= b));
  case HONE_PW_AND: return same(truth(a != 0 && b != 0));
  case HONE_PW_OR: return same(truth(a != 0 || b != 0));
  case HONE_PW_XOR: return same(truth((a != 0) != (b != 0)));
  case HONE_PW_WHERE: return same(a != 0 ? b : c);
  case HONE_PW_NOT: return same(truth(a == 0));
  case HONE_PW_NEG: return same(-a);
  case HONE_PW_ABS: return same(fabsf(a));
  case HONE_PW_SQRT: return same(sqrtf(a));
  case HONE_PW_RECIPROCAL: return same(1.0f / a);
  case HONE_PW_EXP: return near(exp(x), 1, 0);
  case HONE_PW_LOG: return near(log(x), 1, 0);
  case HONE_PW_ERF: return near(erf(x), 1.5, 0);
  case HONE_PW_TANH: return near(tanh(x), 2.5, 0);
  case HONE_PW_SIGMOID: return near(1 / (1 + exp(-x)), 2.5, 0);
  case HONE_PW_FLOOR: return same(floorf(a));
  case HONE_PW_CEIL: return same(ceilf(a));
  case HONE_PW_ROUND: return same(rintf(a));
  case HONE_PW_SIGN: return same(isnan(a) ? a : (float)((a > 0) - (a < 0)));
  case HONE_PW_RELU: return same(max_nan(a, 0.0f));
  case HONE_PW_CLIP: return same(min_nan(max_nan(a, al), be));
  case HONE_PW_LEAKYRELU: return same(a < 0 ? a * al : a);
  /* expm1 and one product; an underflow of one factor is multiplied by the others */
  case HONE_PW_ELU: return near(x < 0 ? (double)al * expm1(x) : x, 2, CK_TINY * (double)al);
  case HONE_PW_SELU:
    return near((double)be * (x <= 0 ? (double)al * expm1(x) : x), 2.5,
                CK_TINY * (double)be * (double)(al + 1));
  /* as ELU; the rounded quotient changes expm1 by no more than itself, relatively */
  case HONE_PW_CELU:
    return near(fmax(0, x) + fmin(0, (double)al * expm1(x / (double)al)) + (isnan(a) ? NAN : 0), 3,
                2 * CK_TINY * (double)al);
  /* a product and a sum, each rounded */
  case HONE_PW_HARDSIGMOID:
    return near(isnan(a) ? NAN : clip01((double)al * x + (double)be), 0,
                2 * CK_EPS * (fabs((double)al * x) + fabs((double)be)));
  case HONE_PW_HARDSWISH:
    return near(isnan(a) ? NAN : x * clip01((double)al * x + (double)be), 1,
                t * 2 * CK_EPS * (fabs((double)al * x) + fabs((double)be)) + CK_TINY);
  /* x sigmoid(s): rounding s moves sigmoid by at most |s| eps, relatively; a denormal sigmoid is multiplied
   * by x */
  case HONE_PW_SILU: {
    const double s = (double)al * x, y = x * (1 / (1 + exp(-s)));
    return near(y, 3, fabs(y) * fabs(s) * CK_EPS + t * 3 * CK_TINY);
  }
  /* |x| times the error of a probability of 0.5 at most (vec_math.h); a product, and a difference */
  case HONE_PW_GELU_ERF: {
    const double y = 0.5 * x * (1 + erf(x * M_SQRT1_2));
    return near(y, 1, 0.5 * t * 4 * CK_EPS);
  }
  /* as SILU; 2u carries five roundings */
  case HONE_PW_GELU_TANH: {
    const double s = 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x), y = x * (1 / (1 + exp(-s)));
    return near(y, 3, fabs(y) * fabs(s) * 5 * CK_EPS + t * 3 * CK_TINY);
  }
  case HONE_PW_SOFTPLUS: return near(fmax(x, 0) + log1p(exp(-t)) + (isnan(a) ? NAN : 0), 2, 0);
  case HONE_PW_SOFTSIGN: return near(x / (1 + t), 1.5, 0);
  case HONE_PW_MISH: {
    const double w = exp(x);
    return near(x > 20 ? x : x * (w * w + 2 * w) / (w * w + 2 * w + 2), 4, t * 4 * CK_TINY);
  }
  default: return same(0);
  }
}

/* Immediates worth testing, by operation: at most two pairs. */
static unsigned immediates(hone_pw_op op, float p[2][2]) {
  static const struct {
    hone_pw_op op;
    float p[2][2];
  } table[] = {
      {HONE_PW_CLIP, {{0.0f, 6.0f}, {-0.5f, 0.25f}}},
      {HONE_PW_LEAKYRELU, {{0.1f, 0}, {0.01f, 0}}},
      {HONE_PW_ELU, {{1.0f, 0}, {0.7f, 0}}},
      {HONE_PW_SELU, {{1.67326319f, 1.05070102f}, {2.0f, 3.0f}}},
      {HONE_PW_CELU, {{1.0f, 0}, {2.5f, 0}}},
      {HONE_PW_HARDSIGMOID, {{0.2f, 0.5f}, {0.6f, 0.1f}}},
      {HONE_PW_HARDSWISH, {{1.0f / 6.0f, 0.5f}, {0.25f, 0.4f}}},
      {HONE_PW_SILU, {{1.0f, 0}, {1.7f, 0}}},
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].op == op) {
      memcpy(p, table[i].p, sizeof table[i].p);
      return 2;
    }
  memset(p, 0, 4 * sizeof(float));
  return 1;
}

static void compare(ck *c, size_t i, float got, answer w) {
  if (w.exact) {
    ck_same(c, i, got, (float)w.want);
    return;
  }
  /* Either side of the overflow threshold is a correct rounding of a value within the bound of it. */
  if (fabs(w.want) > FLT_MAX * (1 - 4 * ULP) && fabs(w.want) < FLT_MAX * (1 + 4 * ULP)) return;
  ck_near(c, i, got, fabs(w.want) > FLT_MAX ? (double)(float)w.want : w.want, w.bound);
}

static void check_form(ck *c, const struct hn_pw_ops *ops, hone_pw_op op, size_t n, enum ck_fill fill,
                       unsigned uniform, const float *p) {
  const size_t miss = n % 4;
  float *in[3], *out = ck_alloc(c, n, miss);
  for (int k = 0; k < 3; k++) {
    const size_t len = uniform >> k & 1 ? 1 : n;
    in[k] = ck_alloc(c, len, (miss + (size_t)k) % 4);
    ck_fill(c, in[k], len, fill);
  }
  if (op == HONE_PW_EQ && n > 2 && !(uniform & 3)) in[0][1] = in[1][1];
  if (op == HONE_PW_POW && uniform == 2)
    in[1][0] = (float[]){2.0f, -1.0f, 0.5f, 3.0f, 0.0f, -0.5f, 3.0f}[n % 7];
  ck_case(c, "op %d n=%zu fill=%s uniform=%u alpha=%g", (int)op, n, ck_fill_name(fill), uniform,
          (double)p[0]);
  ops->fn[op](out, in[0], in[1], in[2], n, uniform, p);
  for (size_t i = 0; i < n; i++)
    compare(c, i, out[i],
            oracle(op, in[0][uniform & 1 ? 0 : i], in[1][uniform & 2 ? 0 : i], in[2][uniform & 4 ? 0 : i],
                   p[0], p[1]));
  ck_release_all(c);
}

static void sweep(ck *c, float *in, int n, int pass) {
  for (int i = 0; i < n; i++) {
    uint32_t bits = (uint32_t)(i * 24 + pass) * 175283u + (uint32_t)ck_random(c) % 4096u;
    memcpy(&in[i], &bits, 4);
    if (pass % 3 == 0) in[i] = (float)((double)(i - n / 2) * 0.11 + (double)pass * 0.004);
    if (pass % 3 == 1) in[i] = (float)((double)(i - n / 2) * 0.006 + (double)pass * 0.0002);
  }
}

/* Exponents that have loops of their own. */
static void check_powers(ck *c, const struct hn_pw_ops *ops) {
  enum { N = 1021 };
  static const float exponents[] = {2.0f, -1.0f, 0.5f, 3.0f, -0.5f};
  for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
    float in[N], *x = ck_alloc(c, N, 1);
    for (int pass = 0; pass < 24; pass++) {
      sweep(c, in, N, pass);
      memcpy(x, in, sizeof in);
      ck_case(c, "power %g in place, sweep %d", (double)exponents[e], pass);
      ops->fn[HONE_PW_POW](x, x, &exponents[e], x, N, 2, &exponents[e]);
      for (int i = 0; i < N; i++)
        compare(c, (size_t)i, x[i], oracle(HONE_PW_POW, in[i], exponents[e], 0, 0, 0));
    }
    ck_release_all(c);
  }
}

/* In place, over the whole range of the format: every exponent, and densely where functions bend. */
static void check_sweep(ck *c, const struct hn_pw_ops *ops, hone_pw_op op, const float *p) {
  enum { N = 1021 };
  float *x = ck_alloc(c, N, 1);
  float in[N];
  for (int pass = 0; pass < 24; pass++) {
    sweep(c, in, N, pass);
    memcpy(x, in, sizeof in);
    ck_case(c, "op %d in place, sweep %d alpha=%g", (int)op, pass, (double)p[0]);
    ops->act[op](x, N, p);
    for (int i = 0; i < N; i++) compare(c, (size_t)i, x[i], oracle(op, in[i], 0, 0, p[0], p[1]));
  }
  ck_release_all(c);
}

/* Any byte but 0 is true, and so is any number, NaN, but the zeros. */
static void check_bool(ck *c, const struct hn_pw_ops *ops, size_t n, enum ck_fill fill) {
  uint8_t *in = (uint8_t *)ck_alloc(c, n, 0) + 3 * n, *out = (uint8_t *)ck_alloc(c, n, 0) + 3 * n;
  float *dst = ck_alloc(c, n, n % 2), *src = ck_alloc(c, n, 0);
  for (size_t i = 0; i < n; i++) in[i] = ck_random(c) % 3 ? (uint8_t)ck_random(c) : 0;
  ck_fill(c, src, n, fill);
  ck_case(c, "bool n=%zu fill=%s", n, ck_fill_name(fill));
  ops->from_bool(dst, in, n);
  for (size_t i = 0; i < n; i++) ck_same(c, i, dst[i], truth(in[i] != 0));
  ops->to_bool(out, src, n);
  for (size_t i = 0; i < n; i++) ck_same(c, i, out[i], truth(src[i] != 0.0f));
  ck_release_all(c);
}

static void check_rows(ck *c, const struct hn_pw_ops *ops, size_t rows, size_t n, ptrdiff_t pitch,
                       bool dense) {
  const size_t row = dense ? n : n > 0, n_x = rows && n ? (rows - 1) * (size_t)pitch + row : 0;
  float *x = ck_alloc(c, n_x, rows % 3), *y = ck_alloc(c, rows * n, n % 4);
  ck_fill(c, x, n_x, CK_RANDOM);
  ck_case(c, "%zu rows of %zu, %td apart, dense %d", rows, n, pitch, dense);
  ops->rows(y, x, rows, n, pitch, dense);
  for (size_t r = 0; r < rows; r++)
    for (size_t i = 0; i < n; i++)
      ck_same(c, r * n + i, y[r * n + i], x[r * (size_t)pitch + (dense ? i : 0)]);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  for (size_t rows = 0; rows < 40; rows += 1 + rows / 3)
    for (size_t n = 0; n < 70; n += 1 + n / 8)
      for (ptrdiff_t pitch = 0; pitch < 80; pitch += 1 + pitch / 2)
        for (int dense = 0; dense < 2; dense++) check_rows(c, k->ops, rows, n, pitch, dense != 0);
  static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 61, 257};
  const struct hn_pw_ops *ops = k->ops;
  for (unsigned op = HONE_PW_ADD; op < HONE_PW_COUNT; op++) {
    float p[2][2];
    const unsigned arity = hn_pw_arity(op), sets = immediates(op, p);
    ck_case(c, "op %u", op);
    ck_true(c, ops->fn[op] != NULL, "every instruction is implemented");
    ck_true(c, (ops->act[op] != NULL) == (arity == 1), "every unary function is an activation");
    if (ck_failed(c)) return;
    for (unsigned s = 0; s < sets; s++) {
      for (unsigned uniform = 0; uniform < 1u << arity; uniform++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
          for (int fill = 0, fills = ck_fills(c); fill < fills; fill++)
            check_form(c, ops, op, lengths[l], fill, uniform, p[s]);
      if (arity == 1) check_sweep(c, ops, op, p[s]);
    }
    if (ck_failed(c)) return;
  }
  check_powers(c, ops);
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
    for (int fill = 0, fills = ck_fills(c); fill < fills; fill++) check_bool(c, ops, lengths[l], fill);
}

struct job {
  hn_pw_fn fn;
  float *d;
  const float *a, *b;
  size_t n;
  unsigned uniform;
};
static void run_job(void *arg) {
  struct job *j = arg;
  static const float p[2] = {1.0f / 6.0f, 0.5f};
  j->fn(j->d, j->a, j->b, j->b, j->n, j->uniform, p);
}

struct rows_job {
  const struct hn_pw_ops *ops;
  float *d;
  const float *a;
  size_t n;
};
static void run_rows(void *arg) {
  struct rows_job *j = arg;
  j->ops->rows(j->d, j->a, 2048 / j->n, j->n, 1, false);
}

static void bench_rows(ck *c, const struct hn_kernel *k) {
  static const size_t sizes[] = {2, 10, 196};
  const struct hn_kernel *scalar = hn_kernel_find("pointwise", "f32", HN_ISA_SCALAR);
  float *d = ck_alloc(c, 2048, 0), *a = ck_alloc(c, 2048, 0);
  ck_fill(c, a, 2048, CK_RANDOM);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct rows_job j = {k->ops, d, a, sizes[i]};
    const double t = ck_time(run_rows, &j), rows = (double)(2048 / j.n);
    j.ops = scalar->ops;
    char label[64];
    snprintf(label, sizeof label, "rows of %zu of one value", j.n);
    ck_bench_line(c, label, t, &(ck_work){.read = 4 * rows, .written = 4 * rows * (double)j.n},
                  k == scalar ? 0 : ck_time(run_rows, &j));
  }
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    hone_pw_op op;
    const char *name;
    unsigned uniform;
    double instructions; /* vector instructions an element, of the widest tier; see vec_math.h */
    double divisions;
  } cases[] = {{HONE_PW_ADD, "add vv", 0, 1, 0},
               {HONE_PW_MUL, "mul vs", 2, 1, 0},
               {HONE_PW_RELU, "relu", 0, 1, 0},
               {HONE_PW_HARDSWISH, "hardswish", 0, 4, 0},
               {HONE_PW_EXP, "exp", 0, 15, 0},
               {HONE_PW_LOG, "log", 0, 29, 0},
               {HONE_PW_SIGMOID, "sigmoid", 0, 18, 1},
               {HONE_PW_TANH, "tanh", 0, 19, 1},
               {HONE_PW_ERF, "erf", 0, 39, 0},
               {HONE_PW_GELU_ERF, "gelu_erf", 0, 25, 0},
               {HONE_PW_GELU_TANH, "gelu_tanh", 0, 23, 1},
               {HONE_PW_SILU, "silu", 0, 20, 1},
               {HONE_PW_SOFTPLUS, "softplus", 0, 50, 1},
               {HONE_PW_MISH, "mish", 0, 26, 1},
               {HONE_PW_POW, "pow vv", 0, 1, 0}};
  enum { N = 2048 };
  const struct hn_kernel *scalar = hn_kernel_find("pointwise", "f32", HN_ISA_SCALAR);
  float *d = ck_alloc(c, N, 0), *a = ck_alloc(c, N, 0), *b = ck_alloc(c, N, 0);
  ck_fill(c, a, N, CK_RANDOM);
  ck_fill(c, b, N, CK_RANDOM);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct job j = {((const struct hn_pw_ops *)k->ops)->fn[cases[i].op], d, a, b, N, cases[i].uniform};
    const double t = ck_time(run_job, &j);
    j.fn = ((const struct hn_pw_ops *)scalar->ops)->fn[cases[i].op];
    const double ts = k == scalar ? 0 : ck_time(run_job, &j);
    char label[64];
    snprintf(label, sizeof label, "%s 2048", cases[i].name);
    const double inputs = hn_pw_arity(cases[i].op) == 2 && !cases[i].uniform ? 2 : 1;
    const ck_work work = {.instructions = cases[i].instructions * N,
                          .divisions = cases[i].divisions * N,
                          .read = 4 * inputs * N,
                          .written = 4.0 * N};
    ck_bench_line(c, label, t, &work, ts);
  }
  bench_rows(c, k);
}

const ck_family ck_family_pointwise = {"pointwise", check, bench};
