/* Pad with a constant and constant widths (negative widths crop), any layout: the borders are filled, the
 * rest is one move. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(pad, "Pad", hn_boxes_pad);
