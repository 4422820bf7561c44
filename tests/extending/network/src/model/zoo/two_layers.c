/* A perceptron: two fully connected layers with a ReLU between them. */
#include "model/zoo/common/build.h"

static hn_value *layer(hn_zoo *z, hn_value *x, int64_t in, int64_t out) {
  hn_value *w = hn_zoo_normal(z, 2, (int64_t[]){in, out}, 0, 0.1f);
  return hn_zoo_op(z, "Add", NULL, HN_IN(hn_zoo_op(z, "MatMul", NULL, HN_IN(x, w)), hn_zoo_zeros(z, out)));
}

static void build(hn_zoo *z) {
  const int64_t n = z->opt.size;
  hn_value *x = hn_zoo_input(z, "x", HONE_DTYPE_F32, 2, (int64_t[]){z->batch, n});
  x = hn_zoo_op(z, "Relu", NULL, HN_IN(layer(z, x, n, 2 * n)));
  hn_zoo_output(z, layer(z, x, 2 * n, 10), 2, (int64_t[]){z->batch, 10});
}

const struct hn_zoo_unit hn_zoo_two_layers = {
    .name = "two_layers",
    .about = "Two fully connected layers",
    .size = 64,
    .multiple = 1,
    .max_size = 4096,
    .build = build,
};
