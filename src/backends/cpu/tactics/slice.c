/* Slice with constant bounds, any steps, any layout: one move. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(slice, "Slice", hn_boxes_slice);
