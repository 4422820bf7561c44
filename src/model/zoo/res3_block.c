/* A whole block of ResNet-50's third stage: 1x1, 3x3, 1x1, each with batch normalisation, around a residual.
 */
#include "model/zoo/common/build.h"

static void build(hn_zoo *z) {
  const int64_t narrow = hn_zoo_width(z, 128), wide = hn_zoo_width(z, 512), side = z->opt.size;
  hn_fmap x = {hn_zoo_input(z, "x", HONE_DTYPE_F32, 4, (int64_t[]){z->batch, wide, side, side}), wide, side,
               side};
  hn_fmap y = hn_zoo_unary(z, "Relu", hn_zoo_bn(z, hn_zoo_conv(z, x, narrow, 1, 1, 1, false, NULL), 1, 1));
  y = hn_zoo_unary(z, "Relu", hn_zoo_bn(z, hn_zoo_conv(z, y, narrow, 3, 1, 1, false, NULL), 1, 0.5f));
  y = hn_zoo_bn(z, hn_zoo_conv(z, y, wide, 1, 1, 1, false, NULL), 0.5f, 0.5f);
  y = hn_zoo_unary(z, "Relu", hn_zoo_add(z, y, x));
  /* The result is looked at where it lies: sent to the caller it would be converted, and cost more than the
   * part. */
  y.v = hn_zoo_op(z, "GlobalAveragePool", NULL, HN_IN(y.v));
  hn_zoo_output(z, y.v, 4, (int64_t[]){z->batch, wide, 1, 1});
}

const struct hn_zoo_unit hn_zoo_res3_block = {
    .name = "res3_block",
    .about = "Part of ResNet-50: a whole bottleneck block, 512-128-128-512 channels on 28x28",
    .size = 28,
    .multiple = 1,
    .max_size = 512,
    .build = build,
};
