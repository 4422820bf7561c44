/* Transpose of any permutation and layout: one move. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(transpose, "Transpose", hn_boxes_transpose);
