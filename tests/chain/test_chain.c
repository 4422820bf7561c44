/* Chains of small models: the same bits as running them apart, one block of memory, every contradiction told
 * with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/mem.h"
#include "temporary.h"

#include <hone/hone.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Convolutions, so that both compute channels-last inside. Any number of rows, heights and widths. */
#define FIRST                                                                                                \
  "opset 17\n"                                                                                               \
  "graph first(%x: f32[N,3,H,W]) -> (%y, %same) {\n"                                                         \
  "  const %w: f32[8x3x3x3] = rand(1)\n"                                                                     \
  "  %c = Conv(%x, %w) {pads=[1,1,1,1]}\n"                                                                   \
  "  %y = Relu(%c)\n"                                                                                        \
  "  %same = Identity(%x)\n"                                                                                 \
  "}\n"
#define SECOND                                                                                               \
  "opset 17\n"                                                                                               \
  "graph second(%a: f32[N,8,H,W], %b: f32[N,3,H,W]) -> (%scores) {\n"                                        \
  "  const %w: f32[4x8x3x3] = rand(2)\n"                                                                     \
  "  const %v: f32[4x3x1x1] = rand(3)\n"                                                                     \
  "  %c = Conv(%a, %w) {pads=[1,1,1,1]}\n"                                                                   \
  "  %d = Conv(%b, %v)\n"                                                                                    \
  "  %e = Add(%c, %d)\n"                                                                                     \
  "  %g = GlobalAveragePool(%e)\n"                                                                           \
  "  %scores = Flatten(%g)\n"                                                                                \
  "}\n"
#define PIXELS                                                                                               \
  "opset 17\n"                                                                                               \
  "graph pixels(%x: f32[N,3,H,W]) -> (%y) { %y = Neg(%x) }\n"

#define STAGE_FIRST "{\"name\": \"one\", \"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"x\"}"
#define STAGE_SECOND                                                                                         \
  "{\"name\": \"two\", \"kind\": \"model\", \"path\": \"second.onnx\", \"from\": {\"a\": \"one.y\", "        \
  "\"b\": \"one.same\"}}"
#define TWO "{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [" STAGE_FIRST ",\n" STAGE_SECOND "]}"

typedef struct house {
  char folder[200];
  hone_engine *engine;
} house;

static void save_model(const house *h, const char *name, const char *text) {
  hone_model *m = NULL;
  hone_error error = {0};
  char path[300];
  if (hone_model_parse(text, strlen(text), &m, &error) != HONE_OK) fail_msg("%s: %s", name, error.what);
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  assert_int_equal(hone_model_save(m, path, &error), HONE_OK);
  hone_model_release(m);
}

static void save_text(const house *h, const char *name, const char *text) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_int_equal(fputs(text, f) >= 0, 1);
  assert_int_equal(fclose(f), 0);
}

static int set_up(void **state) {
  house *h = calloc(1, sizeof *h);
  assert_non_null(mkdtemp(temporary(h->folder, sizeof h->folder, "chain")));
  const hone_engine_options o = {.threads = 2, .tuning = "off"};
  assert_int_equal(hone_engine_create(&o, &h->engine, NULL), HONE_OK);
  save_model(h, "first.onnx", FIRST);
  save_model(h, "second.onnx", SECOND);
  save_model(h, "pixels.onnx", PIXELS);
  save_text(h, "letters.txt", "a\nb\r\nc");
  *state = h;
  return 0;
}

static int tear_down(void **state) {
  house *h = *state;
  hone_engine_destroy(h->engine);
  const int removed = temporary_remove(h->folder);
  free(h);
  return removed;
}

static hone_status parse(const house *h, const char *text, hone_chain **out, hone_error *error) {
  return hone_chain_parse(h->engine, text, strlen(text), h->folder, NULL, out, error);
}

static hone_chain *made(const house *h, const char *text) {
  hone_chain *c = NULL;
  hone_error error = {0};
  char line[1400];
  if (parse(h, text, &c, &error) != HONE_OK) {
    hone_error_format(&error, line, sizeof line);
    fail_msg("%s", line);
  }
  return c;
}

static void run(hone_chain *c, const hone_tensor *const *in) {
  hone_error error = {0};
  char line[1400];
  if (hone_chain_run(c, in, &error) == HONE_OK) return;
  hone_error_format(&error, line, sizeof line);
  fail_msg("%s", line);
}

static void fill(float *x, int64_t n, unsigned seed) {
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)((seed = seed * 1664525u + 1013904223u) >> 8) / 16777216.0f - 0.5f;
}

/* ---------------------------------------------------------------- models */

typedef struct alone {
  hone_model *model;
  hone_plan *plan;
  hone_context *context;
} alone;

static alone open_alone(const house *h, const char *name, const hone_tensor *const *in, uint32_t n) {
  alone a = {0};
  char path[300];
  hone_binding bindings[2] = {0};
  snprintf(path, sizeof path, "%s/%s", h->folder, name);
  assert_int_equal(hone_model_load(path, &a.model, NULL), HONE_OK);
  for (uint32_t i = 0; i < n; i++) {
    hone_port port;
    assert_true(hone_model_input(a.model, i, &port));
    bindings[i] = (hone_binding){.input = port.name, .rank = in[i]->desc.rank};
    memcpy(bindings[i].dim, in[i]->desc.dim, sizeof bindings[i].dim);
  }
  const hone_plan_options o = {.level = -1, .bindings = bindings, .n_bindings = n};
  assert_int_equal(hone_plan_create(h->engine, a.model, &o, &a.plan, NULL), HONE_OK);
  assert_int_equal(hone_context_create(a.plan, &a.context, NULL), HONE_OK);
  assert_int_equal(hone_context_run(a.context, in, NULL, NULL), HONE_OK);
  return a;
}

static void close_alone(alone *a) {
  hone_context_destroy(a->context);
  hone_plan_destroy(a->plan);
  hone_model_release(a->model);
}

static void as_apart(const house *h, hone_chain *c, int64_t n, int64_t height, int64_t width) {
  const int64_t dims[4] = {n, 3, height, width};
  const hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 4, dims);
  float *x = malloc((size_t)hone_desc_bytes(&d));
  fill(x, n * 3 * height * width, (unsigned)(height * 31 + width));
  const hone_tensor t = {d, x}, *in = &t;
  hone_chain_value v;
  run(c, &in);
  assert_true(hone_chain_output(c, 0, &v));
  assert_int_equal(v.kind, HONE_CHAIN_TENSORS);
  assert_int_equal(v.items, n);
  alone one = open_alone(h, "first.onnx", &in, 1);
  const hone_tensor *between[2] = {hone_context_output(one.context, 0), hone_context_output(one.context, 1)};
  alone two = open_alone(h, "second.onnx", between, 2);
  const hone_tensor *want = hone_context_output(two.context, 0);
  assert_true(hone_desc_same_dims(&want->desc, &v.batch[0].tensor.desc));
  assert_memory_equal(want->data, v.batch[0].tensor.data, (size_t)hone_desc_bytes(&want->desc));
  close_alone(&two);
  close_alone(&one);
  free(x);
}

static void two_models(void **state) {
  const house *h = *state;
  hone_chain *c = made(h, TWO);
  hone_chain_memory m[2];
  hone_chain_memory_total t;
  hone_chain_link l;
  assert_int_equal(hone_chain_stages(c), 2);
  assert_int_equal(hone_chain_models(c), 2);
  assert_string_equal(hone_chain_output_name(c, 0), "two.scores");
  as_apart(h, c, 2, 9, 11);
  assert_int_equal(hone_chain_links(c), 2);
  assert_true(hone_chain_link_of(c, 0, &l));
  assert_string_equal(l.from, "one.y");
  assert_string_equal(l.to, "two");
  assert_string_equal(l.input, "a");
  assert_int_equal(l.bytes, 2 * 8 * 9 * 11 * 4);
  assert_true(l.bound);
  assert_true(hone_chain_link_of(c, 1, &l));
  assert_string_equal(l.from, "one.same");
  assert_string_equal(l.input, "b");
  as_apart(h, c, 1, 40, 30); /* larger: the block grows under contexts that exist */
  as_apart(h, c, 2, 9, 11);
  assert_true(hone_chain_memory_of(c, 0, &m[0]) && hone_chain_memory_of(c, 1, &m[1]));
  assert_true(hone_chain_memory_sum(c, &t));
  assert_int_equal(m[0].plans, 2);
  assert_int_equal(t.apart, m[0].apart + m[1].apart);
  assert_int_equal(t.shared, m[0].arena > m[1].arena ? m[0].arena : m[1].arena);
  assert_true(t.shared < t.apart);
  assert_int_equal(t.constants, m[0].constants + m[1].constants);
  hone_chain_total total;
  hone_chain_time one, two;
  assert_true(hone_chain_total_of(c, &total));
  assert_true(hone_chain_time_of(c, 0, &one) && hone_chain_time_of(c, 1, &two));
  assert_float_equal(one.seconds + two.seconds, total.stages_s, 1e-12);
  assert_true(total.plan_s == 0 && total.idle_s >= 0 && total.wall_s > 0);
  assert_true(fabs(total.residual_s) < total.wall_s);
  assert_false(hone_chain_value_of(c, "one.y", &(hone_chain_value){0})); /* read, and let go of */
  assert_false(hone_chain_value_of(c, "nobody", &(hone_chain_value){0}));
  hone_chain_destroy(c);
}

/* One plan a model is kept: each change of shape takes the other's place. */
static void few_plans(void **state) {
  const house *h = *state;
  hone_chain *c =
      made(h, "{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [{\"name\": \"one\", \"kind\": \"model\", "
              "\"path\": \"first.onnx\", \"from\": \"x\", \"plans\": 1}, " STAGE_SECOND "]}");
  hone_chain_memory m;
  hone_chain_time t;
  for (int i = 0; i < 4; i++) {
    as_apart(h, c, 1, i % 2 ? 5 : 8, 6);
    assert_true(hone_chain_time_of(c, 0, &t));
    assert_true(t.plan_seconds > 0);
    assert_true(hone_chain_time_of(c, 1, &t));
    assert_true((t.plan_seconds > 0) == (i < 2));
  }
  assert_true(hone_chain_memory_of(c, 0, &m));
  assert_int_equal(m.plans, 1);
  hone_chain_destroy(c);
}

/* What flows on in the second run lies where it lay in the first: nothing but small arrays is allocated. */
static void memory_is_used_again(void **state) {
  const house *h = *state;
  hone_chain *c = made(h, TWO);
  static float x[2 * 3 * 16 * 16];
  const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){2, 3, 16, 16}), x}, *in = &t;
  hone_chain_memory_total first, later;
  run(c, &in);
  assert_true(hone_chain_memory_sum(c, &first));
  for (int i = 0; i < 5; i++) run(c, &in);
  assert_true(hone_chain_memory_sum(c, &later));
  assert_memory_equal(&first, &later, sizeof first);
  const uint64_t before = hn_mem_count();
  run(c, &in);
  const uint64_t one = hn_mem_count() - before;
  run(c, &in);
  assert_int_equal(hn_mem_count() - before, 2 * one);
  assert_in_range(one, 0, 16);
  hone_chain_destroy(c);
}

/* ---------------------------------------------------------------- pictures */

static hone_tensor picture_of(uint8_t *rgb, int64_t h, int64_t w) {
  return (hone_tensor){hone_desc(HONE_DTYPE_U8, 3, (const int64_t[]){h, w, 3}), rgb};
}

static void noise(uint8_t *p, int64_t n) {
  unsigned seed = 5;
  for (int64_t i = 0; i < n; i++) p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

#define PREPARE(more) "{\"name\": \"p\", \"kind\": \"prepare\", \"from\": \"image\"" more "}"
#define NEGATED(prepare)                                                                                     \
  "{\"inputs\": {\"image\": \"picture\"}, \"stages\": [" prepare                                             \
  ", {\"name\": \"m\", \"kind\": \"model\", \"path\": \"pixels.onnx\", \"from\": \"p\"}]}"

/* The tensor that pixels.onnx was given, and gives back negated. */
static const float *seen(hone_chain *c, const hone_tensor *picture, int64_t h, int64_t w) {
  hone_chain_value v;
  run(c, &picture);
  assert_true(hone_chain_output(c, 0, &v));
  const hone_tensor_desc *d = &v.batch[0].tensor.desc;
  assert_int_equal(d->dim[1], 3);
  assert_int_equal(d->dim[2], h);
  assert_int_equal(d->dim[3], w);
  return v.batch[0].tensor.data;
}

static void prepared(void **state) {
  const house *h = *state;
  uint8_t rgb[6 * 10 * 3];
  noise(rgb, sizeof rgb);
  const hone_tensor t = picture_of(rgb, 6, 10);
  hone_chain *c = made(
      h, NEGATED(PREPARE(", \"bgr\": true, \"scale\": \"1/255\", \"mean\": [0.5, 0.25, 0], \"std\": 2")));
  const float *y = seen(c, &t, 6, 10);
  static const float mean[3] = {0.5f, 0.25f, 0};
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 60; i++)
      assert_float_equal(-y[k * 60 + i], ((double)rgb[i * 3 + 2 - k] / 255 - (double)mean[k]) / 2, 1e-6);
  hone_chain_destroy(c);
  c = made(h,
           NEGATED(PREPARE(", \"scale\": 1, \"height\": 6, \"narrowest\": 12, \"multiple\": 8, \"pad\": 7")));
  y = seen(c, &t, 6, 16); /* 12 at least, then a multiple of 8 */
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < 6; i++)
      for (int x = 0; x < 16; x++)
        assert_float_equal(-y[(k * 6 + i) * 16 + x], x < 10 ? rgb[(i * 10 + x) * 3 + k] : 7, 1e-4);
  hone_chain_destroy(c);
  c = made(h, NEGATED(PREPARE(", \"least\": 12, \"multiple\": 4"))); /* twice as large */
  seen(c, &t, 12, 20);
  hone_chain_destroy(c);
  c = made(h, NEGATED(PREPARE(", \"limit\": 5, \"multiple\": 2"))); /* half: 3 x 5, and up */
  seen(c, &t, 4, 6);
  hone_chain_destroy(c);
  c = made(h, NEGATED(PREPARE(", \"height\": 8, \"width\": 32, \"fit\": \"left\", \"scale\": 1")));
  y = seen(c, &t, 8, 32); /* 14 columns are the picture's */
  assert_true(-y[13] > 0 && y[14] == 0 && y[31] == 0);
  hone_chain_destroy(c);
}

/* A map of probabilities and a picture: boxes of the map crop the picture, their widths make batches, answers
 * come back in the order of the boxes. */
static void boxes_and_crops(void **state) {
  const house *h = *state;
  enum { HEIGHT = 40, WIDTH = 60 };
  static float map[HEIGHT * WIDTH];
  static uint8_t rgb[HEIGHT * WIDTH * 3];
  static const int at[4][4] = {{2, 2, 12, 8}, {30, 3, 50, 9}, {4, 20, 14, 26}, {40, 22, 45, 25}};
  hone_chain *c = made(
      h,
      "{\"inputs\": {\"map\": \"tensor\", \"image\": \"picture\"}, \"stages\": ["
      "{\"name\": \"boxes\", \"kind\": \"boxes\", \"from\": \"map\", \"unclip\": 0, \"shape\": \"upright\"},"
      "{\"name\": \"crops\", \"kind\": \"crop\", \"from\": \"image\", \"boxes\": \"boxes\"},"
      "{\"name\": \"p\", \"kind\": \"prepare\", \"from\": \"crops\", \"height\": 6, \"scale\": 1, \"batch\": "
      "2},"
      "{\"name\": \"m\", \"kind\": \"model\", \"path\": \"pixels.onnx\", \"from\": \"p\"}],"
      "\"outputs\": [\"boxes\", \"crops\", \"m\"]}");
  memset(map, 0, sizeof map);
  noise(rgb, sizeof rgb);
  for (int b = 0; b < 4; b++)
    for (int y = at[b][1]; y < at[b][3]; y++)
      for (int x = at[b][0]; x < at[b][2]; x++) map[y * WIDTH + x] = 0.75f;
  const hone_tensor m = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 1, HEIGHT, WIDTH}), map},
                    p = picture_of(rgb, HEIGHT, WIDTH);
  const hone_tensor *const in[] = {&m, &p};
  hone_chain_value boxes, crops, out;
  run(c, in);
  assert_true(hone_chain_output(c, 0, &boxes) && hone_chain_output(c, 1, &crops) &&
              hone_chain_output(c, 2, &out));
  assert_int_equal(boxes.n, 4);
  for (int b = 0; b < 4; b++) {
    const int w = at[b][2] - at[b][0], rows = at[b][3] - at[b][1];
    assert_float_equal(boxes.box[b].x[0], at[b][0], 1e-4);
    assert_float_equal(boxes.box[b].y[2], at[b][3], 1e-4);
    assert_float_equal(boxes.box[b].score, 0.75, 1e-6);
    assert_int_equal(crops.picture[b].desc.dim[0], rows);
    assert_int_equal(crops.picture[b].desc.dim[1], w);
    for (int y = 0; y < rows; y++)
      assert_memory_equal((uint8_t *)crops.picture[b].data + y * w * 3,
                          rgb + ((at[b][1] + y) * WIDTH + at[b][0]) * 3, (size_t)w * 3);
  }
  /* Widths 10, 20, 10 and 10 (enlarged): two batches of 2 and 1, and one of 1. */
  uint32_t rows = 0;
  assert_int_equal(out.n, 3);
  assert_int_equal(out.items, 4);
  for (uint32_t b = 0; b < out.n; b++)
    for (uint32_t r = 0; r < out.batch[b].n; r++, rows++) {
      const uint32_t item = out.batch[b].item[r];
      const hone_tensor *t = &out.batch[b].tensor;
      const int64_t w = t->desc.dim[3];
      assert_int_equal(w, item == 1 ? 20 : 10);
      if (item == 3) continue;
      const float *y = (const float *)t->data + r * 3 * 6 * w;
      const uint8_t *q = crops.picture[item].data;
      for (int64_t i = 0; i < 6 * w; i++) assert_float_equal(-y[i], q[i * 3], 1e-4);
    }
  assert_int_equal(rows, 4);
  memset(map, 0, sizeof map); /* nothing is found, and nothing goes wrong */
  run(c, in);
  assert_true(hone_chain_output(c, 0, &boxes) && hone_chain_output(c, 2, &out));
  assert_int_equal(boxes.n + out.n + out.items, 0);
  hone_chain_destroy(c);
}

static void turned_pictures(void **state) {
  const house *h = *state;
  uint8_t rgb[2 * 3 * 3];
  noise(rgb, sizeof rgb);
  const hone_tensor p = picture_of(rgb, 2, 3);
  static const char *const angle[3] = {"180", "90", "270"};
  static const int from[3][6] = {{5, 4, 3, 2, 1, 0}, {3, 0, 4, 1, 5, 2}, {2, 5, 1, 4, 0, 3}};
  for (int k = 0; k < 3; k++) {
    char text[500];
    snprintf(text, sizeof text,
             "{\"inputs\": {\"s\": \"tensor\", \"image\": \"picture\"}, \"stages\": [{\"name\": \"r\", "
             "\"kind\": \"rotate\", \"from\": \"image\", \"scores\": \"s\", \"angle\": \"%s\", "
             "\"threshold\": 0.8}]}",
             angle[k]);
    hone_chain *c = made(h, text);
    float scores[2] = {0.1f, 0.9f};
    const hone_tensor s = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){1, 2}), scores};
    const hone_tensor *const in[] = {&s, &p};
    hone_chain_value v;
    run(c, in);
    assert_true(hone_chain_output(c, 0, &v));
    assert_int_equal(v.picture[0].desc.dim[0], k ? 3 : 2);
    for (int i = 0; i < 6; i++)
      assert_memory_equal((uint8_t *)v.picture[0].data + i * 3, rgb + from[k][i] * 3, 3);
    scores[1] = 0.7f; /* not sure enough */
    run(c, in);
    assert_true(hone_chain_output(c, 0, &v));
    assert_memory_equal(v.picture[0].data, rgb, sizeof rgb);
    hone_chain_destroy(c);
  }
}

/* ---------------------------------------------------------------- answers */

static void answers(void **state) {
  const house *h = *state;
  hone_chain *c =
      made(h, "{\"inputs\": {\"x\": \"tensor\", \"t\": \"tensor\"}, \"stages\": ["
              "{\"name\": \"soft\", \"kind\": \"softmax\", \"from\": \"x\"},"
              "{\"name\": \"best\", \"kind\": \"argmax\", \"from\": \"soft\", \"labels\": \"letters.txt\"},"
              "{\"name\": \"top\", \"kind\": \"topk\", \"from\": \"x\", \"k\": 2},"
              "{\"name\": \"read\", \"kind\": \"ctc\", \"from\": \"t\", \"dictionary\": \"letters.txt\", "
              "\"space\": true}]}");
  float x[2][4] = {{0, 1, 0, 0}, {3, 0, 0, 2}}, steps[1][7][5] = {{{0}}};
  static const int spoken[7] = {2, 2, 0, 2, 4, 1, 3}; /* b b - b space a c */
  for (int i = 0; i < 7; i++) steps[0][i][spoken[i]] = i == 6 ? 0.5f : 1;
  const hone_tensor a = {hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){2, 4}), x},
                    b = {hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){1, 7, 5}), steps};
  const hone_tensor *const in[] = {&a, &b};
  hone_chain_value best, top, text;
  run(c, in);
  assert_int_equal(hone_chain_outputs(c), 3);
  assert_true(hone_chain_output(c, 0, &best) && hone_chain_output(c, 1, &top) &&
              hone_chain_output(c, 2, &text));
  assert_int_equal(best.n, 2);
  assert_int_equal(best.answer[0].class_id, 1);
  assert_string_equal(best.answer[0].text, "b");
  assert_float_equal(best.answer[0].score, exp(1) / (exp(1) + 3), 1e-6);
  assert_int_equal(best.answer[1].class_id, 0);
  assert_int_equal(top.n, 4);
  assert_int_equal(top.items, 2);
  assert_int_equal(top.answer[2].class_id, 0);
  assert_int_equal(top.answer[3].class_id, 3);
  assert_int_equal(top.answer[3].item, 1);
  assert_null(top.answer[3].text);
  assert_int_equal(text.n, 1);
  assert_string_equal(text.answer[0].text, "bb ac");
  assert_float_equal(text.answer[0].score, 4.5 / 5, 1e-6);
  hone_chain_destroy(c);
}

/* ---------------------------------------------------------------- errors */

typedef struct wrong {
  const char *text, *what, *where, *rest; /* rest: somewhere in the whole line */
  hone_status status;
} wrong;

#define IN "{\"inputs\": {\"x\": \"tensor\", \"image\": \"picture\"},\n \"stages\": [\n"
#define LINK(more) IN "{\"name\": \"s\", " more "}]}"

static const wrong mistakes[] = {
    {"{\"inputs\": ", "not valid JSON", "line 1, column", "", HONE_ERROR_INPUT},
    {"[]", "a chain is a JSON object", "line 1, column 1", "", HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"inputs\": {}}", "not valid JSON", "line 1", "duplicate",
     HONE_ERROR_INPUT},
    {"{\"chain\": 2}", "another version", "line 1, column 11", "\"chain\": 1", HONE_ERROR_INPUT},
    {"{\"stages\": []}", "wants \"inputs\"", "line 1, column 1", "", HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"sound\"}, \"stages\": []}", "no such kind", "column 18", "\"picture\"",
     HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}}", "wants \"stages\"", "line 1", "", HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [7]}", "a stage is an object", "column 40", "",
     HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"stagse\": []}", "no member 'stagse'", "column 39", "",
     HONE_ERROR_INPUT},
    {IN "{\"kind\": \"model\"}]}", "'name' is missing", "line 3, column 1", "", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"blur\""), "no kind of stage 'blur'", "line 3, column 23", "prepare, boxes",
     HONE_ERROR_INPUT},
    {LINK("\"kind\": \"softmax\", \"from\": \"y\""), "no value 'y'", "line 3, column 42",
     "there are: x, image", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"softmax\""), "wants \"from\"", "line 3, column 1", "", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"softmax\", \"from\": \"image\""), "another kind", "line 3, column 42",
     "expected tensors, got pictures", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"topk\", \"from\": \"x\", \"k\": 0"), "wrong value for 'k'", "line 3, column 49",
     "from 1 to", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"topk\", \"from\": \"x\", \"kay\": 1"), "no member 'kay'", "line 3, column 51", "",
     HONE_ERROR_INPUT},
    {LINK("\"kind\": \"boxes\", \"from\": \"x\", \"shape\": \"round\""), "wrong value for 'shape'",
     "column 54", "\"rotated\" or \"upright\"", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"ctc\", \"from\": \"x\""), "wants \"dictionary\"", "line 3, column 1", "stage 's'",
     HONE_ERROR_INPUT},
    {LINK("\"kind\": \"ctc\", \"from\": \"x\", \"dictionary\": \"none.txt\""), "", "none.txt", "line 3",
     HONE_ERROR_INPUT},
    {LINK("\"kind\": \"prepare\", \"from\": \"image\", \"std\": 0"), "deviation", "line 3", "",
     HONE_ERROR_INPUT},
    {LINK("\"kind\": \"prepare\", \"from\": \"image\", \"mean\": [1, 2]"), "wrong value for 'mean'",
     "column 59", "list of three", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"from\": \"x\""), "wants a \"path\"", "line 3", "", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"none.onnx\", \"from\": \"x\""), "", "none.onnx",
     "line 3, column 40", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"letters.txt\", \"from\": \"x\""), "", "letters.txt",
     "line 3, column 40", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"second.onnx\", \"from\": \"x\""), "wants \"from\"",
     "line 3, column 63", "{\"a\"", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"second.onnx\", \"from\": {\"a\": \"x\"}"),
     "linked to input 'b' of 's'", "line 3, column 63", "", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"first.onnx\", \"from\": {\"q\": \"x\"}"), "has no input 'q'",
     "line 3, column 68", "input is 'x'", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"x\", \"precision\": \"f99\""),
     "precision", "line 3", "\"fp16\"", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"x\", \"plans\": 0"), "plans", "line 3",
     "", HONE_ERROR_INPUT},
    {LINK(
         "\"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"x\", \"shapes\": {\"x\": [1, 4, 8, 8]}"),
     "does not fit input 'x'", "line 3", "3", HONE_ERROR_INPUT},
    {LINK("\"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"x\", \"shapes\": {\"z\": [1]}"),
     "no input 'z'", "line 3", "", HONE_ERROR_INPUT},
    {IN STAGE_FIRST ",\n{\"name\": \"two\", \"kind\": \"softmax\", \"from\": \"one\"}]}", "several outputs",
     "line 4, column 44", "one.y", HONE_ERROR_INPUT},
    {IN STAGE_FIRST ",\n" STAGE_FIRST "]}", "the name 'one' is taken", "line 4, column 10", "",
     HONE_ERROR_INPUT},
    /* 8 channels where 3 are wanted: both tensors are named. */
    {IN STAGE_FIRST
     ",\n{\"name\": \"two\", \"kind\": \"model\", \"path\": \"first.onnx\", \"from\": \"one.y\"}]}",
     "output 'y' of 'one' does not fit input 'x' of 'two'", "line 4, column 64", "got f32[",
     HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [" STAGE_FIRST "],\n\"outputs\": [\"one.z\"]}",
     "there is no value 'one.z'", "line 2, column 13", "one.same", HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [" STAGE_FIRST "],\n\"outputs\": [\"x\"]}", "is an input",
     "line 2", "", HONE_ERROR_INPUT},
    {"{\"inputs\": {\"x\": \"tensor\"}, \"stages\": [" STAGE_FIRST "],\n\"outputs\": [\"one.y\", \"one.y\"]}",
     "named twice", "line 2", "", HONE_ERROR_INPUT}};

static void all_mistakes(void **state) {
  const house *h = *state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    const wrong *w = &mistakes[i];
    hone_chain *c = (hone_chain *)&c;
    hone_error error = {0};
    char line[1600];
    const hone_status status = parse(h, w->text, &c, &error);
    hone_error_format(&error, line, sizeof line);
    if (status != w->status || !strstr(error.what, w->what) || !strstr(error.where, w->where) ||
        !strstr(line, w->rest))
      fail_msg("%s\n-> %s", w->text, line);
    assert_null(c);
  }
}

/* Cut off anywhere, or with any byte another one: an error with a place, or a chain. */
static void spoiled_texts(void **state) {
  const house *h = *state;
  static const char good[] =
      "{\"inputs\": {\"m\": \"tensor\", \"i\": \"picture\"}, \"stages\": [{\"name\": \"b\", \"kind\": "
      "\"boxes\", "
      "\"from\": \"m\", \"score\": 0.5},\n{\"name\": \"c\", \"kind\": \"crop\", \"from\": \"i\", \"boxes\": "
      "\"b\", "
      "\"tall\": \"3/2\"}, {\"name\": \"p\", \"kind\": \"prepare\", \"from\": \"c\", \"mean\": [1, 2, 3]}]}";
  static const char other[] = "\"{}[],:\\0 -x\x80";
  for (size_t n = 0; n < sizeof good - 1; n++)
    for (size_t k = 0; k < sizeof other; k++) {
      char text[sizeof good];
      hone_chain *c = NULL;
      hone_error error = {0};
      memcpy(text, good, sizeof good);
      if (k) text[n] = other[k - 1];
      const hone_status status =
          hone_chain_parse(h->engine, text, k ? sizeof good - 1 : n, h->folder, NULL, &c, &error);
      assert_true(status == HONE_OK ? c != NULL : !c && strstr(error.where, "line "));
      hone_chain_destroy(c);
    }
}

static void mistakes_of_runs(void **state) {
  const house *h = *state;
  hone_chain *c = made(h, TWO);
  float x[4 * 5 * 5] = {0};
  uint8_t bytes[4] = {0};
  const hone_tensor four = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 4, 5, 5}), x},
                    flat = {hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4}), x},
                    wrong_type = {hone_desc(HONE_DTYPE_U8, 4, (const int64_t[]){1, 1, 2, 2}), bytes};
  const hone_tensor *in[1] = {&four};
  hone_error error = {0};
  hone_chain_value v;
  assert_int_equal(hone_chain_run(c, in, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.what, "'x' does not fit input 'x' of 'one'"));
  assert_non_null(strstr(error.where, "stage 'one'"));
  assert_false(hone_chain_output(c, 0, &v));
  in[0] = &flat;
  assert_int_equal(hone_chain_run(c, in, &error), HONE_ERROR_INPUT);
  in[0] = &wrong_type;
  assert_int_equal(hone_chain_run(c, in, &error), HONE_ERROR_INPUT);
  in[0] = NULL;
  assert_int_equal(hone_chain_run(c, in, &error), HONE_ERROR_USAGE);
  const char *paths[2] = {"nowhere.npy", "nowhere.npy"};
  assert_int_equal(hone_chain_run_files(c, paths, 1, &error), HONE_ERROR_INPUT);
  assert_int_equal(hone_chain_run_files(c, paths, 2, &error), HONE_ERROR_USAGE);
  hone_chain_cancel(c);
  const hone_tensor good = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 5, 5}), x};
  in[0] = &good;
  assert_int_equal(hone_chain_run(c, in, &error), HONE_ERROR_CANCELLED);
  assert_int_equal(hone_chain_run(c, in, &error), HONE_OK);
  hone_chain_destroy(c);
  c = made(h, LINK("\"kind\": \"ctc\", \"from\": \"x\", \"dictionary\": \"letters.txt\""));
  const hone_tensor five = {hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){1, 2, 5}), x},
                    p = picture_of(bytes, 1, 1);
  const hone_tensor *two[2] = {&five, &p};
  assert_int_equal(hone_chain_run(c, two, &error), HONE_ERROR_INPUT); /* three letters, blank: 4 classes */
  assert_non_null(strstr(error.what, "dictionary"));
  assert_non_null(strstr(error.hint, "space"));
  hone_chain_destroy(c);
  c = made(h, LINK("\"kind\": \"boxes\", \"from\": \"x\""));
  two[0] = &good;
  assert_int_equal(hone_chain_run(c, two, &error), HONE_ERROR_INPUT);
  assert_non_null(strstr(error.what, "no map of one channel"));
  two[1] = &good;
  assert_int_equal(hone_chain_run(c, two, &error), HONE_ERROR_USAGE);
  assert_non_null(strstr(error.what, "is a picture"));
  hone_chain_destroy(c);
}

/* Any allocation may fail: an error, and nothing is lost. */
static void no_memory(void **state) {
  const house *h = *state;
  static float x[3 * 6 * 6], map[20 * 20];
  static uint8_t rgb[20 * 20 * 3];
  for (int y = 4; y < 10; y++)
    for (int i = 3; i < 15; i++) map[y * 20 + i] = 1;
  const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 6, 6}), x}, *in = &t,
                    m = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 1, 20, 20}), map},
                    p = picture_of(rgb, 20, 20);
  const hone_tensor *const both[] = {&m, &p};
  static const char links[] =
      "{\"inputs\": {\"map\": \"tensor\", \"image\": \"picture\"}, \"stages\": ["
      "{\"name\": \"boxes\", \"kind\": \"boxes\", \"from\": \"map\"},"
      "{\"name\": \"crops\", \"kind\": \"crop\", \"from\": \"image\", \"boxes\": \"boxes\"},"
      "{\"name\": \"p\", \"kind\": \"prepare\", \"from\": \"crops\", \"height\": 6, \"narrowest\": 30}]}";
  for (int kind = 0; kind < 2; kind++)
    for (uint64_t n = 1, step = 1;; n += step, step = n > 60 ? n / 20 : 1) {
      hone_chain *c = NULL;
      hone_error error = {0};
      hn_mem_fail_after(n);
      hone_status status = parse(h, kind ? links : TWO, &c, &error);
      if (status == HONE_OK) status = hone_chain_run(c, kind ? both : &in, &error);
      const bool failed = hn_mem_failed();
      hn_mem_fail_after(0);
      if (failed)
        assert_int_equal(status, HONE_ERROR_MEMORY);
      else
        assert_int_equal(status, HONE_OK);
      if (status != HONE_OK && c) run(c, kind ? both : &in); /* it still works */
      hone_chain_destroy(c);
      if (!failed) break;
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(two_models),
                                     cmocka_unit_test(few_plans),
                                     cmocka_unit_test(memory_is_used_again),
                                     cmocka_unit_test(prepared),
                                     cmocka_unit_test(boxes_and_crops),
                                     cmocka_unit_test(turned_pictures),
                                     cmocka_unit_test(answers),
                                     cmocka_unit_test(all_mistakes),
                                     cmocka_unit_test(spoiled_texts),
                                     cmocka_unit_test(mistakes_of_runs),
                                     cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
