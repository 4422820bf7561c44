/* ScatterElements: every update goes to the place that its index names along one axis, in the order of the
 * indices. Updates that differ in place along another axis never meet: threads share what lies outside of the
 * axis. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/lookup/lookup.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/scatter.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "base/nest.h"

enum { PER_TASK = 8192, AT_ONCE = 256 }; /* elements */

typedef struct blob_head {
  hn_isa isa;
  int32_t element, how;
  bool wide;          /* indices are i64 */
  int64_t axis, step; /* the axis' elements, and how far apart they lie in the data */
  int64_t unit;       /* consecutive indices that one thread takes in order */
  hn_nest nest;       /* over the indices; operand 0: indices and updates, 1: the data without the axis */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc, *u = &s->input[2].desc;
  hn_combine how;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_lookup_find(h->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->isa));
  if (!hn_scatter_accept(s, &h->element, &how, why) || !hn_indices_accept(s, &h->wide, why)) return false;
  int64_t axis = hone_node_int(s->node, "axis", 0), along[HONE_MAX_RANK];
  if (axis < 0) axis += x->rank;
  if (axis < 0 || axis >= x->rank || i->rank != x->rank || !hone_desc_same_dims(i, u))
    return hn_refuse(why, "axis outside the rank");
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis && i->dim[d] > x->dim[d]) return hn_refuse(why, "more indices than data");
    along[d] = d == axis ? 0 : x->stride[d];
  }
  h->how = how, h->axis = x->dim[axis], h->step = x->stride[axis];
  if (h->axis > UINT32_MAX) return hn_refuse(why, "the axis is too long");
  hn_nest_begin(&h->nest, i->rank, i->dim);
  hn_nest_add(&h->nest, i->stride);
  hn_nest_add(&h->nest, along);
  hn_nest_finish(&h->nest);
  h->unit = 1;
  if (i->dim[axis] > 1)
    for (int64_t d = axis; d < i->rank; d++) h->unit *= i->dim[d];
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double n = (double)hn_nest_count(&h.nest);
  const double bytes = 2 * (double)hone_desc_bytes(&s->output[0].desc) + n * (h.element + (h.wide ? 8 : 4));
  const bool serial = (double)h.unit == n;
  return hn_step_seconds(m, 0, bytes, 1) + n * 0.5e-9 / (serial || m->threads == 0 ? 1 : m->threads);
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
  const struct hn_lookup_ops *ops;
  int64_t count, per_task;
  atomic_bool outside; /* an index was outside of the axis */
} job;

/* y[place[i] * step + i * along] = u[i], or combined with it. */
static void put(const blob_head *h, unsigned char *y, const uint32_t *place, const unsigned char *u,
                int64_t n, int64_t along) {
#define PUT(SIZE)                                                                                            \
  for (int64_t i = 0; i < n; i++)                                                                            \
    memcpy(y + (place[i] * h->step + i * along) * (SIZE), u + i * (SIZE), SIZE);                             \
  break
  if (h->how != HN_COMBINE_NONE) {
    float *to = (float *)(void *)y;
    const float *from = (const float *)(const void *)u;
    for (int64_t i = 0; i < n; i++)
      hn_scatter_combine((hn_combine)h->how, to + place[i] * h->step + i * along, from + i, 1);
    return;
  }
  switch (h->element) {
  case 1: PUT(1);
  case 2: PUT(2);
  case 4: PUT(4);
  default: PUT(8);
  }
#undef PUT
}

/* A row of the nest, or a part of it, up to the first indices outside of the axis, of which it says whether
 * there are any. */
static bool part(const job *j, int64_t at, int64_t n, int64_t base, int64_t along) {
  const blob_head *h = j->h;
  const unsigned char *index = (const unsigned char *)j->run->in[1] + at * (h->wide ? 8 : 4);
  const unsigned char *u = (const unsigned char *)j->run->in[2] + at * h->element;
  unsigned char *y = (unsigned char *)j->run->out[0] + base * h->element;
  uint32_t place[AT_ONCE];
  for (int64_t i = 0, some; i < n; i += some, index += some * (h->wide ? 8 : 4), u += some * h->element) {
    some = hn_min(AT_ONCE, n - i);
    if (h->wide
            ? j->ops->places_i64(place, (const int64_t *)(const void *)index, (size_t)some, (uint32_t)h->axis)
            : j->ops->places_i32(place, (const int32_t *)(const void *)index, (size_t)some,
                                 (uint32_t)h->axis))
      return true;
    put(h, y + i * along * h->element, place, u, some, along);
  }
  return false;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const hn_nest *nest = &j->h->nest;
  const int32_t last = nest->rank - 1;
  const int64_t inner = nest->dim[last], along = nest->stride[1][last];
  const int64_t end = hn_min(j->count, (index + 1) * j->per_task);
  bool outside = false;
  (void)thread;
  for (int64_t at = index * j->per_task, n; at < end && !outside; at += n) {
    const int64_t row = at / inner, column = at % inner;
    n = hn_min(inner - column, end - at);
    const int64_t base = hn_nest_offset(nest, 1, HN_FAULT("scatter_elements_row") ? 0 : row, 1);
    outside = part(j, at, n, base + column * along, along);
  }
  if (outside) atomic_store_explicit(&j->outside, true, memory_order_relaxed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  job j = {.run = r, .h = h, .ops = hn_lookup_find(h->isa), .count = hn_nest_count(&h->nest)};
  hn_scatter_begin(r);
  if (j.count == 0) return HONE_OK;
  atomic_init(&j.outside, h->axis == 0);
  j.per_task = hn_div_up(PER_TASK, h->unit) * h->unit;
  const int64_t tasks = hn_div_up(j.count, j.per_task);
  if (h->axis > 0 && tasks == 1)
    task(&j, 0, 0);
  else if (h->axis > 0)
    r->parallel(r->pool, tasks, task, &j);
  if (!atomic_load_explicit(&j.outside, memory_order_relaxed)) return HONE_OK;
  return hn_indices_check(r->step, r->in[1], h->wide, j.count, h->axis, error);
}

HN_TACTIC(cpu, scatter_elements, "ScatterElements", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
