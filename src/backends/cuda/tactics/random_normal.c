/* RandomNormal with a seed. */
#include "backends/cuda/common/random.h"

HN_CUDA_DIRECT(random_normal, "RandomNormal", hn_cuda_random_normal);
