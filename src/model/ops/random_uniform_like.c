/* RandomUniformLike: a tensor of uniformly distributed numbers of the input's shape and, unless the attribute
 * says otherwise, dtype. */
#include "model/ops/common/random.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  return hn_random_infer(io, x->dtype, HN_TYPES_FLOAT, x->rank, x->dim, error);
}

static const hone_attr_desc attrs[] = {{.name = "dtype", .type = HONE_ATTR_INT},
                                       {.name = "low", .type = HONE_ATTR_FLOAT},
                                       {.name = "high", .type = HONE_ATTR_FLOAT},
                                       {.name = "seed", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(random_uniform_like) = {HN_OP_HEAD,
                              .op_type = "RandomUniformLike",
                              .since = 1,
                              .flags = HONE_OP_RANDOM,
                              .min_inputs = 1,
                              .max_inputs = 1,
                              .min_outputs = 1,
                              .max_outputs = 1,
                              .types = HN_TYPES_ALL,
                              .attrs = attrs,
                              .infer = infer,
                              .reference = hn_random_fill_uniform};
