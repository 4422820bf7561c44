/* Inputs on their way to the device. */
#include "runtime/remote.h"

#include "base/error.h"
#include "base/mem.h"

#include <string.h>

/* Ordinary memory crosses in pieces: large enough that a copy costs more than its call, small enough that
 * crossing begins early and that a piece is still in the processor's caches when the device fetches it. */
#define LEAST_PIECE ((uint64_t)512 << 10)
#define MOST_PIECE ((uint64_t)16 << 20)
#define LEAST_PART ((uint64_t)128 << 10) /* of a piece, that is worth a thread */
#define STRAIGHT ((uint64_t)16 << 10)    /* fewer bytes are gathered, wherever they lie: a call costs more */
enum { WORKERS = 8 };                    /* so many threads copy faster than any bus */

uint64_t hn_remote_gathered(const hn_plan *p) {
  const uint64_t ring = HN_RING * MOST_PIECE;
  return p->staged_bytes < ring ? p->staged_bytes : ring;
}

size_t hn_remote_pieces(const hn_plan *p, uint32_t inputs) {
  return (size_t)(p->staged_bytes / MOST_PIECE) + 5 + inputs;
}

/* ------------------------------------------------------------------ ordinary memory */

/* A piece that several threads put down, each a part. */
typedef struct gathering {
  const hn_remote *r;
  const hone_tensor *const *in;
  uint64_t from, until; /* bytes of the block */
  uint64_t part;
  char *to;
} gathering;

static void gather(void *arg, int64_t task, uint32_t thread) {
  const gathering *g = arg;
  const uint64_t from = g->from + (uint64_t)task * g->part,
                 until = from + g->part < g->until ? from + g->part : g->until;
  (void)thread;
  for (uint32_t i = 0; i < g->r->n_inputs; i++) {
    const hn_remote_input *s = &g->r->input[i];
    const uint64_t a = s->offset > from ? s->offset : from,
                   e = s->offset + s->bytes < until ? s->offset + s->bytes : until;
    if (!s->straight && a < e)
      memcpy(g->to + (a - g->from), (const char *)g->in[s->input]->data + (a - s->offset), e - a);
  }
}

static void put_down(const hn_plan *p, gathering *g) {
  const uint64_t bytes = g->until - g->from;
  g->part = hn_round_up((bytes + WORKERS - 1) / WORKERS, 4096);
  if (g->part < LEAST_PART) g->part = LEAST_PART;
  const int64_t parts = (int64_t)((bytes + g->part - 1) / g->part);
  if (parts > 1)
    p->backend->parallel(p->device, parts, gather, g);
  else
    gather(g, 0, 0);
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

/* While one piece crosses the next one is put down. A block that is larger than the ring goes through its
 * places in turn. */
static hone_status give_gathered(const hn_plan *p, hn_remote *r, const hone_tensor *const *in, uint64_t bytes,
                                 hone_error *error) {
  const hn_backend *b = p->backend;
  const bool wraps = p->staged_bytes > hn_remote_gathered(p);
  uint64_t piece = wraps ? MOST_PIECE : hn_round_up(bytes / 4, 4096);
  piece = piece < LEAST_PIECE ? LEAST_PIECE : piece > MOST_PIECE ? MOST_PIECE : piece;
  const uint32_t n = cut(r, piece);
  hone_status status = HONE_OK;
  for (uint32_t k = 0; k < n && status == HONE_OK; k++) {
    const hn_remote_piece *x = &r->piece[k];
    const uint32_t place = r->put_down % HN_RING;
    hn_event *crossed = wraps ? r->ring[place] : NULL;
    gathering g = {.r = r,
                   .in = in,
                   .from = x->at,
                   .until = x->at + x->bytes,
                   .to = (char *)r->gathered + (wraps ? place * MOST_PIECE : x->at)};
    if (crossed && r->put_down >= HN_RING) status = b->event_wait(p->device, crossed, error);
    if (status != HONE_OK) break;
    put_down(p, &g);
    r->put_down++;
    status = b->cross(p->device, r->queue, (char *)r->staged + x->at, g.to, x->bytes, error);
    if (crossed && status == HONE_OK) status = b->event_record(p->device, r->queue, crossed, error);
  }
  return status;
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
      status = b->cross(p->device, r->queue, (char *)r->staged + s->offset, t->data, s->bytes, error);
  }
  return status;
}

hone_status hn_remote_give(const hn_plan *p, hn_remote *r, const hone_tensor *tensor,
                           const hone_tensor *const *in, hone_error *error) {
  const hn_backend *b = p->backend;
  uint64_t left = 0;
  r->put_down = 0;
  r->timed = r->clock;
  hone_status status =
      r->timed ? b->event_record(p->device, r->queue, r->mark[HN_MARK_BEGIN], error) : HONE_OK;
  if (status == HONE_OK) status = give_straight(p, r, tensor, in, &left, error);
  if (status == HONE_OK && left)
    status = p->separate ? give_apart(p, r, in, error) : give_gathered(p, r, in, left, error);
  return status == HONE_OK && r->timed ? b->event_record(p->device, r->queue, r->mark[HN_MARK_GIVEN], error)
                                       : status;
}
