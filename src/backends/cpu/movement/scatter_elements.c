/* ScatterElements, and Scatter, its first name: every update goes to the element that its index names along
 * one axis, at its own place along the others. Updates of one element differ along the axis alone, so threads
 * share the other dimensions, and each goes through the axis in order. */
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
#include "optimize/step/axes.h"

enum { PER_TASK = 8192, TASKS = 4 }; /* updates of a task at least; tasks for each thread */

typedef struct head {
  hn_isa isa;
  bool wide;          /* indices are i64 */
  int64_t axis, step; /* the axis' elements, and how far apart they lie in the data */
  int64_t updates;    /* along the axis */
  int64_t pitch;      /* from one of them to the next; 1: their axis is the innermost dimension */
  hn_nest nest;       /* over the others; operand 0: indices and updates, 1: the data */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc, *u = &s->input[2].desc;
  hn_scatter scatter;
  memset(h, 0, sizeof *h);
  h->isa = hn_isa_of(m->isa);
  if (!hn_lookup_find(h->isa)) return hn_refuse(why, "no kernel for %s", hn_isa_name(h->isa));
  if (!hn_scatter_describe(s, &scatter, why) || !hn_indices_accept(s, &h->wide, why)) return false;
  if (!hone_desc_same_dims(i, u)) return hn_refuse(why, "indices and updates differ in shape");
  int64_t dim[HONE_MAX_RANK];
  int32_t axis;
  if (!hn_step_axis(hone_node_int(s->node, "axis", 0), x->rank, &axis, why)) return false;
  if (i->rank != x->rank) return hn_refuse(why, "data and indices differ in rank");
  for (int32_t d = 0; d < x->rank; d++) {
    if (d != axis && i->dim[d] > x->dim[d]) return hn_refuse(why, "more indices than data");
    dim[d] = d == axis ? 1 : i->dim[d];
  }
  h->axis = x->dim[axis], h->step = x->stride[axis];
  if (h->axis > UINT32_MAX) return hn_refuse(why, "the axis is too long");
  h->updates = i->dim[axis], h->pitch = i->stride[axis];
  hn_nest_begin(&h->nest, i->rank, dim);
  hn_nest_add(&h->nest, i->stride);
  hn_nest_add(&h->nest, x->stride);
  hn_nest_finish(&h->nest);
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  return hn_scatter_seconds(s, m, (double)hone_desc_bytes(&s->input[1].desc));
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  hn_scatter scatter; /* addresses: they are in no blob, which may come from a file */
  const struct hn_lookup_ops *ops;
  int64_t inner, strip, strips; /* rows of the nest's last dimension, and parts that these are cut into */
  int64_t count, per_task;      /* of parts */
  atomic_bool outside;          /* an index was outside of the axis */
} job;

/* n updates from `first` on, `along` apart in the data from `base` on. Returns whether an index names
 * nothing, and ends there. */
static bool scatter(const job *j, int64_t first, int64_t n, int64_t base, int64_t along) {
  const head *h = j->h;
  const hn_scatter *sc = &j->scatter;
  const unsigned char *index = (const unsigned char *)j->run->in[1] + first * (h->wide ? 8 : 4),
                      *u = (const unsigned char *)j->run->in[2] + first * sc->element;
  unsigned char *y = (unsigned char *)j->run->out[0] + base * sc->element;
  uint32_t place[HN_SCATTER_RUN];
  for (int64_t i = 0, some; i < n; i += some) {
    some = hn_min(n - i, HN_SCATTER_RUN);
    if (h->wide
            ? j->ops->places_i64(place, (const int64_t *)(const void *)index, (size_t)some, (uint32_t)h->axis)
            : j->ops->places_i32(place, (const int32_t *)(const void *)index, (size_t)some,
                                 (uint32_t)h->axis))
      return true;
    sc->put(y, place, h->step, along, u, some);
    index += some * (h->wide ? 8 : 4), u += some * sc->element;
    y += HN_FAULT("scatter_run") ? 0 : some * along * sc->element;
  }
  return false;
}

/* A part of a row, all updates along the axis one after the other. */
static bool part(const job *j, int64_t index) {
  const head *h = j->h;
  const int32_t last = h->nest.rank - 1;
  const int64_t row = index / j->strips, from = index % j->strips * j->strip,
                n = hn_min(j->strip, j->inner - from), lies = h->nest.stride[0][last],
                along = h->nest.stride[1][last], first = hn_nest_offset(&h->nest, 0, row, 1) + from * lies,
                base = hn_nest_offset(&h->nest, 1, row, 1) + from * along;
  bool outside = false;
  if (h->pitch == 1) /* the axis is the innermost dimension */
    for (int64_t i = 0; i < n && !outside; i++)
      outside = scatter(j, first + i * lies, h->updates, base + i * along, 0);
  else
    for (int64_t k = 0; k < h->updates && !outside; k++)
      outside = scatter(j, first + k * h->pitch, n, base, along);
  return outside;
}

static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const int64_t end = hn_min(j->count, (index + 1) * j->per_task);
  bool outside = false;
  (void)thread;
  for (int64_t i = index * j->per_task; i < end; i++) outside |= part(j, i);
  if (outside) atomic_store_explicit(&j->outside, true, memory_order_relaxed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  const int64_t others = hn_nest_count(&h->nest), count = others * h->updates;
  hn_scatter_copy(r);
  if (count == 0) return HONE_OK;
  if (h->axis == 0) return hn_indices_check(r->step, r->in[1], h->wide, count, h->axis, error);
  job j = {.run = r, .h = h, .ops = hn_lookup_find(h->isa), .inner = h->nest.dim[h->nest.rank - 1]};
  hone_reason why;
  if (!hn_scatter_describe(r->step, &j.scatter, &why)) return hn_not_described(r->step, &why, error);
  const int64_t rows = others / j.inner,
                wanted = r->threads > 1 ? hn_div_up(TASKS * (int64_t)r->threads, rows) : 1;
  j.strip = hn_fill_up(hn_div_up(j.inner, wanted), h->pitch == 1 ? 1 : HN_SCATTER_RUN);
  j.strips = hn_div_up(j.inner, j.strip);
  j.count = rows * j.strips;
  j.per_task = hn_max(1, PER_TASK / (j.strip * h->updates));
  atomic_init(&j.outside, false);
  const int64_t tasks = hn_div_up(j.count, j.per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  if (!atomic_load_explicit(&j.outside, memory_order_relaxed)) return HONE_OK;
  return hn_indices_check(r->step, r->in[1], h->wide, count, h->axis, error);
}

HN_TACTIC(cpu, scatter_elements, "ScatterElements", 2, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
HN_TACTIC(cpu, scatter, "Scatter", 2, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
