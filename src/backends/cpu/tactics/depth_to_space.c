/* DepthToSpace, both modes and any layout: the channel is split into (block, block, rest) or (rest, block,
 * block). */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(depth_to_space, "DepthToSpace", hn_boxes_depth_to_space);
