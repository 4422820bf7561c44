/* CastLike: the output's descriptor says to what. */
#include "backends/cuda/common/casting.h"

HN_CUDA_CASTING_TACTIC(cast_like, "CastLike");
