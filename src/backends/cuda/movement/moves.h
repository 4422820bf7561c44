/* Steps that are lists of copies between boxes (optimize/step/boxes.h): as few launches as there are groups
 * of 12 boxes, and one for each that transposes. Channel padding of outputs becomes zeros. */
#ifndef HN_CUDA_MOVEMENT_MOVES_H
#define HN_CUDA_MOVEMENT_MOVES_H

#include "backends/cuda/driver/cuda.h"
#include "backends/tactic.h"
#include "optimize/step/boxes.h"

typedef struct hn_cuda_moves_config {
  hn_boxes_build build; /* reads the step's boxes */
} hn_cuda_moves_config;

HN_FAMILY_PLAIN(hn_cuda_moves);

/* Copies the whole of a tensor to another of equal bytes (both dense or of one layout): for tactics that
 * change parts of a copy. */
hone_status hn_cuda_moves_whole(hn_cuda_queue *q, void *to, const void *from, int64_t bytes,
                                hone_error *error);

#define hn_cuda_moves_tactic(NAME, ANCHOR, ...)                                                              \
  HN_TACTIC_PLAIN(cuda, NAME, ANCHOR, 1, hn_cuda_moves, __VA_ARGS__)

#endif
