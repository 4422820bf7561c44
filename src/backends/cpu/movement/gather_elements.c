/* GatherElements: for every index the element that it names along one axis, at its own place along the
 * others. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/lookup/lookup.h"
#include "backends/cpu/movement/indices.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"
#include "optimize/step/axes.h"
#include "optimize/step/boxes.h"

enum { PER_TASK = 8192, AT_ONCE = 256 }; /* elements */

typedef struct head {
  hn_isa isa;
  int32_t element;
  bool wide;          /* indices are i64 */
  int64_t axis, step; /* the axis' elements, and how far apart they lie in the data */
  hn_nest nest;       /* over the indices; operand 0: indices and output, 1: the data without the axis */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_lookup_find(h->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->isa));
  if (!hn_boxes_check(s, &h->element, why) || !hn_indices_accept(s, &h->wide, why)) return false;
  if (!hn_step_plain(x) || !hn_step_plain(y)) return hn_refuse(why, "a tensor is not row-major");
  int64_t along[HONE_MAX_RANK];
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
  if (i->rank != x->rank) return hn_refuse(why, "data and indices differ in rank");
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis && i->dim[d] > x->dim[d]) return hn_refuse(why, "more indices than data");
    along[d] = d == axis ? 0 : x->stride[d];
  }
  h->axis = x->dim[axis], h->step = x->stride[axis];
  if (h->axis > UINT32_MAX) return hn_refuse(why, "the axis is too long");
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

/* y[i] = x[place[i] * step + i * along], elements of `size` bytes. */
static void move_places(unsigned char *y, const unsigned char *x, const uint32_t *place, int64_t n,
                        int64_t step, int64_t along, int32_t size) {
#define MOVE(SIZE)                                                                                           \
  if (step == 1 && along == 0)                                                                               \
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                                                  \
        memcpy(y + i * (SIZE), x + (int64_t)place[i] * (SIZE), SIZE);                                        \
  else                                                                                                       \
    _Pragma("GCC unroll 4") for (int64_t i = 0; i < n; i++)                                                  \
        memcpy(y + i * (SIZE), x + (place[i] * step + i * along) * (SIZE), SIZE);                            \
  break
  switch (size) {
  case 1: MOVE(1);
  case 2: MOVE(2);
  case 4: MOVE(4);
  default: MOVE(8);
  }
#undef MOVE
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  const struct hn_lookup_ops *ops;
  int64_t count;
  atomic_bool outside; /* an index was outside of the axis */
} job;

/* A row of the nest, or a part of it. Whether an index is outside of the axis: its element is another one
 * then. */
static bool part(const job *j, unsigned char *y, const unsigned char *x, const unsigned char *index,
                 int64_t n, int64_t along) {
  const head *h = j->h;
  const uint32_t axis = (uint32_t)h->axis;
  uint32_t place[AT_ONCE];
  bool outside = false;
  if (h->element == 4 && h->step == 1 && along == 0 && axis <= j->ops->most) {
    uint32_t *to = (uint32_t *)(void *)y;
    const uint32_t *from = (const uint32_t *)(const void *)x;
    return h->wide ? j->ops->words_i64(to, from, (const int64_t *)(const void *)index, (size_t)n, axis)
                   : j->ops->words_i32(to, from, (const int32_t *)(const void *)index, (size_t)n, axis);
  }
  for (int64_t i = 0, some; i < n; i += some, index += some * (h->wide ? 8 : 4)) {
    some = hn_min(AT_ONCE, n - i);
    outside |= h->wide ? j->ops->places_i64(place, (const int64_t *)(const void *)index, (size_t)some, axis)
                       : j->ops->places_i32(place, (const int32_t *)(const void *)index, (size_t)some, axis);
    move_places(y + i * h->element, x + i * along * h->element, place, some, h->step, along, h->element);
  }
  return outside;
}

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
    outside |= part(j, y + at * h->element, x + base * h->element, from + at * (h->wide ? 8 : 4), n, along);
  }
  if (outside) atomic_store_explicit(&j->outside, true, memory_order_relaxed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .ops = hn_lookup_find(h->isa), .count = hn_nest_count(&h->nest)};
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
