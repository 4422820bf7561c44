/* Expand: the input broadcast to the output's dimensions, one move with strides of 0. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(expand, "Expand", hn_boxes_expand);
