/* ResNet-50 v1.5 (the stride is on the 3x3). */
#include "model/zoo/common/build.h"

static void build(hn_zoo *z) {
  static const struct {
    int64_t planes, blocks, stride;
  } stages[] = {{64, 3, 1}, {128, 4, 2}, {256, 6, 2}, {512, 3, 2}};
  hn_fmap x = hn_zoo_image(z);
  x = hn_zoo_unary(z, "Relu",
                   hn_zoo_bn(z, hn_zoo_conv(z, x, hn_zoo_width(z, 64), 7, 2, 1, false, NULL), 1, 1));
  x = hn_zoo_unary(z, "MaxPool", x);
  hn_zoo_int(z, "ceil_mode", 0);
  hn_zoo_ints(z, "kernel_shape", HN_INTS(3, 3));
  hn_zoo_ints(z, "pads", HN_INTS(1, 1, 1, 1));
  hn_zoo_ints(z, "strides", HN_INTS(2, 2));
  x.h = (x.h + 1) / 2;
  x.w = (x.w + 1) / 2;

  float moment = 1; /* second moment of x: grows along the residual chain */
  for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
    int64_t planes = hn_zoo_width(z, stages[s].planes), wide = hn_zoo_width(z, stages[s].planes * 4);
    for (int64_t i = 0; i < stages[s].blocks; i++) {
      int64_t stride = i == 0 ? stages[s].stride : 1;
      hn_fmap y =
          hn_zoo_unary(z, "Relu", hn_zoo_bn(z, hn_zoo_conv(z, x, planes, 1, 1, 1, false, NULL), 1, moment));
      y = hn_zoo_unary(z, "Relu",
                       hn_zoo_bn(z, hn_zoo_conv(z, y, planes, 3, stride, 1, false, NULL), 1, 0.5f));
      /* A small last gamma keeps residual sums from blowing up. */
      y = hn_zoo_bn(z, hn_zoo_conv(z, y, wide, 1, 1, 1, false, NULL), 0.5f, 0.5f);
      hn_fmap shortcut = x;
      if (i == 0) {
        shortcut = hn_zoo_bn(z, hn_zoo_conv(z, x, wide, 1, stride, 1, false, NULL), 1, moment);
        moment = 0.6f;
      } else {
        moment += 0.15f;
      }
      x = hn_zoo_unary(z, "Relu", hn_zoo_add(z, y, shortcut));
    }
  }
  hn_zoo_classifier(z, x, 1000);
}

const struct hn_zoo_unit hn_zoo_resnet50 = {
    .name = "resnet50",
    .about = "ResNet-50 v1.5, 224x224, 25.6 M parameters, 8.2 GFLOP",
    .size = 224,
    .multiple = 1,
    .max_size = 4096,
    .build = build,
};
