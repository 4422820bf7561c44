/* Split along any axis in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(split, "Split", hn_boxes_split);
