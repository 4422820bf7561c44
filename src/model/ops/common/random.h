/* Operators that draw numbers. With the attribute `seed` a node gives the same numbers each time; without it
 * others. */
#ifndef HN_MODEL_OPS_RANDOM_H
#define HN_MODEL_OPS_RANDOM_H

#include "base/rng.h"
#include "model/ops/common/op.h"

hn_rng hn_random_start(const hone_node *node);
/* Standard normal, by Box and Muller's transform. */
double hn_random_normal(hn_rng *rng);

/* Output 0: dtype from the attribute (else `otherwise`), which must be in the HONE_TYPES mask. */
hone_status hn_random_infer(const hone_infer *io, hone_dtype otherwise, uint32_t types, int32_t rank,
                            const int64_t *dim, hone_error *error);
/* The attribute `shape`. */
hone_status hn_random_shape(const hone_infer *io, int32_t *rank, int64_t *dim, hone_error *error);
/* Output 0 filled with low + (high - low) u, u uniform in [0, 1). */
hone_status hn_random_fill_uniform(hone_call *call, hone_error *error);
/* Output 0 filled with mean + scale z, z standard normal. */
hone_status hn_random_fill_normal(hone_call *call, hone_error *error);

#endif
