/* A sum and its ReLU, as they end every block of a residual network: what fusing two operators that do next
 * to no arithmetic is worth. */
#include "model/zoo/common/build.h"

enum { CHANNELS = 64 };

static void build(hn_zoo *z) {
  const int64_t dims[] = {z->batch, hn_zoo_width(z, CHANNELS), z->opt.size, z->opt.size};
  hn_value *a = hn_zoo_input(z, "a", HONE_DTYPE_F32, 4, dims),
           *b = hn_zoo_input(z, "b", HONE_DTYPE_F32, 4, dims);
  hn_value *sum = hn_zoo_op(z, "Add", NULL, HN_IN(a, b));
  hn_zoo_output(z, hn_zoo_op(z, "Relu", NULL, HN_IN(sum)), 4, dims);
}

const struct hn_zoo_unit hn_zoo_add_relu = {
    .name = "add_relu",
    .about = "Two inputs (64 channels of 56x56), their sum and its ReLU",
    .size = 56,
    .multiple = 1,
    .max_size = 4096,
    .build = build,
};
