/* CumSum and CumProd: running sums and products along a constant axis. Columns that lie side by side are
 * summed together, lines along the last axis a few at a time; floats in f64, as the reference does. */
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
enum { FEW = 4, LANES = 32, BLOCK = 2048, PER_TASK = 16384 /* elements */ };

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

/* Columns beside each other as vectors; lines along the last axis four at a time, one number of each. */
#define RUNS(NAME, TYPE, SUM, START, WITH)                                                                   \
  HN_WIDE_BODY void NAME##_columns_body(TYPE *restrict y, const TYPE *restrict x, const lines *l) {          \
    SUM total[BLOCK];                                                                                        \
    const int64_t lanes = l->lanes, whole = l->exclusive ? 0 : lanes - lanes % LANES;                        \
    for (int64_t i = 0; i < lanes; i++) total[i] = START;                                                    \
    for (int64_t k = 0, at = l->first; k < l->n; k++, at += l->step) {                                       \
      const TYPE *from = x + at;                                                                             \
      TYPE *to = y + at;                                                                                     \
      for (int64_t b = 0; b < whole; b += LANES)                                                             \
        for (int64_t i = b; i < b + LANES; i++) to[i] = (TYPE)(total[i] WITH(SUM) from[i]);                  \
      for (int64_t i = whole; i < lanes; i++) {                                                              \
        const SUM v = (SUM)from[i], before = total[i];                                                       \
        total[i] WITH v;                                                                                     \
        to[i] = (TYPE)(l->exclusive ? before : total[i]);                                                    \
      }                                                                                                      \
    }                                                                                                        \
  }                                                                                                          \
  HN_WIDE(void, NAME##_columns, NAME##_columns_body, (void *y, const void *x, const lines *l), (y, x, l))    \
  static void NAME##_lines(TYPE *restrict y, const TYPE *restrict x, const lines *l) {                       \
    for (int64_t i = 0; i < l->lanes; i += FEW) {                                                            \
      SUM total[FEW] = {START, START, START, START};                                                         \
      const int64_t some = hn_min(FEW, l->lanes - i);                                                        \
      for (int64_t k = 0, at = l->first + i * l->apart; k < l->n; k++, at += l->step)                        \
        for (int64_t j = 0; j < FEW; j++) {                                                                  \
          if (j >= some) break;                                                                              \
          const SUM v = (SUM)x[at + j * l->apart], before = total[j];                                        \
          total[j] WITH v;                                                                                   \
          y[at + j * l->apart] = (TYPE)(l->exclusive ? before : total[j]);                                   \
        }                                                                                                    \
    }                                                                                                        \
  }                                                                                                          \
  static void NAME(void *y, const void *x, const lines *l) {                                                 \
    if (l->apart == 1)                                                                                       \
      NAME##_columns(y, x, l);                                                                               \
    else                                                                                                     \
      NAME##_lines(y, x, l);                                                                                 \
  }

RUNS(sum_f32, float, double, 0, +=)
RUNS(sum_f64, double, double, 0, +=)
RUNS(sum_i32, uint32_t, uint32_t, 0, +=)
RUNS(sum_i64, uint64_t, uint64_t, 0, +=)
RUNS(product_f32, float, double, 1, *=)
RUNS(product_f64, double, double, 1, *=)
RUNS(product_i32, uint32_t, uint32_t, 1, *=)
RUNS(product_i64, uint64_t, uint64_t, 1, *=)
#undef RUNS

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t blocks, at_once; /* of LANES lines or BLOCK columns: all, a slice's, a task's */
} job;

static void block(const job *j, int64_t b) {
  const head *h = j->h;
  lines l = {.n = h->n, .step = h->inner, .exclusive = h->exclusive};
  if (h->inner == 1) { /* rows below one another */
    l.first = b * LANES * h->n, l.apart = h->n, l.lanes = hn_min(LANES, h->outer - b * LANES);
  } else {
    const int64_t row = hn_div_up(h->inner, BLOCK), column = b % row * BLOCK;
    l.first = b / row * h->n * h->inner + column, l.apart = 1, l.lanes = hn_min(BLOCK, h->inner - column);
  }
  if (h->reverse && !HN_FAULT("cum_sum_forward")) l.first += (h->n - 1) * h->inner, l.step = -h->inner;
  void *y = j->run->out[0];
  const void *x = j->run->in[0];
  const bool product = h->product && !HN_FAULT("cum_prod_adds");
  if (h->type == HONE_DTYPE_F32)
    (product ? product_f32 : sum_f32)(y, x, &l);
  else if (h->type == HONE_DTYPE_F64)
    (product ? product_f64 : sum_f64)(y, x, &l);
  else if (hone_dtype_size(h->type) == 4)
    (product ? product_i32 : sum_i32)(y, x, &l);
  else
    (product ? product_i64 : sum_i64)(y, x, &l);
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
HN_TACTIC(cpu, cum_sum, "CumSum", 3, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
