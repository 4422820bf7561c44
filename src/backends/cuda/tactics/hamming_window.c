/* HammingWindow. */
#include "backends/cuda/common/taper.h"

HN_CUDA_TAPER(hamming_window, "HammingWindow", 25.0 / 46, 21.0 / 46, 0);
