/* Pad with a constant and constant widths, any layout: the borders are filled, the rest is one copy. */
#include "backends/cuda/common/moves.h"

HN_CUDA_TACTIC_BARE(pad, "Pad", hn_cuda_moves, hn_boxes_pad);
