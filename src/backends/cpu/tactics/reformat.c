/* Reformat: the same elements in another layout (row-major to channels-last and back, other channel pitches).
 */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(reformat, "Reformat", hn_boxes_reformat);
