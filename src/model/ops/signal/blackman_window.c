/* BlackmanWindow: the window of two cosines. */
#include "model/ops/signal/taper.h"

HN_TAPER_OP(blackman_window, "BlackmanWindow", 0.42, 0.5, 0.08);
