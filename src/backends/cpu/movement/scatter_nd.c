/* ScatterND: every update goes to the slice that its tuple of indices names, in the order of the tuples.
 * Threads share the slices' elements. */
#include <string.h>

#include "backends/cpu/movement/blocks.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/scatter.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

enum { TASK_BYTES = 32 * 1024 }; /* of a slice */

typedef struct blob_head {
  int32_t element, how, length;                     /* length: of a tuple */
  int64_t dim[HONE_MAX_RANK], bytes[HONE_MAX_RANK]; /* of the axes that it names: size, and step in bytes */
  int64_t tuples, slice;                            /* slice: bytes */
} blob_head;

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *i = &s->input[1].desc;
  hn_combine how;
  bool wide;
  (void)m;
  memset(h, 0, sizeof *h);
  if (!hn_scatter_accept(s, &h->element, &how, why) || !hn_indices_accept(s, &wide, why)) return false;
  if (!wide) return hn_refuse(why, "indices are not i64");
  if (i->rank < 1 || i->dim[i->rank - 1] > x->rank) return hn_refuse(why, "tuples are longer than the rank");
  h->how = how, h->length = (int32_t)i->dim[i->rank - 1], h->tuples = 1;
  for (int32_t d = 0; d < i->rank - 1; d++) h->tuples *= i->dim[d];
  int64_t bytes = h->element;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    if (d < h->length) h->dim[d] = x->dim[d], h->bytes[d] = bytes;
    if (d == h->length) h->slice = bytes * x->dim[d];
    bytes *= x->dim[d];
  }
  if (h->length == x->rank) h->slice = h->element;
  if (h->length == 0) h->slice = bytes;
  if (hone_desc_bytes(&s->input[2].desc) != h->tuples * h->slice)
    return hn_refuse(why, "updates do not have the shape of the slices");
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  blob_head h;
  if (!describe(s, m, &h, NULL)) return HN_REFUSED_SECONDS;
  const double n = (double)h.tuples;
  const double bytes =
      2 * (double)hone_desc_bytes(&s->output[0].desc) + n * (double)(2 * h.slice + 8 * h.length);
  return hn_step_seconds(m, 0, bytes, 1) + n * (1e-9 + 0.7e-9 * h.length);
}

typedef struct job {
  const hone_step_run *run;
  const blob_head *h;
} job;

/* Where the slice of a tuple lies in the data; negative where an index names nothing. */
static int64_t slice_at(const blob_head *h, const int64_t *tuple) {
  int64_t at = 0;
  for (int32_t k = 0; k < h->length; k++) {
    const int64_t place = tuple[k] < 0 ? tuple[k] + h->dim[k] : tuple[k];
    if (place < 0 || place >= h->dim[k]) return -1;
    at += place * h->bytes[k];
  }
  return at;
}

/* The index-th part of all slices; what lies outside has been refused. */
static void task(void *arg, int64_t index, uint32_t thread) {
  const job *j = arg;
  const blob_head *h = j->h;
  const int64_t from = index * TASK_BYTES, bytes = hn_min(TASK_BYTES, h->slice - from);
  const int64_t *tuple = j->run->in[1];
  const unsigned char *u = (const unsigned char *)j->run->in[2] + from;
  unsigned char *y = (unsigned char *)j->run->out[0] + from;
  (void)thread;
  for (int64_t i = HN_FAULT("scatter_nd_first") ? 1 : 0; i < h->tuples; i++) {
    unsigned char *to = y + slice_at(h, tuple + i * h->length);
    const unsigned char *update = u + i * h->slice;
    if (h->how == HN_COMBINE_NONE)
      hn_copy_block(to, update, bytes);
    else
      hn_scatter_combine((hn_combine)h->how, (float *)(void *)to, (const float *)(const void *)update,
                         bytes / h->element);
  }
}

/* The first index that names nothing, as the reference finds it. */
static hone_status fail(const hone_step_run *r, const blob_head *h, hone_error *error) {
  const int64_t *index = r->in[1];
  hone_status status = HONE_OK;
  for (int64_t i = 0; i < h->tuples * h->length && !status; i++)
    status = hn_indices_check(r->step, index + i, true, 1, h->dim[i % h->length], error);
  return status;
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  const int64_t *index = r->in[1];
  for (int64_t i = 0; i < h->tuples; i++)
    if (slice_at(h, index + i * h->length) < 0) return fail(r, h, error);
  job j = {r, h};
  hn_scatter_begin(r);
  const int64_t tasks = h->tuples > 0 ? hn_div_up(h->slice, TASK_BYTES) : 0;
  if (tasks == 1)
    task(&j, 0, 0);
  else if (tasks > 1)
    r->parallel(r->pool, tasks, task, &j);
  return HONE_OK;
}

HN_TACTIC(cpu, scatter_nd, "ScatterND", 1, .accepts = accepts, .cost = cost, .need = need, .prepack = prepack,
          .run = run);
