/* Slice with constant bounds, any steps, any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(slice, "Slice", hn_boxes_slice);
