/* Conv 3x3 with stride 1 as Winograd F(2x2, 3x3). */
#include "backends/cpu/common/winograd_step.h"

HN_WINOGRAD_TACTIC(conv_winograd2, 2);
