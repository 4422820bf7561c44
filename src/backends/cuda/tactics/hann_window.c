/* HannWindow. */
#include "backends/cuda/common/taper.h"

HN_CUDA_TAPER(hann_window, "HannWindow", 0.5, 0.5, 0);
