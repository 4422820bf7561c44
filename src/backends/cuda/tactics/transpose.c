/* Transpose of any permutation and layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(transpose, "Transpose", hn_boxes_transpose);
