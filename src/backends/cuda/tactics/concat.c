/* Concat along any axis, inputs and output in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(concat, "Concat", hn_boxes_concat);
