/* Random numbers that are the same on every machine: what `hone op test` draws is repeated by its seed. */
#ifndef HONE_CLI_OP_RANDOM_H
#define HONE_CLI_OP_RANDOM_H

#include <stdint.h>

typedef struct op_random {
  uint64_t state;
} op_random;

/* splitmix64 */
static inline uint64_t op_next(op_random *r) {
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}
static inline uint32_t op_below(op_random *r, uint32_t n) { return (uint32_t)(op_next(r) >> 33) % n; }
/* 0 to 1 */
static inline double op_unit(op_random *r) { return (double)(op_next(r) >> 11) * 0x1p-53; }
/* A stream of its own for a name. */
static inline op_random op_stream(uint64_t seed, const char *name) {
  op_random r = {seed * 0x9e3779b97f4a7c15u + 1};
  for (; *name; name++) r.state = (r.state ^ (uint8_t)*name) * 0x100000001b3u;
  (void)op_next(&r);
  return r;
}

#endif
