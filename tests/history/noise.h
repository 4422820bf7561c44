/* Numbers for tests of statistics; each test seeds `noise`. */
#ifndef HN_TESTS_HISTORY_NOISE_H
#define HN_TESTS_HISTORY_NOISE_H

#include "base/rng.h"

#include <math.h>

static hn_rng noise;

/* Within (0, 1), never 0. */
static inline double uniform(void) { return ((double)(hn_rng_u64(&noise) >> 11) + 0.5) * 0x1p-53; }
static inline double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }

#endif
