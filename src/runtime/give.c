/* Inputs on their way to the device. */
#include "runtime/remote.h"

#include "base/error.h"
#include "base/mem.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* Pieces of ordinary memory: large enough that a copy costs more than its call, small enough that crossing
 * begins early and that a piece is still in the processor's caches when the device fetches it. */
#define LEAST_PIECE ((uint64_t)128 << 10)
#define MOST_PIECE ((uint64_t)2 << 20)
#define STRAIGHT ((uint64_t)16 << 10) /* fewer bytes are gathered, wherever they lie: a call costs more */
enum { WORKERS = 8 };                 /* so many threads copy faster than any bus */

uint64_t hn_remote_gathered(const hn_plan *p) {
  const uint64_t ring = HN_RING * MOST_PIECE;
  return p->staged_bytes < ring ? p->staged_bytes : ring;
}

size_t hn_remote_pieces(const hn_plan *p, uint32_t inputs) {
  return (size_t)(p->staged_bytes / MOST_PIECE) + 5 + inputs;
}

/* ------------------------------------------------------------------ ordinary memory */

/* One run's pieces, which several threads bring over. Piece k passes through place k % HN_RING of the ring
 * (wraps), or has a place of its own. */
typedef struct crossing {
  const hn_plan *p;
  hn_remote *r;
  const hone_tensor *const *in;
  uint32_t n;
  bool wraps;
  _Atomic uint32_t next;           /* piece that nobody has begun */
  _Atomic uint32_t given[HN_RING]; /* pieces of this place that the queue has got */
  _Atomic bool failed;
  atomic_flag told; /* the first failure has the error */
  hone_status status;
  hone_error error;
} crossing;

static void gather(const crossing *c, uint64_t from, uint64_t until, char *to) {
  for (uint32_t i = 0; i < c->r->n_inputs; i++) {
    const hn_remote_input *s = &c->r->input[i];
    const uint64_t a = s->offset > from ? s->offset : from,
                   e = s->offset + s->bytes < until ? s->offset + s->bytes : until;
    if (!s->straight && a < e)
      memcpy(to + (a - from), (const char *)c->in[s->input]->data + (a - s->offset), e - a);
  }
}

/* Piece k may be put down: what was there before has crossed. Who has an earlier piece is at work on it. */
static hone_status wait_for_place(crossing *c, uint32_t k, hone_error *error) {
  _Atomic uint32_t *given = &c->given[k % HN_RING];
  while (atomic_load_explicit(given, memory_order_acquire) != k / HN_RING) {
    if (atomic_load_explicit(&c->failed, memory_order_relaxed)) return HONE_ERROR_CANCELLED;
    sched_yield();
  }
  return k < HN_RING ? HONE_OK : c->p->backend->event_wait(c->p->device, c->r->ring[k % HN_RING], error);
}

static hone_status cross(crossing *c, uint32_t k, hone_error *error) {
  const hn_backend *b = c->p->backend;
  const hn_remote_piece *x = &c->r->piece[k];
  char *at = (char *)c->r->gathered + (c->wraps ? k % HN_RING * MOST_PIECE : x->at);
  hone_status status = c->wraps ? wait_for_place(c, k, error) : HONE_OK;
  if (status != HONE_OK) return status;
  gather(c, x->at, x->at + x->bytes, at);
  status = b->copy(c->p->device, c->r->queue, (char *)c->r->staged + x->at, at, x->bytes, error);
  if (!c->wraps || status != HONE_OK) return status;
  status = b->event_record(c->p->device, c->r->queue, c->r->ring[k % HN_RING], error);
  atomic_store_explicit(&c->given[k % HN_RING], k / HN_RING + 1, memory_order_release);
  return status;
}

static void cross_some(void *arg, int64_t task, uint32_t thread) {
  crossing *c = arg;
  (void)task, (void)thread;
  for (uint32_t k; !c->failed && (k = atomic_fetch_add(&c->next, 1)) < c->n;) {
    hone_error error = {0};
    const hone_status status = cross(c, k, &error);
    if (status == HONE_OK) continue;
    if (!atomic_flag_test_and_set(&c->told)) {
      c->status = status;
      c->error = error;
    }
    atomic_store(&c->failed, true);
  }
}

/* The parts of the block whose bytes have to be gathered, cut to pieces; what lies between two of them is
 * filling. */
static uint32_t cut(hn_remote *r, uint64_t piece) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_inputs;) {
    if (r->input[i].straight) {
      i++;
      continue;
    }
    const uint64_t from = r->input[i].offset;
    uint64_t until = from;
    for (; i < r->n_inputs && !r->input[i].straight; i++) until = r->input[i].offset + r->input[i].bytes;
    for (uint64_t at = from; at < until; at += piece)
      r->piece[n++] = (hn_remote_piece){at, until - at < piece ? until - at : piece};
  }
  return n;
}

static hone_status give_gathered(const hn_plan *p, hn_remote *r, const hone_tensor *const *in, uint64_t bytes,
                                 hone_error *error) {
  crossing c = {.p = p, .r = r, .in = in, .wraps = p->staged_bytes > hn_remote_gathered(p)};
  uint64_t piece = c.wraps ? MOST_PIECE : hn_round_up(bytes / 4, 4096);
  piece = piece < LEAST_PIECE ? LEAST_PIECE : piece > MOST_PIECE ? MOST_PIECE : piece;
  c.n = cut(r, piece);
  atomic_flag_clear(&c.told);
  if (bytes > 2 * LEAST_PIECE)
    p->backend->parallel(p->device, c.n < WORKERS ? c.n : WORKERS, cross_some, &c);
  else
    cross_some(&c, 0, 0);
  if (c.failed && error) *error = c.error;
  return c.failed ? c.status : HONE_OK;
}

/* ------------------------------------------------------------------ all inputs */

/* As if nothing was merged: each by itself. */
static hone_status give_apart(const hn_plan *p, hn_remote *r, const hone_tensor *const *in,
                              hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 0; i < r->n_inputs && status == HONE_OK; i++) {
    if (r->input[i].crossed) continue;
    for (uint32_t k = 0; k < r->n_inputs; k++) r->input[k].straight = k != i;
    status = give_gathered(p, r, in, r->input[i].bytes, error);
  }
  return status;
}

/* Memory that the device reaches by itself needs no gathering. */
static hone_status give_straight(const hn_plan *p, hn_remote *r, const hone_tensor *tensor,
                                 const hone_tensor *const *in, uint64_t *left, hone_error *error) {
  const hn_backend *b = p->backend;
  hone_status status = HONE_OK;
  *left = 0;
  for (uint32_t i = 0; i < r->n_inputs && status == HONE_OK; i++) {
    hn_remote_input *s = &r->input[i];
    const hone_tensor *t = in[s->input];
    const bool here = tensor[s->slot].data == t->data && t->desc.device; /* the steps read it there */
    s->straight = s->crossed = here || t->desc.device ||
                               (s->bytes >= STRAIGHT && !p->separate &&
                                b->where(p->device, t->data, s->bytes) != HONE_MEMORY_PAGEABLE);
    if (!s->straight)
      *left += s->bytes;
    else if (!here)
      status = b->copy(p->device, r->queue, (char *)r->staged + s->offset, t->data, s->bytes, error);
  }
  return status;
}

hone_status hn_remote_give(const hn_plan *p, hn_remote *r, const hone_tensor *tensor,
                           const hone_tensor *const *in, hone_error *error) {
  const hn_backend *b = p->backend;
  uint64_t left = 0;
  hone_status status = b->event_record(p->device, r->queue, r->mark[HN_MARK_BEGIN], error);
  if (status == HONE_OK) status = give_straight(p, r, tensor, in, &left, error);
  if (status == HONE_OK && left)
    status = p->separate ? give_apart(p, r, in, error) : give_gathered(p, r, in, left, error);
  return status == HONE_OK ? b->event_record(p->device, r->queue, r->mark[HN_MARK_GIVEN], error) : status;
}
