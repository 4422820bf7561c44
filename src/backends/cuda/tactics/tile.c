/* Tile of any repeats. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(tile, "Tile", hn_cuda_moves, hn_boxes_tile);
