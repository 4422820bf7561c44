/* Measured roofs: the loops that reach a processor's peaks. Inside of improve only. */
#ifndef HN_IMPROVE_ROOFS_H
#define HN_IMPROVE_ROOFS_H

#include "backends/cpu/features.h"

#include <stddef.h>
#include <stdint.h>

/* A loop of `rounds` independent operations; returns something that depends on all of them. */
typedef struct hn_roof_loop {
  uint64_t (*run)(uint64_t rounds, const void *data, size_t bytes);
  double work; /* operations of one round; for reads: 0, every round reads `bytes` once */
} hn_roof_loop;

/* The best loops of a tier; run NULL where the tier has no such instructions. */
typedef struct hn_roof_loops {
  hn_roof_loop f32, bf16, int8, read;
} hn_roof_loops;

hn_roof_loops hn_roof_loops_of(hn_isa isa);

#endif
