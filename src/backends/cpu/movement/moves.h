/* Moves: copies between two strided boxes of equal dimensions, any element size. Transpose, Reformat, Concat,
 * Split, Slice, Expand, Tile and Pad are lists of them. A move is planned once; running it allocates nothing.
 */
#ifndef HN_CPU_MOVEMENT_MOVES_H
#define HN_CPU_MOVEMENT_MOVES_H

#include <hone/plugin.h>

#include "backends/cpu/kernels/kernel.h"
#include "optimize/step/boxes.h"
#include "backends/tactic.h"

typedef enum hn_move_kind {
  HN_MOVE_BLOCKS,       /* runs of bytes that are contiguous on both sides */
  HN_MOVE_FILL,         /* one source element for a contiguous run */
  HN_MOVE_MATRIX,       /* the contiguous dimensions of the two sides differ: transposed tiles */
  HN_MOVE_INTERLEAVE,   /* three planes to pixels of three */
  HN_MOVE_DEINTERLEAVE, /* and back */
  HN_MOVE_ELEMENTS      /* neither: one element at a time */
} hn_move_kind;

typedef struct hn_move {
  int32_t kind, element; /* bytes of an element: 1, 2, 4 or 8 */
  uint32_t in, out;      /* indices into the step's tensors; in == HN_BOX_FILL: hn_moves.fill */
  int64_t in_at, out_at; /* first element */
  hn_nest nest; /* operand 0: destination, 1: source; for MATRIX the last two dimensions are (cols, rows) */
  int64_t chunk, chunks; /* the split dimension is cut into chunks of this size */
  int64_t tasks;
} hn_move;

/* The blob of a tactic that is a list of moves. */
typedef struct hn_moves {
  hn_isa isa;
  uint32_t n;
  uint64_t fill; /* bits of the element that HN_BOX_FILL moves write */
  hn_move move[];
} hn_moves;

typedef struct hn_moves_config {
  hn_boxes_build build; /* reads the step's boxes */
} hn_moves_config;

HN_FAMILY_PACKED(hn_moves);

#define hn_cpu_moves_tactic(NAME, ANCHOR, ...) HN_TACTIC_PACKED(cpu, NAME, ANCHOR, 4, hn_moves, __VA_ARGS__)

#endif
