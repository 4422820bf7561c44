/* Operators that draw numbers. With the attribute `seed` a node gives the same numbers each time; without it
 * others. */
#ifndef HN_MODEL_OPS_RANDOM_H
#define HN_MODEL_OPS_RANDOM_H

#include "base/rng.h"
#include "model/ops/common/op.h"

hn_rng hn_random_start(const hone_node *node);

/* Output 0: dtype from the attribute (else `otherwise`), which must be in the HONE_TYPES mask. */
hone_status hn_random_infer(const hone_infer *io, hone_dtype otherwise, uint32_t types, int32_t rank,
                            const int64_t *dim, hone_error *error);
/* The shape is the attribute `shape`, or the input's, whose dtype then is the default, too. */
hone_status hn_random_infer_shape(const hone_infer *io, hone_error *error);
hone_status hn_random_infer_like(const hone_infer *io, hone_error *error);
/* Output 0 filled with low + (high - low) u, u uniform in [0, 1). */
hone_status hn_random_fill_uniform(hone_call *call, hone_error *error);
/* Output 0 filled with mean + scale z, z standard normal. */
hone_status hn_random_fill_normal(hone_call *call, hone_error *error);

/* Operator `nm` with the two parameters of its distribution as attributes: RandomNormal and its like. `last`:
 * the attribute that follows `seed`, or the list's end; `inputs`: 0, or 1 whose shape counts. */
#define HN_RANDOM_OP(nm, op, first, second, last, inputs, in_types, in_infer, fill)                          \
  static const hone_attr_desc attrs[] = {{.name = "dtype", .type = HONE_ATTR_INT},                           \
                                         {.name = first, .type = HONE_ATTR_FLOAT},                           \
                                         {.name = second, .type = HONE_ATTR_FLOAT},                          \
                                         {.name = "seed", .type = HONE_ATTR_FLOAT},                          \
                                         last,                                                               \
                                         {0}};                                                               \
  HN_OP(nm) = {HN_OP_HEAD,                                                                                   \
               .op_type = op,                                                                                \
               .since = 1,                                                                                   \
               .flags = HONE_OP_RANDOM,                                                                      \
               HN_INPUTS(inputs, inputs),                                                                    \
               HN_OUTPUTS(1, 1),                                                                             \
               .types = in_types,                                                                            \
               .attrs = attrs,                                                                               \
               .infer = in_infer,                                                                            \
               .reference = fill}
#define HN_RANDOM_SHAPED(nm, op, first, second, fill)                                                        \
  HN_RANDOM_OP(nm, op, first, second, HN_RANDOM_SHAPE_ATTR, 0, HN_TYPES_FLOAT, hn_random_infer_shape, fill)
#define HN_RANDOM_LIKE(nm, op, first, second, fill)                                                          \
  HN_RANDOM_OP(nm, op, first, second, {0}, 1, HN_TYPES_ALL, hn_random_infer_like, fill)
#define HN_RANDOM_SHAPE_ATTR                                                                                 \
  { .name = "shape", .type = HONE_ATTR_INTS, .required = true }

#endif
