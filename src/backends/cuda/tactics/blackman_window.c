/* BlackmanWindow. */
#include "backends/cuda/common/taper.h"

HN_CUDA_TAPER(blackman_window, "BlackmanWindow", 0.42, 0.5, 0.08);
