/* Concat along any axis, inputs and output in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(concat, "Concat", hn_cuda_moves, hn_boxes_concat);
