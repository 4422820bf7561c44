/* Concat along any axis, inputs and output in any layout: one move an input. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(concat, "Concat", hn_boxes_concat);
