/* Tile: every dimension becomes (repeats, size), the repeats with stride 0 in the input; one move. */
#include "backends/cpu/common/moves.h"

HN_MOVES_TACTIC(tile, "Tile", hn_boxes_tile);
