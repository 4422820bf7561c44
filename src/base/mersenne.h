/* Random numbers as C++'s <random> of GCC 11 and later (libstdc++) makes them, so that a schedule drawn here
 * is the one that LoadGen draws from the same seed. MT is a mt19937, u one of its 32-bit numbers.
 *
 *   unit          (u1 + u2 * 2^32) * 2^-64, u1 drawn first, rounded to a double before the scaling, which is
 *                 exact; 1 becomes the double before it            generate_canonical<double, 53>
 *   exponential   -ln(1 - unit) / rate                             exponential_distribution<double>
 *   below(n)      high 32 bits of u * n; while the low 32 bits are under 2^32 mod n, with another u
 *                                                                  uniform_int_distribution (Lemire's way)
 *   shuffle       for i = 1, 2 ...: swap item i with item below(i + 1). Where n * n fits into 32 bits two of
 *                 these numbers come from one draw: x = below((i + 1) * (i + 2)), x / (i + 2) for i and
 *                 x mod (i + 2) for i + 1; of an even n item 1 is drawn alone before        shuffle */
#ifndef HN_BASE_MERSENNE_H
#define HN_BASE_MERSENNE_H

#include <stdbool.h>
#include <stdint.h>

enum { HN_MT_WORDS = 624 };

typedef struct hn_mt {
  uint32_t word[HN_MT_WORDS];
  uint32_t next; /* of them */
} hn_mt;

/* As std::mt19937 takes it: the lower 32 bits of the seed count. */
void hn_mt_seed(hn_mt *g, uint64_t seed);
uint32_t hn_mt_u32(hn_mt *g);
double hn_mt_unit(hn_mt *g); /* in [0, 1) */
/* In [0, 1), of 27 and 26 bits of two numbers: Matsumoto and Nishimura's genrand_res53, numpy's random_sample
 * of a legacy generator. */
double hn_mt_res53(hn_mt *g);
double hn_mt_exponential(hn_mt *g, double rate);
uint32_t hn_mt_below(hn_mt *g, uint32_t n); /* in [0, n), n > 0 */
void hn_mt_shuffle(hn_mt *g, uint32_t *items, uint32_t n);

#endif
