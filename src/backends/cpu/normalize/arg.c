/* ArgMax and ArgMin of f32 along any axis of a row-major tensor. Elements are compared as integers whose
 * order is theirs, as the reference does (NaN above everything, -0 equal to 0); for the smallest these are
 * turned round. Columns that lie side by side are compared together; a row along the last axis is taken as
 * LANES columns, whose winners are compared at the end. */
#include <stdint.h>
#include <string.h>

#include "backends/cpu/step/step.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/wide.h"
#include "optimize/step/axes.h"

enum { LANES = 16, SHORT = 64 /* rows */, PER_TASK = 16384 /* elements */ };

typedef struct head {
  bool least, last;
  int64_t outer, n, inner; /* the axis has n elements that lie `inner` apart */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!hn_step_plain_f32(x) || !hn_step_plain(y)) return hn_refuse(why, "a tensor is not row-major f32");
  if (y->dtype != HONE_DTYPE_I64) return hn_refuse(why, "the output is %s", hone_dtype_name(y->dtype));
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
  if (x->dim[axis] < 1 || x->dim[axis] > INT32_MAX) return hn_refuse(why, "the axis is empty or too long");
  h->least = strcmp(s->anchor, "ArgMin") == 0;
  h->last = hone_node_int(s->node, "select_last_index", 0) != 0;
  h->outer = hn_dims(x, 0, axis), h->n = x->dim[axis], h->inner = hn_dims(x, axis + 1, x->rank);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, 0, 4 * n, 1) + n * 0.5e-9 / (m->threads > 0 ? m->threads : 1);
}

/* Its order as an integer; turned round where flip is -1 and not 0. */
static inline int32_t key_of(uint32_t bits, int32_t flip) {
  const uint32_t size = bits << 1, sign = bits >> 31;
  int32_t k = (int32_t)(bits ^ (0u - sign) >> 1);
  k = size ? k : 0;
  return (size > 0xff000000u ? INT32_MAX : k) ^ flip;
}

/* The best of `n` vectors of LANES elements, vectors `step` elements apart, and which vector it was in. */
#define COLUMNS(NAME, BETTER)                                                                                \
  static void NAME(const uint32_t *x, int64_t n, int64_t step, int32_t flip, int32_t best[LANES],            \
                   int32_t at[LANES]) {                                                                      \
    int32_t b[LANES], a[LANES] = {0};                                                                        \
    for (int i = 0; i < LANES; i++) b[i] = key_of(x[i], flip);                                               \
    for (int32_t k = 1; k < n; k++) {                                                                        \
      const uint32_t *from = x + k * step;                                                                   \
      for (int i = 0; i < LANES; i++) {                                                                      \
        const int32_t key = key_of(from[i], flip);                                                           \
        a[i] = key BETTER b[i] ? k : a[i];                                                                   \
        b[i] = key BETTER b[i] ? key : b[i];                                                                 \
      }                                                                                                      \
    }                                                                                                        \
    memcpy(best, b, sizeof b), memcpy(at, a, sizeof a);                                                      \
  }

COLUMNS(first_of_columns, >)
COLUMNS(last_of_columns, >=)
#undef COLUMNS

/* Of LANES rows of n elements beside each other, where each has its best. */
#define ROWS(NAME, BETTER)                                                                                   \
  HN_WIDE_BODY void NAME##_body(const uint32_t *x, int64_t n, int32_t flip, int64_t *at) {                   \
    int32_t b[LANES], a[LANES] = {0};                                                                        \
    for (int i = 0; i < LANES; i++) b[i] = key_of(x[i * n], flip);                                           \
    for (int32_t k = 1; k < n; k++)                                                                          \
      for (int i = 0; i < LANES; i++) {                                                                      \
        const int32_t key = key_of(x[i * n + k], flip);                                                      \
        a[i] = key BETTER b[i] ? k : a[i];                                                                   \
        b[i] = key BETTER b[i] ? key : b[i];                                                                 \
      }                                                                                                      \
    for (int i = 0; i < LANES; i++) at[i] = a[i];                                                            \
  }                                                                                                          \
  HN_WIDE(void, NAME, NAME##_body, (const uint32_t *x, int64_t n, int32_t flip, int64_t *at),                \
          (x, n, flip, at))

ROWS(first_of_rows, >)
ROWS(last_of_rows, >=)
#undef ROWS

/* Element i of the axis, `step` apart, one after the other; begins with what is best so far. Without jumps:
 * of a short row nobody foresees where the best lies. */
static int32_t scan(const uint32_t *x, int64_t from, int64_t n, int64_t step, const head *h, int32_t *best,
                    int32_t at) {
  const int32_t flip = h->least ? -1 : 0, last = h->last;
  int32_t most = *best;
  for (int64_t k = from; k < n; k++) {
    const int32_t key = key_of(x[k * step], flip), better = -((key > most) | (last & (key == most)));
    most ^= (most ^ key) & better;
    at ^= (at ^ (int32_t)k) & better;
  }
  *best = most;
  return at;
}

static int32_t of_row(const uint32_t *x, const head *h) {
  int32_t best[LANES], at[LANES], most = key_of(x[0], h->least ? -1 : 0), place = 0;
  const int64_t whole = h->n / LANES;
  if (!whole) return scan(x, 1, h->n, 1, h, &most, 0);
  (h->last ? last_of_columns : first_of_columns)(x, whole, LANES, h->least ? -1 : 0, best, at);
  for (int32_t i = 0; i < LANES; i++) {
    const int32_t k = at[i] * LANES + i;
    const bool earlier = k < place;
    if (best[i] < most || (best[i] == most && earlier == h->last)) continue;
    most = best[i], place = k;
  }
  return scan(x, HN_FAULT("arg_tail") ? h->n : whole * LANES, h->n, 1, h, &most, place);
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  int64_t count, at_once; /* results: all, a task's */
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const head *h = j->h;
  const uint32_t *x = j->run->in[0];
  int64_t *y = j->run->out[0];
  const int64_t end = hn_min(j->count, (index + 1) * j->at_once);
  int32_t best[LANES], at[LANES];
  (void)thread;
  for (int64_t i = index * j->at_once, some; i < end; i += some) {
    const int64_t row = i / h->inner, column = i % h->inner;
    const uint32_t *from = x + row * h->n * h->inner + column;
    some = 1;
    if (h->inner == 1 && h->n <= SHORT && end - i >= LANES) {
      some = LANES;
      (h->last ? last_of_rows : first_of_rows)(from, h->n, h->least ? -1 : 0, y + i);
    } else if (h->inner == 1) {
      y[i] = of_row(from, h);
    } else if (hn_min(h->inner - column, end - i) >= LANES) {
      some = LANES;
      (h->last ? last_of_columns : first_of_columns)(from, h->n, h->inner, h->least ? -1 : 0, best, at);
      for (int k = 0; k < LANES; k++) y[i + k] = at[k];
    } else {
      int32_t most = key_of(from[0], h->least ? -1 : 0);
      y[i] = scan(from, 1, h->n, h->inner, h, &most, 0);
    }
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .count = h->outer * h->inner};
  (void)error;
  if (j.count == 0) return HONE_OK;
  j.at_once = hn_div_up(hn_max(1, PER_TASK / h->n), LANES) * LANES;
  const int64_t tasks = hn_div_up(j.count, j.at_once);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, arg_max, "ArgMax", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
HN_TACTIC(cpu, arg_min, "ArgMin", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
