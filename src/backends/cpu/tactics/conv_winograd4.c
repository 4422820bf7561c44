/* Conv 3x3 with stride 1 as Winograd F(4x4, 3x3). */
#include "backends/cpu/common/winograd_step.h"

HN_WINOGRAD_TACTIC(conv_winograd4, 4);
