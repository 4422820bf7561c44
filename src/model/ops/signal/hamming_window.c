/* HammingWindow: the raised cosine window that does not reach zero, with the ratios 25/46 and 21/46. */
#include "model/ops/signal/taper.h"

HN_TAPER_OP(hamming_window, "HammingWindow", 25.0 / 46, 21.0 / 46, 0);
