/* RandomUniform with a seed. */
#include "backends/cuda/common/random.h"

HN_CUDA_DIRECT(random_uniform, "RandomUniform", hn_cuda_random_uniform);
