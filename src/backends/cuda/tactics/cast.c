/* Cast between any two number types, by way of the type that rounds once (as the reference does). */
#include "backends/cuda/common/casting.h"

HN_CUDA_CASTING_TACTIC(cast, "Cast");
