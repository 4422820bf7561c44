/* SpaceToDepth in any layout: one move. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(space_to_depth, "SpaceToDepth", hn_boxes_space_to_depth);
