/* HannWindow: the raised cosine window. */
#include "model/ops/signal/taper.h"

HN_TAPER_OP(hann_window, "HannWindow", 0.5, 0.5, 0);
