/* DepthToSpace, both modes and any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(depth_to_space, "DepthToSpace", hn_boxes_depth_to_space);
