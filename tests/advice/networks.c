#include "advice/networks.h"

#include "model/operators.h"
#include "model/zoo/common/build.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_BLOCKS = 64 };

typedef struct sketch {
  hn_zoo z;
  lab *chance;
  int64_t side, width; /* of the stem's output */
  size_t blocks;
  size_t spoilt; /* blocks that get the habit, at least one */
  hn_fmap (*habit)(struct sketch *s, hn_fmap x);
} sketch;

static hn_fmap activate(sketch *s, hn_fmap x) {
  return hn_zoo_unary(&s->z, "Relu", hn_zoo_bn(&s->z, x, 1, 1));
}

static hn_fmap conv(sketch *s, hn_fmap x, int64_t c, int64_t k, int64_t stride, int64_t groups) {
  return hn_zoo_conv(&s->z, x, c, k, stride, groups, false, NULL);
}

/* One of the three blocks that image networks are made of. */
static hn_fmap block(sketch *s, hn_fmap x, bool shrink) {
  const int64_t c = shrink ? x.c * 3 / 2 / 8 * 8 + 8 : x.c, stride = shrink ? 2 : 1;
  hn_fmap y;
  switch (lab_pick(s->chance, 0, 3)) {
  case 0: return activate(s, conv(s, x, c, 3, stride, 1));
  case 1: /* bottleneck */
    y = activate(s, conv(s, x, c / 2 / 8 * 8 + 8, 1, 1, 1));
    y = activate(s, conv(s, y, y.c, 3, stride, 1));
    break;
  default: /* inverted residual */
    y = activate(s, conv(s, x, 2 * x.c, 1, 1, 1));
    y = activate(s, conv(s, y, y.c, 3, stride, y.c));
  }
  y = hn_zoo_bn(&s->z, conv(s, y, c, 1, 1, 1), 1, 1);
  return hn_zoo_unary(&s->z, "Relu", shrink ? y : hn_zoo_add(&s->z, y, x));
}

static hn_model *finish(sketch *s) {
  hone_error error = {0};
  hn_model *m = s->z.model;
  for (hone_node *n = m->graph->first; n && !s->z.failed; n = n->next) {
    uint32_t index = (uint32_t)m->source.len;
    s->z.failed =
        !hn_vec_push(&m->source, (hn_source_node){n->name, n->op_type}) || !hn_node_set_origin(n, &index, 1);
  }
  if (!s->z.failed && hn_model_ready(m, &error) == HONE_OK) return m;
  printf("a network that is none: %s: %s\n", error.where, error.what);
  abort();
}

/* Stem, blocks, classifier; the habit is put behind random blocks. */
static hone_model *make(sketch *s, const char *name, char *label, size_t size) {
  hn_zoo *z = &s->z;
  z->model = hn_model_create("");
  if (!z->model) abort();
  z->graph = z->model->graph;
  z->graph->name = name;
  z->model->ir_version = 8;
  z->opt = (hone_zoo_options){.width = 1, .size = 2 * s->side, .seed = 1 + lab_pick(s->chance, 0, 1 << 20)};
  z->batch = 1;
  if (!hn_vec_push(&z->model->opsets, (hn_opset){"", 17})) abort();
  bool spoilt[MOST_BLOCKS] = {false};
  for (size_t n = s->spoilt; n;) {
    size_t at = lab_pick(s->chance, 0, s->blocks);
    n -= !spoilt[at];
    spoilt[at] = true;
  }
  hn_fmap x = hn_zoo_image(z);
  x = activate(s, conv(s, x, s->width, 3, 2, 1));
  for (size_t i = 0; i < s->blocks; i++) {
    /* Halved now and then, while there is something to halve. */
    x = block(s, x, x.h >= 16 && lab_pick(s->chance, 0, 4) == 0);
    if (spoilt[i]) x = s->habit(s, x);
  }
  hn_zoo_classifier(z, x, 100);
  snprintf(label, size, "%s %zux%lldx%lld", name, s->blocks, (long long)s->width, (long long)s->side);
  return finish(s);
}

static hone_model *from_zoo(const char *name, hone_zoo_options o, char *label, size_t size) {
  hone_model *model = NULL;
  hone_error error = {0};
  if (hone_zoo_build(name, &o, &model, &error) != HONE_OK) {
    printf("%s: %s\n", name, error.what);
    abort();
  }
  snprintf(label, size, "%s %.2f %lld", name, o.width, (long long)o.size);
  return model;
}

hone_model *network_of_zoo(lab *chance, char *label, size_t size) {
  static const char *const names[] = {"mobilenetv2", "resnet50", "res3_block"};
  const char *name = names[lab_pick(chance, 0, 3)];
  hone_zoo_options o = {.batch = 1, .round = 8, .seed = 1 + lab_pick(chance, 0, 1 << 20)};
  o.width = name[3] == '3' ? 1 : lab_real(chance, 0.5, 1);
  o.size = name[3] == '3' ? 0 : 32 * (int64_t)lab_pick(chance, 4, 8);
  return from_zoo(name, o, label, size);
}

hone_model *network_any(lab *chance, char *label, size_t size) {
  const hone_zoo_options o = {.batch = 1, .round = 8, .seed = 1 + lab_pick(chance, 0, 1 << 20)};
  hone_zoo_options yolo = o, bert = o;
  switch (lab_pick(chance, 0, 5)) {
  case 0:
    yolo.width = lab_real(chance, 0.5, 0.7); /* narrower it has convolutions of 8 channels, rightly blamed */
    yolo.size = 32 * (int64_t)lab_pick(chance, 3, 6);
    return from_zoo("yolov3", yolo, label, size);
  case 1:
    bert.width = lab_real(chance, 0.2, 0.6);
    bert.size = 16 * (int64_t)lab_pick(chance, 2, 9);
    bert.round = 1;
    return from_zoo("bert_base", bert, label, size);
  default: return network_of_zoo(chance, label, size);
  }
}

/* ---- results that are read twice */

static hn_fmap read_twice(sketch *s, hn_fmap x) {
  hn_fmap t = conv(s, x, x.c, 1, 1, 1);
  return hn_zoo_add(&s->z, activate(s, t), t);
}

hone_model *network_unfusable(lab *chance, char *label, size_t size) {
  sketch s = {.chance = chance, .habit = read_twice};
  s.side = 8 * (int64_t)lab_pick(chance, 9, 15);
  s.width = 8 * (int64_t)lab_pick(chance, 2, 4);
  s.blocks = lab_pick(chance, 4, 8);
  s.spoilt = s.blocks - 1;
  return make(&s, "read twice", label, size);
}

/* ---- hardly any work */

hone_model *network_tiny(lab *chance, char *label, size_t size) {
  sketch s = {.chance = chance};
  s.side = (int64_t)lab_pick(chance, 6, 13);
  s.width = 8;
  s.blocks = lab_pick(chance, 24, 48);
  return make(&s, "tiny", label, size);
}

/* ---- there and back */

static hn_value *transpose(sketch *s, hn_value *v, const int64_t *perm) {
  v = hn_zoo_op(&s->z, "Transpose", NULL, HN_IN(v));
  hn_zoo_ints(&s->z, "perm", perm, 4);
  return v;
}

/* Rows or columns take the place of the channels and are filtered along the others. */
static hn_fmap mixed(sketch *s, hn_fmap x) {
  static const int64_t perms[][4] = {{0, 2, 1, 3}, {0, 3, 2, 1}}; /* their own inverses */
  const int64_t *perm = perms[lab_pick(s->chance, 0, 2)];
  const bool rows = perm[1] == 2;
  hn_fmap y = {transpose(s, x.v, perm), rows ? x.h : x.w, rows ? x.c : x.h, rows ? x.w : x.c};
  y = hn_zoo_unary(&s->z, "Relu", conv(s, y, y.c, 3, 1, y.c));
  x.v = transpose(s, y.v, perm);
  return x;
}

hone_model *network_ping_pong(lab *chance, char *label, size_t size) {
  sketch s = {.chance = chance, .habit = mixed};
  s.side = 8 * (int64_t)lab_pick(chance, 5, 9);
  s.width = 8 * (int64_t)lab_pick(chance, 2, 5);
  s.blocks = lab_pick(chance, 4, 8);
  s.spoilt = lab_pick(chance, 2, s.blocks);
  return make(&s, "mixed", label, size);
}

/* ---- bytes, hardly any arithmetic */

/* An image of the features beside a large table: rows are added to it and normalised, again and again. */
static hn_fmap through_memory(sketch *s, hn_fmap x) {
  hn_zoo *z = &s->z;
  const int64_t rows = 256 * (int64_t)lab_pick(s->chance, 16, 49), columns = 512;
  hn_value *table = hn_zoo_normal(z, 2, (int64_t[]){rows, columns}, 0, 1);
  hn_value *v = hn_zoo_op(z, "ReduceMean", NULL, HN_IN(x.v)); /* one number */
  hn_zoo_int(z, "keepdims", 0);
  v = hn_zoo_op(z, "Add", NULL, HN_IN(table, v));
  for (size_t n = lab_pick(s->chance, 2, 5); n; n--) {
    hn_value *one = hn_zoo_normal(z, 1, &columns, 1, 0.1f), *none = hn_zoo_zeros(z, columns);
    v = hn_zoo_op(z, "LayerNormalization", NULL, HN_IN(v, one, none));
    hn_zoo_int(z, "axis", -1);
    v = hn_zoo_op(z, lab_pick(s->chance, 0, 2) ? "Add" : "Mul", NULL, HN_IN(v, table));
  }
  v = hn_zoo_op(z, "ReduceMean", NULL, HN_IN(v));
  hn_zoo_int(z, "keepdims", 0);
  x.v = hn_zoo_op(z, "Add", NULL, HN_IN(x.v, v));
  return x;
}

hone_model *network_memory(lab *chance, char *label, size_t size) {
  sketch s = {.chance = chance, .habit = through_memory, .spoilt = 1};
  s.side = 8 * (int64_t)lab_pick(chance, 2, 5);
  s.width = 8 * (int64_t)lab_pick(chance, 2, 4);
  s.blocks = lab_pick(chance, 3, 6);
  return make(&s, "table", label, size);
}

/* ---- shapes that only the run knows */

/* As many rows as the data says: all of them, but nobody knows before. */
static hn_fmap cropped(sketch *s, hn_fmap x) {
  hn_zoo *z = &s->z;
  hn_value *v = hn_zoo_op(z, "ReduceMean", NULL, HN_IN(x.v));
  hn_zoo_int(z, "keepdims", 0);
  hn_value *zero = hn_zoo_f32(z, 0), *rows = hn_zoo_f32(z, (float)x.h);
  v = hn_zoo_op(z, "Max", NULL, HN_IN(v, rows)); /* features are small numbers */
  v = hn_zoo_op(z, "Add", NULL, HN_IN(v, zero));
  v = hn_zoo_op(z, "Cast", NULL, HN_IN(v));
  hn_zoo_int(z, "to", 7);
  hn_value *ends =
      hn_zoo_op(z, "Reshape", NULL, HN_IN(v, hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, (int64_t[]){1})));
  hn_value *starts = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, (int64_t[]){0});
  hn_value *axes = hn_zoo_tensor_i64(z, NULL, 1, (int64_t[]){1}, (int64_t[]){2});
  x.v = hn_zoo_op(z, "Slice", NULL, HN_IN(x.v, starts, ends, axes));
  return x;
}

hone_model *network_replanned(lab *chance, char *label, size_t size) {
  sketch s = {.chance = chance, .habit = cropped, .spoilt = 1};
  s.side = 4 * (int64_t)lab_pick(chance, 4, 8);
  s.width = 8 * (int64_t)lab_pick(chance, 2, 4);
  s.blocks = lab_pick(chance, 3, 6);
  return make(&s, "cropped", label, size);
}
