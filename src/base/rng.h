/* Seeded pseudo-random numbers (splitmix64): the same sequence on every machine. */
#ifndef HN_BASE_RNG_H
#define HN_BASE_RNG_H

#include <stdint.h>

typedef struct hn_rng {
  uint64_t state;
} hn_rng;

#define HN_RNG_STEP 0x9e3779b97f4a7c15u /* of the state, from number to number */

static inline uint64_t hn_rng_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static inline uint64_t hn_rng_u64(hn_rng *r) { return hn_rng_mix(r->state += HN_RNG_STEP); }

/* Uniform in [0, 1). */
static inline double hn_rng_unit(hn_rng *r) { return (double)(hn_rng_u64(r) >> 11) * 0x1p-53; }

/* Uniform in [0, n), n > 0; the bias of n / 2^64 does not matter here. */
static inline uint64_t hn_rng_below(hn_rng *r, uint64_t n) { return hn_rng_u64(r) % n; }

static inline float hn_rng_as_normal(uint64_t sum) {
  return (float)((double)sum / 65536.0 - 6.0 + 6.0 / 65536.0);
}

/* Standard normal to about 5 digits in distribution: sum of 12 uniforms less 6 (Irwin-Hall). */
static inline float hn_rng_normal(hn_rng *r) {
  uint64_t sum = 0;
  for (int i = 0; i < 3; i++) {
    uint64_t u = hn_rng_u64(r);
    sum += (u & 0xffff) + ((u >> 16) & 0xffff) + ((u >> 32) & 0xffff) + (u >> 48);
  }
  return hn_rng_as_normal(sum);
}

#endif
