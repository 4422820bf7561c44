/* Tile of any repeats. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(tile, "Tile", hn_boxes_tile);
