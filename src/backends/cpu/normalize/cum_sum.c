/* CumSum and CumProd: running sums and products along a constant axis. Columns that lie side by side are
 * summed together, lines along the last axis a few at a time. Floats add up in f64, as in the reference;
 * columns of at most LONG numbers as they are, which takes half of the time, and longer ones in parts of
 * them. Where that leaves the range of f32, it is done again in f64: what is within it again is right. */
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/wide.h"
#include "optimize/step/axes.h"

/* Columns go together in blocks that bring whole pages, and lines of rows in fewer: each is read at its own
 * place. */
enum {
  FEW = 4,
  SOME = 8,
  LANES = 32,
  LONG = 4096,
  PART = 512,
  BLOCK = 2048,
  PER_TASK = 16384 /* elements */
};

typedef struct head {
  hone_dtype type;
  bool exclusive, reverse, product;
  int64_t outer, n, inner; /* lines of n elements that lie `inner` apart */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *a = &s->input[1].desc, *y = &s->output[0].desc;
  (void)m;
  memset(h, 0, sizeof *h);
  const size_t size = hone_dtype_size(x->dtype);
  if (x->dtype == HONE_DTYPE_STRING || (size != 4 && size != 8))
    return hn_refuse(why, "the input is %s", hone_dtype_name(x->dtype));
  if (y->dtype != x->dtype || !hn_step_plain(x) || !hn_step_plain(y))
    return hn_refuse(why, "a tensor is not row-major");
  const void *at = s->input[1].constant;
  if (!at || hone_desc_count(a) != 1) return hn_refuse(why, "the axis is not constant");
  int32_t axis;
  if (!hn_step_axis(a->dtype == HONE_DTYPE_I32 ? *(const int32_t *)at : *(const int64_t *)at, x->rank, &axis,
                    why))
    return false;
  h->type = x->dtype;
  h->product = strcmp(s->anchor, "CumProd") == 0;
  h->exclusive = hone_node_int(s->node, "exclusive", 0) != 0;
  h->reverse = hone_node_int(s->node, "reverse", 0) != 0;
  h->outer = hn_dims(x, 0, axis), h->n = x->dim[axis], h->inner = hn_dims(x, axis + 1, x->rank);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  const double bytes = 2 * n * (double)hone_dtype_size(s->input[0].desc.dtype);
  return hn_step_seconds(m, 0, bytes, 1) + n * 0.5e-9 / (m->threads > 0 ? m->threads : 1);
}

/* `lanes` lines; element k of line i lies at first + i * apart + k * step. */
typedef struct lines {
  int64_t first, apart, step, n, lanes;
  bool exclusive;
} lines;

/* Columns beside each other: a row is the one before it and what comes to it, in the data's own type. */
#define ROWS(NAME, TYPE, START, WITH)                                                                        \
  typedef TYPE NAME##_part __attribute__((vector_size(64)));                                                 \
  HN_WIDE_BODY void NAME##_row(TYPE *to, const TYPE *before, const TYPE *from, int64_t n) {                  \
    NAME##_part a, b;                                                                                        \
    const int64_t one = sizeof a / sizeof *to;                                                               \
    int64_t i = 0;                                                                                           \
    for (; i + one <= n; i += one) {                                                                         \
      memcpy(&a, before + i, sizeof a), memcpy(&b, from + i, sizeof b);                                      \
      a = a WITH b;                                                                                          \
      memcpy(to + i, &a, sizeof a);                                                                          \
    }                                                                                                        \
    for (; i < n; i++) to[i] = before[i] WITH from[i];                                                       \
  }                                                                                                          \
  HN_WIDE_BODY void NAME##_columns_body(TYPE *y, const TYPE *x, const lines *l) {                            \
    TYPE *to = y + l->first;                                                                                 \
    const TYPE *from = x + l->first;                                                                         \
    for (int64_t i = 0; i < l->lanes; i++) to[i] = l->exclusive ? START : START WITH from[i];                \
    if (!l->exclusive) from += l->step;                                                                      \
    for (int64_t k = 1; k < l->n; k++, to += l->step, from += l->step)                                       \
      NAME##_row(to + l->step, to, from, l->lanes);                                                          \
  }                                                                                                          \
  HN_WIDE(void, NAME##_columns, NAME##_columns_body, (void *y, const void *x, const lines *l), (y, x, l))

/* The same with totals of another type beside the rows. */
#define TOTALS(NAME, TYPE, SUM, START, WITH)                                                                 \
  HN_WIDE_BODY void NAME##_columns_body(TYPE *restrict y, const TYPE *restrict x, const lines *l) {          \
    SUM total[BLOCK];                                                                                        \
    const int64_t lanes = l->lanes, whole = lanes - lanes % LANES, later = l->exclusive ? 1 : 0;             \
    const TYPE *from = x + l->first;                                                                         \
    TYPE *to = y + l->first;                                                                                 \
    for (int64_t i = 0; i < lanes; i++) total[i] = START;                                                    \
    for (int64_t i = 0; i < lanes && later; i++) to[i] = START;                                              \
    to += later * l->step;                                                                                   \
    for (int64_t k = later; k < l->n; k++, to += l->step, from += l->step) {                                 \
      for (int64_t b = 0; b < whole; b += LANES)                                                             \
        for (int64_t i = b; i < b + LANES; i++) to[i] = (TYPE)(total[i] = total[i] WITH from[i]);            \
      for (int64_t i = whole; i < lanes; i++) to[i] = (TYPE)(total[i] = total[i] WITH from[i]);              \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, NAME##_columns, NAME##_columns_body, (void *y, const void *x, const lines *l), (y, x, l))

ROWS(sum_f32, float, 0, +)
TOTALS(wide_sum_f32, float, double, 0, +)

/* No infinity and no NaN. */
typedef int32_t words __attribute__((vector_size(64)));
HN_WIDE_BODY bool finite_body(const float *x, int64_t n) {
  enum { EXPONENT = 0x7f800000, ONE = sizeof(words) / sizeof(float) };
  words any = {0}, v;
  int32_t all = 0;
  int64_t i = 0;
  for (; i + ONE <= n; i += ONE) {
    memcpy(&v, x + i, sizeof v);
    any |= (v & EXPONENT) == EXPONENT;
  }
  for (int k = 0; k < ONE; k++) all |= any[k];
  for (; i < n; i++) all |= !(x[i] - x[i] == 0);
  return !all || HN_FAULT("cum_sum_beyond");
}
HN_WIDE(bool, all_finite, finite_body, (const float *x, int64_t n), (x, n))

/* Columns of f32 as they are; what left their range, which its last sum shows, in f64. */
static void some_sum_f32_columns(void *y, const void *x, const lines *l) {
  sum_f32_columns(y, x, l);
  if (l->n > 0 && !all_finite((const float *)y + l->first + (l->n - 1) * l->step, l->lanes))
    wide_sum_f32_columns(y, x, l);
}

/* Long columns of f32: parts of PART rows as they are, and what lies before a part in f64. */
typedef struct parts {
  double before[BLOCK];
  float rounded[BLOCK], part[BLOCK];
} parts;

HN_WIDE_BODY void begin_part(parts *p, int64_t lanes) {
  const bool whole = !HN_FAULT("cum_sum_part_twice");
  for (int64_t b = 0; b < lanes; b += LANES)
    for (int64_t i = b; i < b + LANES; i++) {
      p->before[i] += (double)p->part[i], p->rounded[i] = (float)p->before[i];
      p->part[i] = whole ? 0 : p->part[i];
    }
}

/* False: the range was left. */
HN_WIDE_BODY bool long_columns_body(float *restrict y, const float *restrict x, const lines *l) {
  parts p;
  bool within = true;
  const int64_t lanes = l->lanes, whole = lanes - lanes % LANES, later = l->exclusive ? 1 : 0;
  const float *from = x + l->first;
  float *to = y + l->first;
  memset(&p, 0, sizeof p);
  for (int64_t i = 0; i < lanes && later; i++) to[i] = 0;
  to += later * l->step;
  for (int64_t k = later; k < l->n; k++, to += l->step, from += l->step) {
    if (k % PART == 0) {
      begin_part(&p, lanes);
      within = within && finite_body(p.rounded, lanes);
    }
    for (int64_t b = 0; b < whole; b += LANES)
      for (int64_t i = b; i < b + LANES; i++) to[i] = p.rounded[i] + (p.part[i] += from[i]);
    for (int64_t i = whole; i < lanes; i++) to[i] = p.rounded[i] + (p.part[i] += from[i]);
  }
  return within && finite_body(p.part, lanes);
}
HN_WIDE(bool, long_columns, long_columns_body, (void *y, const void *x, const lines *l), (y, x, l))

static void long_sum_f32_columns(void *y, const void *x, const lines *l) {
  if (!long_columns(y, x, l)) wide_sum_f32_columns(y, x, l);
}

/* Lines along the last axis, four at a time: one number of each. What is left goes line by line. */
#define LINES(NAME, TYPE, SUM, START, WITH)                                                                  \
  HN_WIDE_BODY void NAME##_some(TYPE *restrict y, const TYPE *restrict x, const lines *l, int64_t line,      \
                                int64_t some) {                                                              \
    SUM total[FEW] = {START, START, START, START};                                                           \
    for (int64_t k = 0, at = l->first + line * l->apart; k < l->n; k++, at += l->step)                       \
      for (int64_t j = 0; j < some; j++) {                                                                   \
        const SUM v = (SUM)x[at + j * l->apart], before = total[j];                                          \
        total[j] WITH## = v;                                                                                 \
        y[at + j * l->apart] = (TYPE)(l->exclusive ? before : total[j]);                                     \
      }                                                                                                      \
  }                                                                                                          \
  static void NAME##_lines(void *y, const void *x, const lines *l) {                                         \
    int64_t i = 0;                                                                                           \
    for (; i + FEW <= l->lanes; i += FEW) NAME##_some(y, x, l, i, FEW);                                      \
    for (; i < l->lanes; i++) NAME##_some(y, x, l, i, 1);                                                    \
  }

/* Lines along the last axis, SOME numbers at a time: each becomes the sum of those before it in three steps,
 * and the line's total, of another type, comes to all of them. Where that left a type's range, one by one:
 * neighbours' sums may leave it where those from the first on do not. */
#define SCAN(NAME, TYPE, SUM, START, WITH)                                                                   \
  typedef TYPE NAME##_v __attribute__((vector_size(SOME * sizeof(TYPE))));                                   \
  HN_WIDE_BODY SUM NAME##_scan(TYPE *restrict y, const TYPE *restrict x, const lines *l, int64_t at,         \
                               bool back, bool exclusive) {                                                  \
    SUM total = START;                                                                                       \
    const NAME##_v none = {START, START, START, START, START, START, START, START};                          \
    NAME##_v beyond = {0};                                                                                   \
    const int64_t first = at;                                                                                \
    int64_t k = 0;                                                                                           \
    for (; k + SOME <= l->n; k += SOME, at += l->step * SOME) {                                              \
      const int64_t low = back ? at - (SOME - 1) : at;                                                       \
      NAME##_v v;                                                                                            \
      memcpy(&v, x + low, sizeof v);                                                                         \
      if (back) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);                                   \
      v = v WITH __builtin_shufflevector(v, none, 8, 0, 1, 2, 3, 4, 5, 6);                                   \
      v = v WITH __builtin_shufflevector(v, none, 8, 8, 0, 1, 2, 3, 4, 5);                                   \
      v = v WITH __builtin_shufflevector(v, none, 8, 8, 8, 8, 0, 1, 2, 3);                                   \
      const TYPE last = v[SOME - 1];                                                                         \
      beyond += v * 0; /* the last one, too, which an exclusive sum does not show */                         \
      if (exclusive) v = __builtin_shufflevector(v, none, 8, 0, 1, 2, 3, 4, 5, 6);                           \
      v = v WITH(TYPE) total;                                                                                \
      beyond += v * 0;                                                                                       \
      if (back) v = __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);                                   \
      memcpy(y + low, &v, sizeof v);                                                                         \
      total = total WITH(SUM) last;                                                                          \
    }                                                                                                        \
    beyond += __builtin_shufflevector(beyond, beyond, 4, 5, 6, 7, 0, 1, 2, 3);                               \
    beyond += __builtin_shufflevector(beyond, beyond, 2, 3, 0, 1, 6, 7, 4, 5);                               \
    const bool again = beyond[0] + beyond[1] != 0; /* or no number */                                        \
    if (again && !HN_FAULT("cum_sum_beyond")) total = START, k = 0, at = first;                              \
    for (; k < l->n; k++, at += l->step) {                                                                   \
      const SUM before = total;                                                                              \
      total = total WITH(SUM) x[at];                                                                         \
      y[at] = (TYPE)(exclusive ? before : total);                                                            \
    }                                                                                                        \
    return total;                                                                                            \
  }                                                                                                          \
  HN_WIDE_BODY void NAME##_lines_body(TYPE *restrict y, const TYPE *restrict x, const lines *l) {            \
    for (int64_t i = 0; i < l->lanes; i++) {                                                                 \
      const int64_t at = l->first + i * l->apart;                                                            \
      if (l->step > 0 && !l->exclusive)                                                                      \
        NAME##_scan(y, x, l, at, false, false);                                                              \
      else if (l->step > 0)                                                                                  \
        NAME##_scan(y, x, l, at, false, true);                                                               \
      else                                                                                                   \
        NAME##_scan(y, x, l, at, true, l->exclusive);                                                        \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, NAME##_lines, NAME##_lines_body, (void *y, const void *x, const lines *l), (y, x, l))

ROWS(sum_f64, double, 0, +)
ROWS(sum_i32, uint32_t, 0, +)
ROWS(sum_i64, uint64_t, 0, +)
ROWS(product_f64, double, 1, *)
ROWS(product_i32, uint32_t, 1, *)
ROWS(product_i64, uint64_t, 1, *)
TOTALS(product_f32, float, double, 1, *)
SCAN(sum_f32, float, double, 0, +)
SCAN(sum_f64, double, double, 0, +)
SCAN(sum_i32, uint32_t, uint32_t, 0, +)
SCAN(sum_i64, uint64_t, uint64_t, 0, +)
LINES(product_f32, float, double, 1, *)
LINES(product_f64, double, double, 1, *)
SCAN(product_i32, uint32_t, uint32_t, 1, *)
SCAN(product_i64, uint64_t, uint64_t, 1, *)

typedef void lines_fn(void *y, const void *x, const lines *l);

typedef struct ways {
  lines_fn *columns, *lines, *long_columns;
} ways;

#define WAYS(NAME)                                                                                           \
  { NAME##_columns, NAME##_lines, NAME##_columns }
static const ways sums[] = {{some_sum_f32_columns, sum_f32_lines, long_sum_f32_columns},
                            WAYS(sum_f64),
                            WAYS(sum_i32),
                            WAYS(sum_i64)},
                  products[] = {WAYS(product_f32), WAYS(product_f64), WAYS(product_i32), WAYS(product_i64)};

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t blocks, at_once; /* of LANES lines or BLOCK columns: all, a slice's, a task's */
} job;

static void block(const job *j, int64_t b) {
  const head *h = j->h;
  lines l = {.n = h->n, .step = h->inner, .exclusive = h->exclusive && !HN_FAULT("cum_sum_inclusive")};
  if (h->inner == 1) { /* rows below one another */
    l.first = b * LANES * h->n, l.apart = h->n, l.lanes = hn_min(LANES, h->outer - b * LANES);
  } else {
    const int64_t row = hn_div_up(h->inner, BLOCK), column = b % row * BLOCK;
    l.first = b / row * h->n * h->inner + column, l.apart = 1, l.lanes = hn_min(BLOCK, h->inner - column);
  }
  if (h->reverse && !HN_FAULT("cum_sum_forward")) l.first += (h->n - 1) * h->inner, l.step = -h->inner;
  const bool product = h->product && !HN_FAULT("cum_prod_adds");
  const size_t kind = h->type == HONE_DTYPE_F32       ? 0
                      : h->type == HONE_DTYPE_F64     ? 1
                      : hone_dtype_size(h->type) == 4 ? 2
                                                      : 3;
  const ways *w = (product ? products : sums) + kind;
  (l.apart != 1 ? w->lines : l.n > LONG ? w->long_columns : w->columns)(j->run->out[0], j->run->in[0], &l);
}

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  (void)thread;
  const int64_t end = hn_min(j->blocks, (index + 1) * j->at_once);
  for (int64_t b = index * j->at_once; b < end; b++) block(j, b);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  (void)error;
  if (h->outer * h->n * h->inner == 0) return HONE_OK;
  job j = {.run = r, .h = h};
  const int64_t lanes = h->inner == 1 ? LANES : BLOCK;
  j.blocks = h->inner == 1 ? hn_div_up(h->outer, lanes) : h->outer * hn_div_up(h->inner, lanes);
  j.at_once = hn_max(1, PER_TASK / (h->n * lanes));
  const int64_t tasks = hn_div_up(j.blocks, j.at_once);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, cum_prod, "CumProd", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
HN_TACTIC(cpu, cum_sum, "CumSum", 5, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
