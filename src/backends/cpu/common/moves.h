/* Moves: copies between two strided boxes of equal dimensions, any element size. Transpose, Reformat, Concat,
 * Split, Slice, Expand, Tile and Pad are lists of them. A move is planned once; running it allocates nothing.
 */
#ifndef HN_CPU_COMMON_MOVES_H
#define HN_CPU_COMMON_MOVES_H

#include <hone/plugin.h>

#include "backends/cpu/kernel.h"
#include "optimize/step/boxes.h"

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

/* Plans a move over `dim` with strides in elements. */
void hn_move_plan(hn_move *move, int32_t element, int32_t rank, const int64_t *dim, const int64_t *dst_stride,
                  const int64_t *src_stride);

/* The blob of a tactic that is a list of moves. */
typedef struct hn_moves {
  hn_isa isa;
  uint32_t n;
  uint64_t fill; /* bits of the element that HN_BOX_FILL moves write */
  hn_move move[];
} hn_moves;

bool hn_moves_accepts(hn_boxes_build build, const hone_step *step, hone_reason *why);
double hn_moves_cost(hn_boxes_build build, const hone_step *step, const hone_machine *machine);
hone_status hn_moves_need(hn_boxes_build build, const hone_step *step, hone_tactic_need *need,
                          hone_error *error);
hone_status hn_moves_prepack(hn_boxes_build build, const hone_step *step, const hone_machine *machine,
                             void *blob, hone_error *error);
hone_status hn_moves_run(const hone_step_run *run, hone_error *error);

/* Defines the tactic `nm` for the anchor `op` from the function that reads its boxes. */
#define HN_MOVES_TACTIC(nm, op, build)                                                                       \
  static bool accepts(const hone_step *step, const hone_machine *machine, hone_reason *why) {                \
    (void)machine;                                                                                           \
    return hn_moves_accepts(build, step, why);                                                               \
  }                                                                                                          \
  static double cost(const hone_step *step, const hone_machine *machine) {                                   \
    return hn_moves_cost(build, step, machine);                                                              \
  }                                                                                                          \
  static hone_status need(const hone_step *step, const hone_machine *machine, hone_tactic_need *n,           \
                          hone_error *error) {                                                               \
    (void)machine;                                                                                           \
    return hn_moves_need(build, step, n, error);                                                             \
  }                                                                                                          \
  static hone_status prepack(const hone_step *step, const hone_machine *machine, void *blob,                 \
                             hone_error *error) {                                                            \
    return hn_moves_prepack(build, step, machine, blob, error);                                              \
  }                                                                                                          \
  const struct hone_tactic_desc hn_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                          \
                                                  .name = #nm,                                               \
                                                  .device = "cpu",                                           \
                                                  .anchor = op,                                              \
                                                  .version = 1,                                              \
                                                  .accepts = accepts,                                        \
                                                  .cost = cost,                                              \
                                                  .need = need,                                              \
                                                  .prepack = prepack,                                        \
                                                  .run = hn_moves_run}

#endif
