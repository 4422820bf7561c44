/* Split along any axis in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(split, "Split", hn_cuda_moves, hn_boxes_split);
