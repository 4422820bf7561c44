/* MobileNetV2: inverted residuals of expand, depthwise and project. */
#include "model/zoo/common/build.h"

static void build(hn_zoo *z) {
  static const struct {
    int64_t expand, channels, repeat, stride;
  } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  hn_fmap x = hn_zoo_image(z);
  x = hn_zoo_relu6(z, hn_zoo_bn(z, hn_zoo_conv(z, x, hn_zoo_width(z, 32), 3, 2, 1, false, NULL), 1, 1));
  float moment = 0.5f;
  for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
    int64_t c = hn_zoo_width(z, stages[s].channels);
    for (int64_t i = 0; i < stages[s].repeat; i++) {
      int64_t stride = i == 0 ? stages[s].stride : 1, wide = x.c * stages[s].expand;
      bool residual = stride == 1 && x.c == c;
      hn_fmap y = x;
      if (stages[s].expand != 1)
        y = hn_zoo_relu6(z, hn_zoo_bn(z, hn_zoo_conv(z, y, wide, 1, 1, 1, false, NULL), 1, moment));
      y = hn_zoo_relu6(z, hn_zoo_bn(z, hn_zoo_conv(z, y, wide, 3, stride, wide, false, NULL), 1, 0.5f));
      y = hn_zoo_bn(z, hn_zoo_conv(z, y, c, 1, 1, 1, false, NULL), residual ? 0.5f : 1, 0.5f);
      x = residual ? hn_zoo_add(z, x, y) : y;
      moment = residual ? moment + 0.25f : 1;
    }
  }
  x = hn_zoo_relu6(z,
                   hn_zoo_bn(z, hn_zoo_conv(z, x, hn_zoo_width(z, 1280), 1, 1, 1, false, NULL), 1, moment));
  hn_zoo_classifier(z, x, 1000);
}

const struct hn_zoo_unit hn_zoo_mobilenetv2 = {
    .name = "mobilenetv2",
    .about = "MobileNetV2, 224x224, 3.5 M parameters, 0.60 GFLOP",
    .size = 224,
    .multiple = 1,
    .max_size = 4096,
    .build = build,
};
