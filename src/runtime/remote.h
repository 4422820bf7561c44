/* What a context needs on a device with memory of its own: a queue, blocks through which inputs and outputs
 * pass, and the time that this took. Inside of runtime only.
 *
 * All inputs lie in one block of the device. What the device reaches by itself (pinned, its own) crosses
 * straight from where it lies; ordinary memory is gathered in pinned pieces by several threads, while pieces
 * before them cross. */
#ifndef HN_RUNTIME_REMOTE_H
#define HN_RUNTIME_REMOTE_H

#include "optimize/step/step.h"
#include "runtime/lent.h"

enum { HN_RING = 2 }; /* pieces of ordinary memory that are under way */
enum { HN_MARK_BEGIN, HN_MARK_GIVEN, HN_MARK_DONE, HN_MARK_TAKEN, HN_MARKS };

/* A part of the block. */
typedef struct hn_remote_input {
  uint32_t slot, input;
  uint64_t offset, bytes;
  bool straight; /* in this run: not gathered; crossed: since it is there already */
  bool crossed;
} hn_remote_input;

typedef struct hn_remote_piece {
  uint64_t at, bytes; /* of the block */
} hn_remote_piece;

typedef struct hn_remote {
  hn_queue *queue;
  void *staged, *gathered; /* block of inputs: the device's, and where it is gathered: all of it, or a ring */
  hn_remote_input *input;  /* [n_inputs], by offset */
  uint32_t n_inputs;
  uint32_t put_down;       /* pieces of this run */
  hn_remote_piece *piece;  /* of one run */
  hn_event *ring[HN_RING]; /* by place in the ring: what was put there has crossed */
  void *host;              /* host arena */
  void *returned;          /* block of outputs on the host */
  uint64_t *returned_at;   /* by output: offset there, or UINT64_MAX: it is on the host already */
  hn_event *mark[HN_MARKS];
  bool clock, timed; /* record them in the next run? Were they in the last one? */
} hn_remote;

hone_status hn_remote_open(const hn_plan *plan, hn_remote *remote, hone_error *error);
void hn_remote_close(const hn_plan *plan, hn_remote *remote);
/* Bytes of `gathered`, and the most pieces of a run. */
uint64_t hn_remote_gathered(const hn_plan *plan);
size_t hn_remote_pieces(const hn_plan *plan, uint32_t inputs);
/* Does the host read this plan input, or hand it out? Then it cannot lie in the device's memory. */
bool hn_remote_here(const hn_plan *plan, uint32_t input);
/* Starts the copies of inputs and outputs; tensor: the context's, by slot. */
hone_status hn_remote_give(const hn_plan *plan, hn_remote *remote, const hone_tensor *tensor,
                           const hone_tensor *const *in, hone_error *error);
hone_status hn_remote_take(const hn_plan *plan, hn_remote *remote, const hn_lent *lent,
                           const hone_tensor *tensor, hone_error *error);
/* After sync: seconds of the last run on the device's clock, if it was timed. */
hone_status hn_remote_times(const hn_plan *plan, const hn_remote *remote, double *h2d, double *infer,
                            double *d2h, hone_error *error);
/* A tensor of the device as the host sees it, in the graph's type `seen`: f32 where it is stored narrow,
 * strides as they are. data is to be freed with hn_free. Waits for the queue. */
hone_status hn_remote_fetch(const hn_plan *plan, hn_remote *remote, const hone_tensor *from, hone_dtype seen,
                            hone_tensor *to, hone_error *error);
/* The way back, of equal dimensions, and of the graph's or the stored type. Waits for the queue. */
hone_status hn_remote_put(const hn_plan *plan, hn_remote *remote, const hone_tensor *from,
                          const hone_tensor *to, hone_error *error);

#endif
