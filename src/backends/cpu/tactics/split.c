/* Split along any axis in any layout: one move an output. The sizes are those of the outputs. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(split, "Split", hn_boxes_split);
