/* RandomNormalLike with a seed. */
#include "backends/cuda/common/random.h"

HN_CUDA_TACTIC_UNPACKED(random_normal_like, "RandomNormalLike", hn_cuda_direct, hn_cuda_random_normal);
