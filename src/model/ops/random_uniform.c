/* RandomUniform: a tensor of uniformly distributed numbers of the shape that the attribute gives. */
#include "model/ops/common/random.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  int32_t rank;
  int64_t dim[HONE_MAX_RANK];
  hone_status status = hn_random_shape(io, &rank, dim, error);
  return status ? status : hn_random_infer(io, HONE_DTYPE_F32, HN_TYPES_FLOAT, rank, dim, error);
}

static const hone_attr_desc attrs[] = {{.name = "dtype", .type = HONE_ATTR_INT},
                                       {.name = "low", .type = HONE_ATTR_FLOAT},
                                       {.name = "high", .type = HONE_ATTR_FLOAT},
                                       {.name = "seed", .type = HONE_ATTR_FLOAT},
                                       {.name = "shape", .type = HONE_ATTR_INTS, .required = true},
                                       {0}};

HN_OP(random_uniform) = {HN_OP_HEAD,
                         .op_type = "RandomUniform",
                         .since = 1,
                         .flags = HONE_OP_RANDOM,
                         .min_inputs = 0,
                         .max_inputs = 0,
                         .min_outputs = 1,
                         .max_outputs = 1,
                         .types = HN_TYPES_FLOAT,
                         .attrs = attrs,
                         .infer = infer,
                         .reference = hn_random_fill_uniform};
