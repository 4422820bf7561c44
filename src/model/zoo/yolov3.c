/* YOLOv3: Darknet-53 and three detection heads, 80 classes; decoding is left to the caller, or behind them.
 */
#include "base/arena.h"
#include "model/zoo/common/build.h"

#include <stdio.h>

enum { ANCHORS = 3, CLASSES = 80, CELL = 5 + CLASSES, HEAD = ANCHORS * CELL }; /* box, objectness, classes */

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

/* ---- boxes */

/* What is left of all boxes: at most so many of a class, of so much score, that overlap less than this. The
 * scores of random weights are high: a trained network's 0.25 would keep a tenth of all boxes. */
enum { MOST = 100 };
#define OVERLAP 0.45f
#define SCORE 0.99f

/* Side of an anchor, in pixels of a picture of any size; by head, the coarsest first. */
static const float anchors[3][ANCHORS][2] = {
    {{116, 90}, {156, 198}, {373, 326}}, {{30, 61}, {62, 45}, {59, 119}}, {{10, 13}, {16, 30}, {33, 23}}};

static hn_value *behind(hn_zoo *z, const char *op, const char *out, hn_value *const *in, uint32_t n) {
  char name[64];
  hn_value *v = hn_zoo_op(z, op, out, in, n);
  snprintf(name, sizeof name, "detect/%s_%llu", op, (unsigned long long)z->names);
  const char *kept = hn_arena_strdup(&z->model->arena, name);
  z->failed = z->failed || !kept;
  hn_zoo_rename(z, kept);
  return v;
}

/* Elements first..last - 1 of axis 2. */
static hn_value *cut(hn_zoo *z, hn_value *x, int64_t first, int64_t last) {
  hn_value *axis = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, (int64_t[]){2});
  hn_value *from = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, &first);
  hn_value *to = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, &last);
  return behind(z, "Slice", NULL, HN_IN(x, from, to, axis));
}

static hn_value *turned(hn_zoo *z, hn_value *x, const int64_t *perm, const int64_t *dims) {
  x = behind(z, "Transpose", NULL, HN_IN(x));
  hn_zoo_ints(z, "perm", perm, 4);
  return behind(z, "Reshape", NULL, HN_IN(x, hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){3}, dims)));
}

/* Column and row of every cell: 1 x 1 x 2 x cells. */
static hn_value *cells(hn_zoo *z, int64_t h, int64_t w) {
  float *at = HN_NEW_ARRAY(&z->model->arena, float, (size_t)(2 * h * w));
  z->failed = z->failed || !at;
  for (int64_t y = 0; at && y < h; y++)
    for (int64_t x = 0; x < w; x++) at[y * w + x] = (float)x, at[(h + y) * w + x] = (float)y;
  return z->failed ? NULL : hn_zoo_tensor_f32(z, NULL, 4, (int64_t[]){1, 1, 2, h * w}, at);
}

/* A head's boxes (N x cells x 4: centre and size in pixels) and scores (N x classes x cells). */
static void decode(hn_zoo *z, hn_fmap head, int level, hn_value **boxes, hn_value **scores) {
  const int64_t n = head.h * head.w;
  hn_value *dims = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){4}, (int64_t[]){0, ANCHORS, CELL, n});
  hn_value *x = behind(z, "Reshape", NULL, HN_IN(head.v, dims));
  hn_value *xy = behind(z, "Sigmoid", NULL, HN_IN(cut(z, x, 0, 2)));
  xy = behind(z, "Add", NULL, HN_IN(xy, cells(z, head.h, head.w)));
  xy = behind(z, "Mul", NULL, HN_IN(xy, hn_zoo_f32(z, (float)z->opt.size / (float)head.h)));
  hn_value *wh = behind(z, "Exp", NULL, HN_IN(cut(z, x, 2, 4)));
  wh = behind(z, "Mul", NULL,
              HN_IN(wh, hn_zoo_tensor_f32(z, NULL, 4, (int64_t[]){1, ANCHORS, 2, 1}, anchors[level][0])));
  hn_value *box = behind(z, "Concat", NULL, HN_IN(xy, wh));
  hn_zoo_int(z, "axis", 2);
  *boxes = turned(z, box, (int64_t[]){0, 1, 3, 2}, (int64_t[]){0, ANCHORS * n, 4});
  hn_value *is_there = behind(z, "Sigmoid", NULL, HN_IN(cut(z, x, 4, 5)));
  hn_value *is_class = behind(z, "Sigmoid", NULL, HN_IN(cut(z, x, 5, CELL)));
  hn_value *score = behind(z, "Mul", NULL, HN_IN(is_class, is_there));
  *scores = turned(z, score, (int64_t[]){0, 2, 1, 3}, (int64_t[]){0, CLASSES, ANCHORS * n});
}

static void detect(hn_zoo *z, hn_value *const box[3], hn_value *const score[3]) {
  const int64_t unknown = hn_model_symbol(z->model, "boxes");
  hn_value *boxes = behind(z, "Concat", NULL, HN_IN(box[0], box[1], box[2]));
  hn_zoo_int(z, "axis", 1);
  hn_value *scores = behind(z, "Concat", NULL, HN_IN(score[0], score[1], score[2]));
  hn_zoo_int(z, "axis", 2);
  hn_value *most = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, (int64_t[]){MOST});
  hn_value *overlap = hn_zoo_tensor_f32(z, NULL, 1, (int64_t[]){1}, (float[]){OVERLAP});
  hn_value *least = hn_zoo_tensor_f32(z, NULL, 1, (int64_t[]){1}, (float[]){SCORE});
  hn_value *selected = behind(z, "NonMaxSuppression", "selected", HN_IN(boxes, scores, most, overlap, least));
  hn_zoo_int(z, "center_point_box", 1);
  hn_zoo_output_of(z, selected, HONE_DTYPE_I64, 2, (int64_t[]){unknown, 3});
  hn_value *columns = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){2}, (int64_t[]){0, 2});
  hn_value *places = behind(z, "Gather", NULL, HN_IN(selected, columns));
  hn_zoo_int(z, "axis", 1);
  hn_zoo_output(z, behind(z, "GatherND", "boxes", HN_IN(boxes, places)), 2, (int64_t[]){unknown, 4});
  hn_zoo_output(z, behind(z, "GatherND", "scores", HN_IN(scores, selected)), 1, (int64_t[]){unknown});
}

static void build(hn_zoo *z) {
  static const int64_t widths[3] = {512, 256, 128};
  route routes[5];
  backbone(z, hn_zoo_image(z), routes);
  hn_fmap x = routes[4].x;
  float moment = routes[4].moment;
  hn_value *boxes[3] = {NULL}, *scores[3] = {NULL};
  hn_value *scales = hn_zoo_tensor_f32(z, "up_scales", 1, (int64_t[]){4}, (float[]){1, 1, 2, 2});
  for (int level = 0; level < 3; level++) {
    int64_t c = hn_zoo_width(z, widths[level]), wide = hn_zoo_width(z, 2 * widths[level]);
    for (int i = 0; i < 5; i++, moment = 0.5f) x = cbl(z, x, i % 2 ? wide : c, i % 2 ? 3 : 1, 1, 1, moment);
    char name[8];
    snprintf(name, sizeof name, "head%d", level);
    hn_fmap head = cbl(z, x, wide, 3, 1, 1, 0.5f);
    head = hn_zoo_conv(z, head, HEAD, 1, 1, 1, true, name);
    if (z->opt.boxes)
      decode(z, head, level, &boxes[level], &scores[level]);
    else
      hn_zoo_output(z, head.v, 4, (int64_t[]){z->batch, HEAD, head.h, head.w});
    if (level == 2) break;
    x = cbl(z, x, hn_zoo_width(z, widths[level] / 2), 1, 1, 1, 0.5f);
    x = upsample_join(z, x, routes[3 - level].x, scales);
    moment = 0.5f * (0.5f + routes[3 - level].moment);
  }
  if (z->opt.boxes) detect(z, boxes, scores);
}

const struct hn_zoo_unit hn_zoo_yolov3 = {
    .name = "yolov3",
    .about = "YOLOv3 (Darknet-53), 416x416, 62 M parameters, 65.9 GFLOP",
    .size = 416,
    .multiple = 32,
    .max_size = 4096,
    .build = build,
    .detects = true,
};
