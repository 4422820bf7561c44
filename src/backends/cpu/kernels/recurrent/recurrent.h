/* Family "recurrent": one step of RNN, GRU or LSTM for a panel of hidden units and a few samples: h x R^T in
 * registers, then the gates' activations and the new states, while the sums are still in L1.
 *
 * Packed R (hn_recurrent_pack): units come in blocks of `vw`. A panel holds some blocks with all gates of a
 * pass, block by block, gates inside; its rows, one for each element of h, are these vectors beside each
 * other. What lies behind the last unit is zero. */
#ifndef HN_KERNELS_RECURRENT_H
#define HN_KERNELS_RECURRENT_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"
#include "model/ops/recurrent/recurrent.h"

/* What happens to the sums of a block. A GRU that resets the state before its product takes two passes. */
typedef enum hn_recurrent_pass {
  HN_RECURRENT_RNN,
  HN_RECURRENT_LSTM,
  HN_RECURRENT_GRU,        /* linear_before_reset: all three gates from h */
  HN_RECURRENT_GRU_GATES,  /* update and reset gate: leaves z and r * h */
  HN_RECURRENT_GRU_HIDDEN, /* hidden gate from r * h */
  HN_RECURRENT_PASSES
} hn_recurrent_pass;

/* Gates that a pass multiplies. */
static inline uint32_t hn_recurrent_gates(hn_recurrent_pass p) {
  static const uint32_t gates[] = {1, 4, 3, 2, 1};
  return gates[p];
}

enum {
  HN_RECURRENT_VECTORS = 4, /* of a panel */
  HN_RECURRENT_AHEAD = 32
};

/* Blocks of a whole panel. */
static inline uint32_t hn_recurrent_blocks(hn_recurrent_pass p) {
  return HN_RECURRENT_VECTORS / hn_recurrent_gates(p);
}

/* Activations and constants of a direction. Vectors of units are padded to `padded` elements each. */
typedef struct hn_recurrent_cell {
  hn_recurrent_pass pass;
  size_t hidden, padded;
  size_t k;               /* elements of h that meet R: hidden, or 0 where their product is a part of x */
  const hn_activation *f; /* as in the operator: gates', cell's, output's */
  float clip;             /* of what enters an activation of a gate; 0: none */
  uint32_t coupled;       /* LSTM: forget gate = 1 - input gate */
  const float *peepholes; /* LSTM: input, output, forget [padded]; NULL: none */
  const float *far;       /* what is needed next from behind L2, HN_RECURRENT_AHEAD floats for each element of
                             h; NULL: it is near */
  const float *bias;      /* GRU: the recurrent bias of the hidden gate [padded]; NULL: zero */
} hn_recurrent_cell;

/* One sample. States have `padded` elements. */
typedef struct hn_recurrent_row {
  const float *x; /* [gates of the operator][hidden]: W x and the biases */
  const float *h; /* before the step */
  float *next;    /* after it; not h */
  float *c;       /* LSTM: the cell, in place */
  float *update;  /* GRU of two passes: z */
  float *reset;   /* GRU of two passes: r * h */
  float *y;       /* [hidden], takes next, too; NULL: none */
} hn_recurrent_row;

struct hn_recurrent_ops {
  uint32_t vw, rows; /* floats of a vector; most samples at a time */
  /* Units `first` (a multiple of vw) to first + blocks * vw of `rows` samples. */
  void (*panel)(const hn_recurrent_cell *cell, const float *panel, size_t first, uint32_t blocks,
                const hn_recurrent_row *row, uint32_t rows);
};

/* Floats of packed R of a pass; where the panel of a unit begins. */
static inline size_t hn_recurrent_packed(const struct hn_recurrent_ops *o, hn_recurrent_pass p,
                                         size_t hidden) {
  return (hidden + o->vw - 1) / o->vw * o->vw * hn_recurrent_gates(p) * hidden;
}

/* R: [gates][hidden][hidden], the rows of the pass's gates, at any alignment. */
void hn_recurrent_pack(const struct hn_recurrent_ops *o, hn_recurrent_pass p, const void *r, size_t hidden,
                       float *dst);

static inline const struct hn_recurrent_ops *hn_recurrent_find(hn_isa isa) {
  const struct hn_kernel *k = hn_kernel_find("recurrent", "f32", isa);
  return k ? k->ops : NULL;
}

#endif
