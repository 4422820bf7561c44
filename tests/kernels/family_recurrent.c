/* Adapter of the recurrent kernels: one panel of units after the other must make the step of its operator.
 *
 * Bounds follow the formula: every number carries what it may be off. A sum of k products (k + 3) eps
 * sum|a||b|; sums and products what their operands are off and one rounding; activations their steepest
 * slope times that, and 8 eps, which covers the ulp of vec_math.h (2.5 for each, 5 for both with one
 * division) and a rounding before and behind. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernels/recurrent/recurrent.h"
#include "check.h"

/* ------------------------------------------------------------------ numbers with bounds */

typedef struct num {
  double v, e;
} num;

static num rounded(double v, double e) { return (num){v, e + CK_EPS * fabs(v) + CK_TINY}; }
static num exact(double v) { return (num){v, 0}; }
static num add(num a, num b) { return rounded(a.v + b.v, a.e + b.e); }
static num times(num a, num b) { return rounded(a.v * b.v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e); }

static double slope(const hn_activation *a) {
  switch (a->kind) {
  case HN_ACT_AFFINE:
  case HN_ACT_HARD_SIGMOID: return fabs(a->alpha);
  case HN_ACT_SCALED_TANH: return fabs(a->alpha * a->beta);
  case HN_ACT_LEAKY_RELU:
  case HN_ACT_ELU: return fmax(1, fabs(a->alpha));
  default: return 1;
  }
}

static num apply(const hn_recurrent_cell *cell, int which, num x) {
  const hn_rnn r = {.f = cell->f};
  const hn_activation *a = &cell->f[which];
  const double y = hn_rnn_apply(&r, which, x.v);
  if (a->kind == HN_ACT_THRESHOLDED_RELU && fabs(x.v - a->alpha) <= x.e) return (num){y, INFINITY};
  /* tanh(beta x) has an argument that is rounded, alpha x + beta terms that may cancel */
  const double inner = a->kind == HN_ACT_SCALED_TANH ? slope(a) * fabs(x.v) : fabs(a->beta);
  return (num){y, slope(a) * x.e + 8 * CK_EPS * (fabs(y) + inner) + CK_TINY};
}

static num activate(const hn_recurrent_cell *cell, int which, num x) {
  if (cell->clip > 0) x.v = fmin(fmax(x.v, -(double)cell->clip), (double)cell->clip);
  return apply(cell, which, x);
}

/* ------------------------------------------------------------------ a step */

enum { MOST_GATES = 4, MOST_ROWS = 16 };

typedef struct form {
  const char *name;
  hn_recurrent_pass pass;
  hn_activation f[3];
  float clip;
  bool coupled, peepholes, bias;
} form;

static const form forms[] = {
    {"rnn", HN_RECURRENT_RNN, {{HN_ACT_TANH, 0, 0}}, 0, false, false, false},
    {"rnn clip", HN_RECURRENT_RNN, {{HN_ACT_RELU, 0, 0}}, 0.4f, false, false, false},
    {"rnn affine", HN_RECURRENT_RNN, {{HN_ACT_AFFINE, 0.5, -0.25}}, 0, false, false, false},
    {"rnn leaky", HN_RECURRENT_RNN, {{HN_ACT_LEAKY_RELU, 0.1f, 0}}, 0, false, false, false},
    {"rnn thresholded", HN_RECURRENT_RNN, {{HN_ACT_THRESHOLDED_RELU, 0.25, 0}}, 0, false, false, false},
    {"rnn scaled tanh", HN_RECURRENT_RNN, {{HN_ACT_SCALED_TANH, 1.5, 0.75}}, 0, false, false, false},
    {"rnn hard sigmoid", HN_RECURRENT_RNN, {{HN_ACT_HARD_SIGMOID, 0.25, 0.5}}, 0, false, false, false},
    {"rnn elu", HN_RECURRENT_RNN, {{HN_ACT_ELU, 1.25, 0}}, 0, false, false, false},
    {"rnn softsign", HN_RECURRENT_RNN, {{HN_ACT_SOFTSIGN, 0, 0}}, 0, false, false, false},
    {"rnn softplus", HN_RECURRENT_RNN, {{HN_ACT_SOFTPLUS, 0, 0}}, 0, false, false, false},
    {"lstm",
     HN_RECURRENT_LSTM,
     {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_TANH, 0, 0}, {HN_ACT_TANH, 0, 0}},
     0,
     false,
     false,
     false},
    {"lstm peepholes clip",
     HN_RECURRENT_LSTM,
     {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_TANH, 0, 0}, {HN_ACT_TANH, 0, 0}},
     0.5f,
     false,
     true,
     false},
    {"lstm coupled",
     HN_RECURRENT_LSTM,
     {{HN_ACT_HARD_SIGMOID, 0.25, 0.5}, {HN_ACT_SOFTSIGN, 0, 0}, {HN_ACT_RELU, 0, 0}},
     0,
     true,
     true,
     false},
    {"gru", HN_RECURRENT_GRU, {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_TANH, 0, 0}}, 0, false, false, false},
    {"gru bias",
     HN_RECURRENT_GRU,
     {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_SOFTSIGN, 0, 0}},
     0.5f,
     false,
     false,
     true},
    {"gru gates",
     HN_RECURRENT_GRU_GATES,
     {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_TANH, 0, 0}},
     0,
     false,
     false,
     false},
    {"gru gates clip",
     HN_RECURRENT_GRU_GATES,
     {{HN_ACT_HARD_SIGMOID, 0.25, 0.5}, {HN_ACT_TANH, 0, 0}},
     0.5f,
     false,
     false,
     false},
    {"gru hidden",
     HN_RECURRENT_GRU_HIDDEN,
     {{HN_ACT_SIGMOID, 0, 0}, {HN_ACT_TANH, 0, 0}},
     0,
     false,
     false,
     false},
};

static size_t gates_of_x(hn_recurrent_pass p) {
  return p == HN_RECURRENT_RNN ? 1 : p == HN_RECURRENT_LSTM ? 4 : 3;
}

typedef struct step {
  hn_recurrent_cell cell;
  const float *r;                   /* as the operator has it: [gates of the pass][hidden][hidden] */
  float *packed, *x, *h, *c, *next; /* of the rows, one after the other */
  float *update, *reset, *y;
  float *c0; /* before the step */
  hn_recurrent_row row[MOST_ROWS];
  size_t rows;
} step;

static float *filled(ck *c, size_t n, enum ck_fill fill) {
  float *p = ck_alloc(c, n, 0);
  ck_fill(c, p, n, fill);
  return p;
}

static step make_step(ck *c, const struct hn_recurrent_ops *ops, const form *f, size_t n, size_t rows,
                      enum ck_fill fill, bool with_y) {
  const size_t padded = (n + ops->vw - 1) / ops->vw * ops->vw, gates = hn_recurrent_gates(f->pass);
  const size_t packed = hn_recurrent_packed(ops, f->pass, n);
  /* What is not finite stands in x alone: it then shows in its own unit. */
  const enum ck_fill states = fill == CK_SPECIAL ? CK_RANDOM : fill;
  step s = {.cell = {.pass = f->pass,
                     .hidden = n,
                     .k = n,
                     .padded = padded,
                     .f = f->f,
                     .clip = f->clip,
                     .coupled = f->coupled,
                     .peepholes = f->peepholes ? filled(c, 3 * padded, states) : NULL,
                     .bias = f->bias ? filled(c, padded, states) : NULL},
            .r = filled(c, gates * n * n, states),
            .packed = ck_alloc(c, packed, 0),
            .x = filled(c, rows * gates_of_x(f->pass) * n, fill),
            .h = filled(c, rows * padded, states),
            .c = filled(c, rows * padded, states),
            .c0 = ck_alloc(c, rows * padded, 0),
            .next = ck_alloc(c, rows * padded, 0),
            .update = filled(c, rows * padded, states),
            .reset = filled(c, rows * padded, states),
            .y = with_y ? ck_alloc(c, rows * n, 0) : NULL,
            .rows = rows};
  memcpy(s.c0, s.c, rows * padded * sizeof *s.c);
  hn_recurrent_pack(ops, f->pass, s.r, n, s.packed);
  for (size_t i = 0; i < rows; i++)
    s.row[i] = (hn_recurrent_row){.x = s.x + i * gates_of_x(f->pass) * n,
                                  .h = s.h + i * padded,
                                  .next = s.next + i * padded,
                                  .c = s.c + i * padded,
                                  .update = s.update + i * padded,
                                  .reset = s.reset + i * padded,
                                  .y = with_y ? s.y + i * n : NULL};
  return s;
}

static void run_step(void *arg, const struct hn_recurrent_ops *ops) {
  const step *s = arg;
  const size_t most = hn_recurrent_blocks(s->cell.pass), blocks = s->cell.padded / ops->vw;
  for (size_t b = 0; b < blocks; b += most)
    ops->panel(&s->cell, s->packed + b * ops->vw * hn_recurrent_gates(s->cell.pass) * s->cell.hidden,
               b * ops->vw, (uint32_t)(blocks - b < most ? blocks - b : most), s->row, (uint32_t)s->rows);
}

/* Gate g's sum of a unit: h x R^T. */
static num recurrent(const step *s, const float *h, size_t g, size_t unit) {
  const size_t n = s->cell.hidden;
  const float *r = s->r + (g * n + unit) * n;
  double sum = 0, mag = 0;
  for (size_t k = 0; k < n; k++) sum += (double)h[k] * (double)r[k], mag += fabs((double)h[k] * (double)r[k]);
  return (num){sum, ((double)n + 3) * CK_EPS * mag + (double)n * CK_TINY};
}

static void expect(ck *c, size_t at, float got, num want) { ck_near(c, at, got, want.v, 1.01 * want.e); }

static void check_unit(ck *c, const step *s, size_t i, size_t unit) {
  const hn_recurrent_cell *cell = &s->cell;
  const size_t n = cell->hidden, padded = cell->padded, at = i * padded + unit;
  const float *x = s->x + i * gates_of_x(cell->pass) * n + unit, *h = s->h + i * padded;
#define X(g) exact((double)x[(g)*n])
#define GATE(g, sum) add(X(g), recurrent(s, h, sum, unit))
  num y;
  if (cell->pass == HN_RECURRENT_RNN) {
    y = activate(cell, 0, GATE(0, 0));
  } else if (cell->pass == HN_RECURRENT_LSTM) {
    const num old = exact((double)s->c0[at]);
    num in = GATE(0, 0), out = GATE(1, 1), forget = GATE(2, 2);
    const float *p = cell->peepholes ? cell->peepholes + unit : NULL;
    if (p) {
      in = add(in, times(exact((double)p[0]), old));
      forget = add(forget, times(exact((double)p[2 * padded]), old));
    }
    in = activate(cell, 0, in);
    forget = cell->coupled ? add(exact(1), (num){-in.v, in.e}) : activate(cell, 0, forget);
    const num state = add(times(forget, old), times(in, activate(cell, 1, GATE(3, 3))));
    if (p) out = add(out, times(exact((double)p[padded]), state));
    expect(c, at, s->c[at], state);
    y = times(activate(cell, 0, out), apply(cell, 2, state));
  } else if (cell->pass == HN_RECURRENT_GRU_GATES) {
    expect(c, at, s->update[at], activate(cell, 0, GATE(0, 0)));
    expect(c, at, s->reset[at], times(activate(cell, 0, GATE(1, 1)), exact((double)h[unit])));
    return;
  } else {
    num update = exact((double)s->update[at]), hidden;
    if (cell->pass == HN_RECURRENT_GRU) {
      update = activate(cell, 0, GATE(0, 0));
      hidden = recurrent(s, h, 2, unit);
      if (cell->bias) hidden = add(hidden, exact((double)cell->bias[unit]));
      hidden = add(times(hidden, activate(cell, 0, GATE(1, 1))), X(2));
    } else {
      hidden = add(X(2), recurrent(s, s->reset + i * padded, 0, unit));
    }
    const num g = activate(cell, 1, hidden);
    y = add(times(add(exact(1), (num){-update.v, update.e}), g), times(update, exact((double)h[unit])));
  }
#undef X
#undef GATE
  expect(c, at, s->next[at], y);
  if (s->y) ck_same(c, i * n + unit, s->y[i * n + unit], s->next[at]);
}

/* A NaN among a unit's inputs reaches its result; infinite ones are left to the formula. */
static bool finite_unit(ck *c, const step *s, size_t i, size_t unit) {
  const size_t n = s->cell.hidden, at = i * s->cell.padded + unit, gates = gates_of_x(s->cell.pass);
  bool finite = true, nan = false;
  for (size_t g = 0; g < gates; g++) {
    const float x = s->x[(i * gates + g) * n + unit];
    finite = finite && isfinite(x);
    nan = nan || (isnan(x) && !(s->cell.coupled && g == 2));
  }
  const hn_activation_kind f = s->cell.f[0].kind;
  const bool passes = f != HN_ACT_THRESHOLDED_RELU && s->cell.pass != HN_RECURRENT_GRU_GATES &&
                      s->cell.pass != HN_RECURRENT_GRU_HIDDEN;
  if (nan && passes) ck_true(c, isnan(s->next[at]), "a NaN was lost");
  return finite;
}

static void check_form(ck *c, const struct hn_recurrent_ops *ops, const form *f, size_t n, size_t rows,
                       enum ck_fill fill, bool with_y) {
  ck_case(c, "%s units=%zu rows=%zu fill=%s y=%d", f->name, n, rows, ck_fill_name(fill), with_y);
  step s = make_step(c, ops, f, n, rows, fill, with_y);
  run_step(&s, ops);
  for (size_t i = 0; i < rows; i++)
    for (size_t unit = 0; unit < n; unit++)
      if (finite_unit(c, &s, i, unit)) check_unit(c, &s, i, unit);
  ck_release_all(c);
}

static void check(ck *c, const struct hn_kernel *k) {
  const struct hn_recurrent_ops *ops = k->ops;
  const size_t vw = ops->vw;
  const size_t sizes[] = {1, 2, vw - 1, vw, vw + 1, 3 * vw + 1, 4 * vw, 5 * vw + 3, 67};
  unsigned turn = 0;
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (size_t rows = 1; rows <= ops->rows; rows++, turn++)
        if (sizes[i])
          check_form(c, ops, &forms[f], sizes[i], rows, (enum ck_fill)(turn % CK_FILLS), turn % 3);
}

/* ------------------------------------------------------------------ bench */

typedef struct job {
  const struct hn_recurrent_ops *ops;
  step s;
} job;

static void run_job(void *arg) {
  job *j = arg;
  run_step(&j->s, j->ops);
}

static void bench(ck *c, const struct hn_kernel *k) {
  static const struct {
    size_t form, units, rows;
  } shapes[] = {{10, 128, 1}, {10, 256, 4}, {13, 128, 1}, {0, 256, 1}};
  const struct hn_kernel *scalar = hn_kernel_find("recurrent", "f32", HN_ISA_SCALAR);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const struct hn_recurrent_ops *ops = k->ops, *plain = scalar->ops;
    const size_t n = shapes[i].units, rows = shapes[i].rows < ops->rows ? shapes[i].rows : ops->rows;
    const form *f = &forms[shapes[i].form];
    job j = {ops, make_step(c, ops, f, n, rows, CK_RANDOM, true)};
    const double t = ck_time(run_job, &j);
    const size_t same = rows < plain->rows ? rows : plain->rows;
    job p = {plain, make_step(c, plain, f, n, same, CK_RANDOM, true)};
    const double ts = k == scalar ? 0 : ck_time(run_job, &p) * (double)rows / (double)same;
    char label[48];
    snprintf(label, sizeof label, "%s %zu units, %zu rows", f->name, n, rows);
    const double gates = hn_recurrent_gates(f->pass), units = (double)(n * rows);
    const double functions = f->pass == HN_RECURRENT_LSTM ? 5 : gates;
    ck_bench_line(c, label, t,
                  &(ck_work){.flops = 2 * gates * (double)n * units,
                             .instructions = 16 * functions * units,
                             .divisions = functions * units,
                             .read = 4 * gates * (double)(n * n) + 24 * units,
                             .written = 12 * units},
                  ts);
    ck_release_all(c);
  }
}

const ck_family ck_family_recurrent = {"recurrent", check, bench};
