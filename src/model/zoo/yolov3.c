/* YOLOv3: Darknet-53 and three detection heads, 80 classes; decoding is left to the caller. */
#include "model/zoo/common/build.h"

#include <stdio.h>

enum { HEAD = 3 * (5 + 80) }; /* three anchors a cell: box, objectness, classes */

/* Convolution + batch norm + LeakyReLU. */
static hn_fmap cbl(hn_zoo *z, hn_fmap x, int64_t c, int64_t k, int64_t stride, float gamma, float moment) {
  x = hn_zoo_unary(z, "LeakyRelu",
                   hn_zoo_bn(z, hn_zoo_conv(z, x, c, k, stride, 1, false, NULL), gamma, moment));
  hn_zoo_float(z, "alpha", 0.1f);
  return x;
}

typedef struct route {
  hn_fmap x;
  float moment;
} route;

/* Five stages; routes[s] is the end of stage s. */
static void backbone(hn_zoo *z, hn_fmap x, route routes[5]) {
  static const struct {
    int64_t channels, blocks;
  } stages[5] = {{64, 1}, {128, 2}, {256, 8}, {512, 8}, {1024, 4}};
  x = cbl(z, x, hn_zoo_width(z, 32), 3, 1, 1, 1);
  float moment = 0.5f;
  for (int s = 0; s < 5; s++) {
    int64_t c = hn_zoo_width(z, stages[s].channels), half = hn_zoo_width(z, stages[s].channels / 2);
    x = cbl(z, x, c, 3, 2, 1, moment);
    moment = 0.5f;
    for (int64_t i = 0; i < stages[s].blocks; i++) {
      hn_fmap y = cbl(z, cbl(z, x, half, 1, 1, 1, moment), c, 3, 1, 0.5f, 0.5f);
      x = hn_zoo_add(z, x, y);
      moment += 0.15f;
    }
    routes[s] = (route){x, moment};
  }
}

/* Twice the size, joined with a finer map of the backbone. */
static hn_fmap upsample_join(hn_zoo *z, hn_fmap x, hn_fmap fine, hn_value *scales) {
  hn_value *t = hn_zoo_op(z, "Resize", NULL, HN_IN(x.v, NULL, scales));
  hn_zoo_string(z, "coordinate_transformation_mode", "asymmetric");
  hn_zoo_string(z, "mode", "nearest");
  hn_zoo_string(z, "nearest_mode", "floor");
  hn_value *joined = hn_zoo_op(z, "Concat", NULL, HN_IN(t, fine.v));
  hn_zoo_int(z, "axis", 1);
  return (hn_fmap){joined, x.c + fine.c, fine.h, fine.w};
}

static void build(hn_zoo *z) {
  static const int64_t widths[3] = {512, 256, 128};
  route routes[5];
  backbone(z, hn_zoo_image(z), routes);
  hn_fmap x = routes[4].x;
  float moment = routes[4].moment;
  hn_value *scales = hn_zoo_tensor_f32(z, "up_scales", 1, (int64_t[]){4}, (float[]){1, 1, 2, 2});
  for (int level = 0; level < 3; level++) {
    int64_t c = hn_zoo_width(z, widths[level]), wide = hn_zoo_width(z, 2 * widths[level]);
    for (int i = 0; i < 5; i++, moment = 0.5f) x = cbl(z, x, i % 2 ? wide : c, i % 2 ? 3 : 1, 1, 1, moment);
    char name[8];
    snprintf(name, sizeof name, "head%d", level);
    hn_fmap head = cbl(z, x, wide, 3, 1, 1, 0.5f);
    head = hn_zoo_conv(z, head, HEAD, 1, 1, 1, true, name);
    hn_zoo_output(z, head.v, 4, (int64_t[]){z->batch, HEAD, head.h, head.w});
    if (level == 2) break;
    x = cbl(z, x, hn_zoo_width(z, widths[level] / 2), 1, 1, 1, 0.5f);
    x = upsample_join(z, x, routes[3 - level].x, scales);
    moment = 0.5f * (0.5f + routes[3 - level].moment);
  }
}

const struct hn_zoo_unit hn_zoo_yolov3 = {
    .name = "yolov3",
    .about = "YOLOv3 (Darknet-53), 416x416, 62 M parameters, 65.9 GFLOP",
    .size = 416,
    .multiple = 32,
    .max_size = 4096,
    .build = build,
};
