/* SpaceToDepth in any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(space_to_depth, "SpaceToDepth", hn_boxes_space_to_depth);
