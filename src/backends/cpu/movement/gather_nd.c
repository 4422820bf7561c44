/* GatherND: the slice of the data that every tuple of indices names. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/movement/indices.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"
#include "optimize/step/boxes.h"

enum { TASK_BYTES = 32 * 1024 };

typedef struct head {
  int32_t length;                                   /* of a tuple */
  int64_t dim[HONE_MAX_RANK], bytes[HONE_MAX_RANK]; /* of the axes that it names: size, and step in bytes */
  int64_t tuples;                                   /* of all batches */
  int64_t per_batch, batch_bytes;
  int64_t slice; /* bytes */
  int64_t per_task;
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  int32_t element;
  bool wide;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!hn_boxes_check(s, &element, why) || !hn_indices_accept(s, &wide, why)) return false;
  if (!wide) return hn_refuse(why, "indices are not i64");
  if (!hn_step_plain(x) || !hn_step_plain(&s->output[0].desc))
    return hn_refuse(why, "a tensor is not row-major");
  const int64_t batch = hone_node_int(s->node, "batch_dims", 0);
  if (i->rank < 1 || batch < 0 || batch >= i->rank) return hn_refuse(why, "no tuples of indices");
  const int64_t n = i->dim[i->rank - 1];
  if (batch + n > x->rank) return hn_refuse(why, "tuples are longer than the rank");
  h->length = (int32_t)n, h->slice = element * hn_dims(x, (int32_t)(batch + n), x->rank);
  h->tuples = hn_dims(i, 0, i->rank - 1), h->per_batch = hn_dims(i, (int32_t)batch, i->rank - 1);
  h->batch_bytes = h->slice;
  for (int64_t k = n - 1; k >= 0; k--) {
    h->dim[k] = x->dim[batch + k], h->bytes[k] = h->batch_bytes;
    h->batch_bytes *= h->dim[k];
  }
  h->per_task = TASK_BYTES / (h->slice + 8 * n + 16) + 1;
  return true;
}

HN_DESCRIBED(head)

static double cost(const hone_step *s, const hone_machine *m) {
  head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double n = (double)h.tuples;
  return hn_step_seconds(m, 0, n * (double)(2 * h.slice + 8 * h.length), 1) +
         n * (1e-9 + 0.7e-9 * h.length) / (m->threads > 0 ? m->threads : 1);
}

typedef struct job {
  const hone_step_run *run;
  const head *h;
  atomic_bool outside; /* an index was outside of its axis */
} job;

/* Tuples first to end - 1, of `length` and of slices of `slice` bytes. Returns whether one names nothing. */
static inline __attribute__((always_inline)) bool gather(const job *j, int64_t first, int64_t end,
                                                         int32_t length, int64_t slice) {
  const head *h = j->h;
  const int64_t *tuple = (const int64_t *)j->run->in[1] + first * length;
  const unsigned char *x = j->run->in[0];
  unsigned char *y = (unsigned char *)j->run->out[0] + first * slice;
  int64_t batch = first / h->per_batch, left = h->per_batch - first % h->per_batch;
  bool outside = false;
  for (int64_t i = first; i < end; i++, tuple += length, y += slice) {
    int64_t at = batch * h->batch_bytes;
    bool inside = true;
    for (int32_t k = 0; k < length; k++) {
      const int64_t place = tuple[k] < 0 ? tuple[k] + h->dim[k] : tuple[k];
      inside &= (uint64_t)place < (uint64_t)h->dim[k];
      at += (inside ? place : 0) * h->bytes[k];
    }
    outside |= !inside;
    if (inside) hn_copy_block(y, x + at, slice);
    if (--left == 0) batch += HN_FAULT("gather_nd_batch") ? 0 : 1, left = h->per_batch;
  }
  return outside;
}

/* Single elements and boxes of four floats by one index each, which detectors pick, have loops of their own.
 */
static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const head *h = j->h;
  const int64_t first = index * h->per_task, end = hn_min(h->tuples, first + h->per_task);
  bool outside;
  (void)thread;
  if (h->length == 1 && h->slice == 4)
    outside = gather(j, first, end, 1, 4);
  else if (h->length == 1 && h->slice == 8)
    outside = gather(j, first, end, 1, 8);
  else if (h->length == 1 && h->slice == 16)
    outside = gather(j, first, end, 1, 16);
  else
    outside = gather(j, first, end, h->length, h->slice);
  if (outside) atomic_store_explicit(&j->outside, true, memory_order_relaxed);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h};
  if (h->tuples == 0) return HONE_OK;
  atomic_init(&j.outside, false);
  const int64_t tasks = hn_div_up(h->tuples, h->per_task);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return atomic_load_explicit(&j.outside, memory_order_relaxed)
             ? hn_indices_check_tuples(r->step, r->in[1], h->tuples, h->length, h->dim, error)
             : HONE_OK;
}

HN_TACTIC(cpu, gather_nd, "GatherND", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
