/* RandomNormalLike: a tensor of normally distributed numbers of the input's shape and, unless the attribute
 * says otherwise, dtype. */
#include "model/ops/random/random.h"

HN_RANDOM_LIKE(random_normal_like, "RandomNormalLike", "mean", "scale", hn_random_fill_normal);
