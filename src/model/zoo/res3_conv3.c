/* The last convolution of a block of ResNet-50's third stage with what follows it: 1x1, batch normalisation,
 * the residual's sum, ReLU. */
#include "model/zoo/common/build.h"

static void build(hn_zoo *z) {
  const int64_t narrow = hn_zoo_width(z, 128), wide = hn_zoo_width(z, 512), side = z->opt.size;
  hn_fmap x = {hn_zoo_input(z, "x", HONE_DTYPE_F32, 4, (int64_t[]){z->batch, narrow, side, side}), narrow,
               side, side};
  hn_fmap r = {hn_zoo_input(z, "residual", HONE_DTYPE_F32, 4, (int64_t[]){z->batch, wide, side, side}), wide,
               side, side};
  hn_fmap y = hn_zoo_bn(z, hn_zoo_conv(z, x, wide, 1, 1, 1, false, NULL), 1, 1);
  y = hn_zoo_unary(z, "Relu", hn_zoo_add(z, y, r));
  /* The result is looked at where it lies: sent to the caller it would be converted, and cost more than the
   * part. */
  y.v = hn_zoo_op(z, "GlobalAveragePool", NULL, HN_IN(y.v));
  hn_zoo_output(z, y.v, 4, (int64_t[]){z->batch, wide, 1, 1});
}

const struct hn_zoo_unit hn_zoo_res3_conv3 = {
    .name = "res3_conv3",
    .about = "Part of ResNet-50: 1x1 convolution 128 to 512 on 28x28, batch normalisation, sum, ReLU",
    .size = 28,
    .multiple = 1,
    .max_size = 512,
    .build = build,
};
