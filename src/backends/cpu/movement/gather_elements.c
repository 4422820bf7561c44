/* GatherElements: for every index the element that it names along one axis, at its own place along the
 * others. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/movement/indices.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"
#include "optimize/step/boxes.h"

enum { PER_TASK = 8192 }; /* elements */

typedef struct head {
  int32_t element;
  bool wide;          /* indices are i64 */
  int64_t axis, step; /* the axis' elements, and how far apart they lie in the data */
  hn_nest nest;       /* over the indices; operand 0: indices and output, 1: the data without the axis */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc, *y = &s->output[0].desc;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!hn_boxes_check(s, &h->element, why) || !hn_indices_accept(s, &h->wide, why)) return false;
  if (!hn_step_plain(x) || !hn_step_plain(y)) return hn_refuse(why, "a tensor is not row-major");
  int64_t axis = hone_node_int(s->node, "axis", 0), along[HONE_MAX_RANK];
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank || i->rank != x->rank) return hn_refuse(why, "axis outside the rank");
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis && i->dim[d] > x->dim[d]) return hn_refuse(why, "more indices than data");
    along[d] = d == axis ? 0 : x->stride[d];
  }
  h->axis = x->dim[axis], h->step = x->stride[axis];
  hn_nest_begin(&h->nest, i->rank, i->dim);
  hn_nest_add(&h->nest, i->stride);
  hn_nest_add(&h->nest, along);
  hn_nest_finish(&h->nest);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->output[0].desc);
  const double bytes =
      n * (double)(2 * hone_dtype_size(s->input[0].desc.dtype) + hone_dtype_size(s->input[1].desc.dtype));
  return hn_step_seconds(m, 0, bytes, 1) + n * 0.4e-9 / (m->threads > 0 ? m->threads : 1);
}

/* A row of the nest: y[i] = x[index[i] * step + i * along]. Returns whether an index names nothing; what is
 * written there is the first element. */
typedef bool (*row_fn)(unsigned char *y, const unsigned char *x, const void *index, int64_t n, int64_t axis,
                       int64_t step, int64_t along);

#define ROW(SIZE, INDEX)                                                                                     \
  static bool row_##SIZE##_##INDEX(unsigned char *y, const unsigned char *x, const void *index, int64_t n,   \
                                   int64_t axis, int64_t step, int64_t along) {                              \
    const INDEX##_t *from = index;                                                                           \
    bool outside = false;                                                                                    \
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++) {                                                \
      const int64_t k = hn_index_place(from[i], axis);                                                       \
      const bool inside = (uint64_t)k < (uint64_t)axis;                                                      \
      outside |= !inside;                                                                                    \
      memcpy(y + i * (SIZE), x + ((inside ? k : 0) * step + i * along) * (SIZE), SIZE);                      \
    }                                                                                                        \
    return outside;                                                                                          \
  }
ROW(1, int32)
ROW(2, int32)
ROW(4, int32) ROW(8, int32) ROW(1, int64) ROW(2, int64) ROW(4, int64) ROW(8, int64)

    static row_fn row_of(const head *h) {
  static const row_fn rows[2][4] = {{row_1_int32, row_2_int32, row_4_int32, row_8_int32},
                                    {row_1_int64, row_2_int64, row_4_int64, row_8_int64}};
  return rows[h->wide][h->element == 1 ? 0 : h->element == 2 ? 1 : h->element == 4 ? 2 : 3];
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  row_fn row;
  int64_t count;
  atomic_bool outside; /* an index was outside of the axis */
} job;

static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const head *h = j->h;
  const hn_nest *nest = &h->nest;
  const int32_t last = nest->rank - 1;
  const int64_t inner = nest->dim[last], along = nest->stride[1][last];
  const unsigned char *x = j->run->in[0], *from = j->run->in[1];
  unsigned char *y = j->run->out[0];
  const int64_t end = hn_min(j->count, (index + 1) * PER_TASK);
  bool outside = false;
  (void)thread;
  for (int64_t at = index * PER_TASK, n; at < end; at += n) {
    const int64_t row = at / inner, column = at % inner;
    n = hn_min(inner - column, end - at);
    const int64_t base =
        hn_nest_offset(nest, 1, row, 1) + (HN_FAULT("gather_elements_column") ? 0 : column * along);
    outside |= j->row(y + at * h->element, x + base * h->element, from + at * (h->wide ? 8 : 4), n, h->axis,
                      h->step, along);
  }
  if (outside) atomic_store_explicit(&j->outside, true, memory_order_relaxed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .row = row_of(h), .count = hn_nest_count(&h->nest)};
  if (j.count == 0) return HONE_OK;
  atomic_init(&j.outside, h->axis == 0);
  const int64_t tasks = hn_div_up(j.count, PER_TASK);
  if (h->axis > 0 && tasks == 1)
    task(&j, 0, 0);
  else if (h->axis > 0)
    r->parallel(r->pool, tasks, task, &j);
  if (!atomic_load_explicit(&j.outside, memory_order_relaxed)) return HONE_OK;
  return hn_indices_check(r->step, r->in[1], h->wide, j.count, h->axis, error);
}

HN_TACTIC(cpu, gather_elements, "GatherElements", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
