/* ScatterND: every update is a slice of the data, at the place that a tuple of indices names. Updates of one
 * slice follow each other, so threads share what is in a slice. */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/scatter.h"
#include "backends/tactic.h"
#include "base/dims.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum {
  TASKS = 4,      /* for each thread */
  LEAST = 32,     /* elements of a slice that a task has at least: finding it takes as long as 32 sums */
  TOGETHER = 64,  /* slices whose places are found before they are combined */
  WORTH = 1 << 14 /* updated elements from which on threads are */
};

typedef struct head {
  int32_t length;                                  /* of a tuple */
  int64_t dim[HONE_MAX_RANK], step[HONE_MAX_RANK]; /* of the axes that it names: size, and step in elements */
  int64_t tuples, slice;                           /* slice: elements */
} head;

static bool describe(const hone_step *s, const hone_machine *m, head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc, *u = &s->input[2].desc;
  hn_scatter scatter;
  bool wide;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!hn_scatter_describe(s, &scatter, why) || !hn_indices_accept(s, &wide, why)) return false;
  if (!wide) return hn_refuse(why, "indices are not i64");
  const int64_t n = i->rank ? i->dim[i->rank - 1] : 0;
  if (i->rank < 1 || n > x->rank) return hn_refuse(why, "no tuples of indices");
  h->length = (int32_t)n;
  h->tuples = hn_dims(i, 0, i->rank - 1), h->slice = hn_dims(x, (int32_t)n, x->rank);
  for (int64_t k = 0; k < n; k++) h->dim[k] = x->dim[k], h->step[k] = x->stride[k];
  if (hone_desc_count(u) != h->tuples * h->slice) return hn_refuse(why, "updates are no slices");
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
  int64_t piece;      /* elements of a slice that a task has */
  atomic_bool outside;
} job;

/* Adds to *at the place in the data that a tuple names; false where it names none. */
static bool place_of(const head *h, const int64_t *tuple, int64_t *at) {
  bool inside = true;
  for (int32_t k = 0; k < h->length; k++) {
    const int64_t place = tuple[k] < 0 ? tuple[k] + h->dim[k] : tuple[k];
    inside &= (uint64_t)place < (uint64_t)h->dim[k];
    *at += (inside ? place : 0) * h->step[k];
  }
  return inside;
}

/* What `count` updates, `n` elements of a slice each, do at places in elements from y on. */
static void place(const job *j, void *y, const int64_t *at, int64_t count, const unsigned char *u,
                  int64_t n) {
  static const uint32_t here[HN_SCATTER_RUN] = {0};
  const hn_scatter *sc = &j->scatter;
  const int64_t size = sc->element, step = HN_FAULT("scatter_nd_piece") ? n : j->h->slice;
  if (sc->lines && n > 1) {
    sc->lines(y, at, count, u, step, n);
    return;
  }
  for (int64_t k = 0; k < count; k++, u += step * size) {
    unsigned char *to = (unsigned char *)y + at[k] * size;
    if (sc->replaces)
      hn_copy_block(to, u, n * size);
    else
      for (int64_t i = 0; i < n; i += HN_SCATTER_RUN)
        sc->put(to + i * size, here, 0, 1, u + i * size, hn_min(n - i, HN_SCATTER_RUN));
  }
}

static void task(void *arg, int64_t index, uint32_t thread) {
  job *j = arg;
  const head *h = j->h;
  const int64_t from = index * j->piece, n = hn_min(j->piece, h->slice - from), size = j->scatter.element;
  const int64_t *tuple = j->run->in[1];
  int64_t at[TOGETHER];
  (void)thread;
  for (int64_t first = 0, count; first < h->tuples; first += count) {
    count = hn_min(h->tuples - first, TOGETHER);
    for (int64_t i = 0; i < count; i++, tuple += h->length) {
      at[i] = from;
      if (place_of(h, tuple, &at[i])) continue;
      atomic_store_explicit(&j->outside, true, memory_order_relaxed);
      return;
    }
    const int64_t behind = (HN_FAULT("scatter_nd_piece") ? n : h->slice) * first + from;
    place(j, j->run->out[0], at, count, (const unsigned char *)j->run->in[2] + behind * size, n);
  }
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const head *h = r->blob;
  job j = {.run = r, .h = h, .piece = h->slice};
  hone_reason why;
  if (!hn_scatter_describe(r->step, &j.scatter, &why)) return hn_not_described(r->step, &why, error);
  hn_scatter_copy(r);
  if (h->tuples * h->slice == 0)
    return hn_indices_check_tuples(r->step, r->in[1], h->tuples, h->length, h->dim, error);
  if (r->threads > 1 && h->tuples * h->slice >= WORTH)
    j.piece = hn_min(h->slice, hn_max(LEAST, hn_div_up(h->slice, TASKS * (int64_t)r->threads)));
  atomic_init(&j.outside, false);
  const int64_t tasks = hn_div_up(h->slice, j.piece);
  if (tasks == 1)
    task(&j, 0, 0);
  else
    r->parallel(r->pool, tasks, task, &j);
  return atomic_load_explicit(&j.outside, memory_order_relaxed)
             ? hn_indices_check_tuples(r->step, r->in[1], h->tuples, h->length, h->dim, error)
             : HONE_OK;
}

HN_TACTIC(cpu, scatter_nd, "ScatterND", 3, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
