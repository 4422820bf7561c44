/* Slice with constant bounds, any steps, any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(slice, "Slice", hn_cuda_moves, hn_boxes_slice);
