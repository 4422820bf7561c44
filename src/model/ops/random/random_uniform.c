/* RandomUniform: a tensor of uniformly distributed numbers of the shape that the attribute gives. */
#include "model/ops/random/random.h"

HN_RANDOM_SHAPED(random_uniform, "RandomUniform", "low", "high", hn_random_fill_uniform);
