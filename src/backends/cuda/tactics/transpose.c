/* Transpose of any permutation and layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(transpose, "Transpose", hn_cuda_moves, hn_boxes_transpose);
