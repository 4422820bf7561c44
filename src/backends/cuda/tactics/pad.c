/* Pad with a constant and constant widths, any layout: the borders are filled, the rest is one copy. */
#include "backends/cuda/common/moves.h"

HN_CUDA_MOVES_TACTIC(pad, "Pad", hn_boxes_pad);
