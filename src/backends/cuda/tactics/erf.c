/* Erf on its own, of any type (common/numbers.h). */
#include "backends/cuda/common/numbers.h"

HN_CUDA_NUMBERS_TACTIC(erf, "Erf");
