/* RandomUniformLike: a tensor of uniformly distributed numbers of the input's shape and, unless the attribute
 * says otherwise, dtype. */
#include "model/ops/random/random.h"

HN_RANDOM_LIKE(random_uniform_like, "RandomUniformLike", "low", "high", hn_random_fill_uniform);
