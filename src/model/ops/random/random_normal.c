/* RandomNormal: a tensor of normally distributed numbers of the shape that the attribute gives. */
#include "model/ops/random/random.h"

HN_RANDOM_SHAPED(random_normal, "RandomNormal", "mean", "scale", hn_random_fill_normal);
