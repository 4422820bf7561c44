/* SpaceToDepth in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(space_to_depth, "SpaceToDepth", hn_cuda_moves, hn_boxes_space_to_depth);
