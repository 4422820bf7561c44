/* DepthToSpace, both modes and any layout. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(depth_to_space, "DepthToSpace", hn_cuda_moves, hn_boxes_depth_to_space);
