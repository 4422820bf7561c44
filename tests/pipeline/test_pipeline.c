/* Files through a network whose answers are known: each told once and in order, broken ones by their own
 * error, in batches, while workers change, when cancelled at any moment, and with memory lacking anywhere. */
#include "accuracy/pictures.h"
#include "base/mem.h"
#include "net.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
// clang-format on
#include <hone/hone.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FILES = 16 };

static char path[FILES][300], broken[300], missing[300], text[300];

/* The colour of file i: bytes that differ, the strongest one is i % 3. */
static void colour(int i, uint8_t rgb[3]) {
  for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)(20 + 10 * i + (c == i % 3 ? 60 : c));
}

static int setup(void **state) {
  (void)state;
  pictures_folder();
  for (int i = 0; i < FILES; i++) {
    char name[40];
    uint8_t rgb[3];
    snprintf(name, sizeof name, "p%02d.png", i);
    colour(i, rgb);
    pictures_plain(name, 6, 5, rgb[0], rgb[1], rgb[2]);
    snprintf(path[i], sizeof path[i], "%s", pictures_path(name));
  }
  pictures_file("broken.png", "\x89PNG\r\n\x1a\nand no more", 20);
  pictures_text("note.txt", "no picture");
  snprintf(broken, sizeof broken, "%s", pictures_path("broken.png"));
  snprintf(missing, sizeof missing, "%s", pictures_path("missing.png"));
  snprintf(text, sizeof text, "%s", pictures_path("note.txt"));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  pictures_remove();
  return 0;
}

/* f32[N,3,4,4] -> f32[N,3]: the mean of each channel. */
static net_session open_net(int64_t batch) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (int64_t[]){batch, 3, 4, 4});
  hn_value *mean = net_op(m, "GlobalAveragePool", &x, 1);
  net_finish(m, net_op(m, "Flatten", &mean, 1));
  return net_open(m, 2, false, 2);
}

static const hone_preprocess plain = {.normalise = true, .scale = 1, .std = {1, 1, 1}};
static const hone_post best = {.kind = HONE_POST_TOP_K, .map = HONE_MAP_NONE, .k = 1};

typedef struct world {
  hone_pipeline *pipeline;
  uint64_t told, good, bad, cancelled, lacking;
  uint64_t cancel_at; /* told: the callback cancels */
  uint64_t close_at;
  bool wrong, may_lack;
} world;

static uint64_t mixed(uint64_t n) { return (n * 6364136223846793005u + 1442695040888963407u) >> 33; }

/* What item n is: a file, or one of those that cannot be read. */
static const char *file_of(uint64_t n) {
  static const char *const bad[] = {broken, missing, text};
  return mixed(n) % 20 == 0 ? bad[n % 3] : path[mixed(n) % FILES];
}

static void told(void *arg, const hone_pipeline_result *r) {
  world *w = arg;
  const char *file = file_of(w->told);
  const bool is_bad = mixed(w->told) % 20 == 0;
  if (r->number != w->told || strcmp(r->name, file) != 0 || r->user != w) w->wrong = true;
  w->told++;
  if (r->status == HONE_OK) {
    uint8_t rgb[3];
    const int i = (int)(mixed(r->number) % FILES);
    colour(i, rgb);
    w->good++;
    const hone_ranked *top = r->answer->ranked;
    if (is_bad || r->answer->n_ranked != 1 || top->index != (uint32_t)(i % 3) ||
        top->score != (float)rgb[i % 3] || r->picture.width != 6 || r->picture.height != 5 || r->n_out != 1 ||
        ((const float *)r->out[0]->data)[r->row * 3 + 1] != (float)rgb[1])
      w->wrong = true;
  } else if (r->status == HONE_ERROR_CANCELLED) {
    w->cancelled++;
  } else if (r->status == HONE_ERROR_MEMORY && w->may_lack) {
    w->lacking++;
  } else {
    w->bad++;
    if (!is_bad || !strstr(r->error->where, file)) w->wrong = true;
  }
  if (w->cancel_at && w->told == w->cancel_at) hone_pipeline_cancel(w->pipeline);
  if (w->close_at && w->told == w->close_at) hone_pipeline_close(w->pipeline);
}

static hone_status create(world *w, hone_plan *plan, const hone_pipeline_options *o) {
  hone_error e = {0};
  const hone_status status = hone_pipeline_create(plan, o, told, w, &w->pipeline, &e);
  if (status != HONE_OK && !w->may_lack) fail_msg("%s", e.what);
  return status;
}

static hone_status submit(world *w, uint64_t n) {
  return hone_pipeline_submit(w->pipeline, &(hone_pipeline_item){.path = file_of(n), .user = w}, NULL);
}

static void push(hone_plan *plan, const hone_pipeline_options *o, uint64_t n, hone_pipeline_state *s) {
  world w = {0};
  create(&w, plan, o);
  for (uint64_t i = 0; i < n; i++) assert_int_equal(submit(&w, i), HONE_OK);
  hone_pipeline_drain(w.pipeline);
  assert_int_equal(hone_pipeline_state_get(w.pipeline, s, NULL), HONE_OK);
  hone_pipeline_destroy(w.pipeline);
  uint64_t bad = 0;
  for (uint64_t i = 0; i < n; i++) bad += mixed(i) % 20 == 0;
  assert_false(w.wrong);
  assert_int_equal(w.told, n);
  assert_int_equal(w.bad, bad);
  assert_int_equal(w.good, n - bad);
  assert_int_equal(s->good, n - bad);
  assert_int_equal(s->failed, bad);
}

static void each_is_told_once_and_in_order(void **state) {
  (void)state;
  net_session s = open_net(1);
  hone_pipeline_state st;
  const hone_pipeline_options o = {.preprocess = &plain, .post = &best, .workers = {3, 2, 2}, .threads = 1};
  push(s.plan, &o, 2000, &st);
  assert_int_equal(st.batch, 1);
  /* every moment of an item is in one of the parts */
  const hone_pipeline_split *t = &st.split;
  assert_true(t->total > 0);
  assert_true(t->residual >= -1e-9 && t->residual < 1e-3 * t->total + 1e-9);
  assert_float_equal(t->pre + t->h2d + t->infer + t->d2h + t->post + t->idle + t->residual, t->total, 1e-9);
  assert_true(st.rate > 0 && st.rate <= st.ceiling * (1 + 1e-9)); /* also of items that were never in a run */
  net_close(&s);
}

static void in_batches(void **state) {
  (void)state;
  net_session s = open_net(4);
  hone_pipeline_state st;
  hone_pipeline_options o = {.preprocess = &plain, .post = &best, .workers = {3, 1, 2}};
  push(s.plan, &o, 1001, &st);
  assert_int_equal(st.batch, 4);
  assert_true(st.stage[HONE_STAGE_INFER].runs < st.stage[HONE_STAGE_INFER].items);
  push(s.plan, &o, 1, &st); /* fewer than a batch */
  o.in_flight = 2;
  push(s.plan, &o, 21, &st); /* never a batch */
  net_close(&s);
}

static void by_the_controller(void **state) {
  (void)state;
  net_session s = open_net(2);
  hone_pipeline_state st;
  const hone_pipeline_options o = {
      .preprocess = &plain, .post = &best, .most_workers = {4, 0, 3}, .gains = {.period = 0.001}};
  push(s.plan, &o, 1500, &st);
  assert_int_equal(st.stage[HONE_STAGE_PRE].most_workers, 4);
  net_close(&s);
}

static void *cancel_later(void *arg) {
  world *w = arg;
  nanosleep(&(struct timespec){0, (long)(mixed(w->cancel_at) % 2000) * 300}, NULL);
  hone_pipeline_cancel(w->pipeline);
  return NULL;
}

/* By the callback or by another thread; closed, or cancelled. */
static void ended_at_random(void **state) {
  (void)state;
  net_session s = open_net(1), batches = open_net(3);
  const hone_pipeline_options o = {.preprocess = &plain, .post = &best, .workers = {2, 2, 1}, .threads = 1};
  for (uint64_t round = 1; round <= 100; round++) {
    const bool close = round % 4 == 0, other = round % 2;
    world w = {.cancel_at = close ? 0 : mixed(round) % 60 + 1, .close_at = close ? mixed(round) % 60 + 1 : 0};
    pthread_t thread;
    create(&w, round % 3 ? s.plan : batches.plan, &o);
    if (other) assert_int_equal(pthread_create(&thread, NULL, cancel_later, &w), 0);
    uint64_t n = 0;
    while (submit(&w, n) == HONE_OK) n++;
    if (other) pthread_join(thread, NULL);
    hone_pipeline_drain(w.pipeline);
    hone_pipeline_destroy(w.pipeline);
    assert_false(w.wrong);
    assert_int_equal(w.told, n);
    assert_int_equal(w.good + w.bad + w.cancelled, n);
    if (close) assert_int_equal(w.cancelled, 0);
  }
  net_close(&s);
  net_close(&batches);
}

typedef struct kept {
  hone_status status[8];
  float value[8];
  char got[8][100];
  uint32_t n;
} kept;

static void keep(void *arg, const hone_pipeline_result *r) {
  kept *k = arg;
  k->status[k->n] = r->status;
  k->value[k->n] = r->status == HONE_OK ? r->answer->ranked[0].score : 0;
  snprintf(k->got[k->n], sizeof k->got[0], "%.99s", r->error ? r->error->got : r->name);
  k->n++;
}

static void tensors_and_bytes(void **state) {
  (void)state;
  net_session s = open_net(1);
  kept k = {0};
  hone_pipeline *p;
  float values[48], other[3];
  for (int i = 0; i < 48; i++) values[i] = i < 16 ? 7 : 1;
  const hone_tensor t = {hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){1, 3, 4, 4}), values};
  const hone_tensor small = {hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){3}), other};
  char *bytes;
  size_t size;
  assert_int_equal(hone_file_read(path[3], 1 << 20, &bytes, &size, NULL), HONE_OK);
  const hone_pipeline_options o = {.preprocess = &plain, .post = &best, .workers = {1, 1, 1}};
  assert_int_equal(hone_pipeline_create(s.plan, &o, keep, &k, &p, NULL), HONE_OK);
  const hone_pipeline_item items[] = {{.name = "a tensor", .tensor = &t},
                                      {.name = "bytes", .bytes = bytes, .size = size},
                                      {.tensor = &small},
                                      {.name = "cut", .bytes = bytes, .size = size / 2},
                                      {.name = "nothing"},
                                      {.path = path[0]}};
  for (size_t i = 0; i < sizeof items / sizeof *items; i++)
    assert_int_equal(hone_pipeline_submit(p, &items[i], NULL), HONE_OK);
  hone_pipeline_drain(p);
  hone_pipeline_destroy(p);
  assert_int_equal(k.n, 6);
  assert_int_equal(k.status[0], HONE_OK);
  assert_float_equal(k.value[0], 7, 0);
  assert_string_equal(k.got[0], "a tensor");
  assert_int_equal(k.status[1], HONE_OK);
  assert_float_equal(k.value[1], 20 + 30 + 60, 0);
  assert_int_equal(k.status[2], HONE_ERROR_INPUT);
  assert_string_equal(k.got[2], "f32[3]");
  assert_int_equal(k.status[3], HONE_ERROR_INPUT);
  assert_int_equal(k.status[4], HONE_ERROR_USAGE);
  assert_int_equal(k.status[5], HONE_OK);
  hone_file_free(bytes);
  net_close(&s);
}

/* Every allocation of making one, and many while it runs: an error and no more. */
static void memory_may_lack(void **state) {
  (void)state;
  net_session s = open_net(2);
  const hone_pipeline_options o = {.preprocess = &plain, .post = &best, .workers = {1, 1, 1}, .in_flight = 4};
  uint64_t n = 1;
  for (bool reached = true; reached; n++) {
    world w = {.may_lack = true};
    hn_mem_fail_after(n);
    const hone_status status = create(&w, s.plan, &o);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    if (reached) assert_int_equal(status, HONE_ERROR_MEMORY);
    if (!reached) assert_int_equal(status, HONE_OK);
    hone_pipeline_destroy(w.pipeline);
  }
  assert_true(n > 10);
  uint64_t lacking = 0;
  for (n = 1; n <= 60; n++) {
    world w = {.may_lack = true};
    create(&w, s.plan, &o);
    hn_mem_fail_after(n);
    for (uint64_t i = 0; i < 12; i++) assert_int_equal(submit(&w, i), HONE_OK);
    hone_pipeline_drain(w.pipeline);
    hn_mem_fail_after(0);
    hone_pipeline_destroy(w.pipeline);
    assert_int_equal(w.told, 12);
    lacking += w.lacking;
  }
  assert_true(lacking > 10);
  net_close(&s);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  net_session s = open_net(1);
  hone_error e = {0};
  hone_pipeline *p;
  hone_pipeline_options o = {.input = 1};
  assert_int_equal(hone_pipeline_create(s.plan, &o, keep, NULL, &p, &e), HONE_ERROR_USAGE);
  o = (hone_pipeline_options){.in_flight = 100000};
  assert_int_equal(hone_pipeline_create(s.plan, &o, keep, NULL, &p, &e), HONE_ERROR_USAGE);
  o = (hone_pipeline_options){.workers = {1000, 1, 1}};
  assert_int_equal(hone_pipeline_create(s.plan, &o, keep, NULL, &p, &e), HONE_ERROR_USAGE);
  o = (hone_pipeline_options){.workers = {0, 65, 0}};
  assert_int_equal(hone_pipeline_create(s.plan, &o, keep, NULL, &p, &e), HONE_ERROR_USAGE);
  assert_null(p);
  net_close(&s);
}

/* ---- the description */

static void parse(const char *json, hone_pipeline_spec *out) {
  hone_error e = {0};
  if (hone_pipeline_spec_parse(json, strlen(json), "m.pipeline.json", out, &e) != HONE_OK)
    fail_msg("%s %s", e.where, e.what);
}

static void descriptions(void **state) {
  (void)state;
  hone_pipeline_spec s;
  parse("{\"pre\": {\"resize\": 256, \"crop\": [224, 192], \"scale\": \"1/128\", \"mean\": [1, 2, 3], "
        "\"bgr\": true, \"letterbox\": true, \"pad\": 7, \"layout\": \"nhwc\"},\n"
        " \"post\": [{\"op\": \"sigmoid\"}, {\"op\": \"threshold\", \"least\": 0.25, \"labels\": [\"a\", "
        "\"b\"], "
        "\"output\": \"y\"}]}",
        &s);
  assert_int_equal(s.preprocess.resize_h, 256);
  assert_int_equal(s.preprocess.resize_w, 0);
  assert_int_equal(s.preprocess.crop_w, 192);
  assert_true(s.preprocess.normalise && s.preprocess.bgr);
  assert_float_equal(s.preprocess.scale, 1.0 / 128, 1e-9);
  assert_float_equal(s.preprocess.mean[2], 3, 0);
  assert_float_equal(s.preprocess.std[1], 1, 0);
  assert_int_equal(s.preprocess.pad, 7);
  assert_int_equal(s.preprocess.fit, HONE_FIT_LETTERBOX);
  assert_int_equal(s.preprocess.pixels, HONE_PIXELS_NHWC);
  assert_int_equal(s.post.kind, HONE_POST_THRESHOLD);
  assert_int_equal(s.post.map, HONE_MAP_SIGMOID);
  assert_float_equal(s.post.least, 0.25, 0);
  assert_int_equal(s.post.n_labels, 2);
  assert_string_equal(hone_post_label(&s.post, 1, 2), "b");
  assert_null(hone_post_label(&s.post, 2, 3));
  assert_string_equal(s.post.output, "y");
  hone_pipeline_spec_free(&s);
  parse("{}", &s);
  assert_int_equal(s.post.kind, HONE_POST_AUTO);
  assert_false(s.preprocess.normalise);
  hone_pipeline_spec_free(&s);
  parse("{\"post\": [{\"op\": \"boxes\", \"form\": \"yolov8\", \"order\": \"xyxy\", \"min_score\": 0.5, "
        "\"iou\": 0.6, \"relative\": true, \"background\": true}]}",
        &s);
  assert_int_equal(s.post.boxes.form, HONE_BOXES_YOLOV8);
  assert_int_equal(s.post.boxes.order, HONE_BOX_XYXY);
  assert_float_equal(s.post.boxes.nms_iou, 0.6, 0);
  hone_pipeline_spec_free(&s);
}

/* Line and column of what is wrong, and what would be right. */
static void descriptions_that_are_wrong(void **state) {
  (void)state;
  static const struct {
    const char *json, *where, *what;
  } cases[] = {
      {"{\"pre\": {\n  \"scael\": 1}}", ":2:3", "no member \"scael\""},
      {"{\"pre\": {\"scale\": \"a\"}}", ":1:10", "\"scale\" is no number"},
      {"{\"pre\": {\"pad\": 256}}", ":1:10", "\"pad\""},
      {"{\"pre\": {\"std\": [1, 0, 1]}}", ":1:10", "\"std\" is 0"},
      {"{\"pre\": {\"resize\": [1]}}", ":1:10", "\"resize\" is no size"},
      {"{\"pre\": {\"layout\": \"chw\"}}", ":1:10", "\"layout\""},
      {"{\"pre\": 3}", ":1:2", "no object"},
      {"{\"post\": [\n {\"op\": \"softmax\"},\n {\"op\": \"top-k\",\n  \"k\": 0}]}", ":4:3", "\"k\""},
      {"{\"post\": [{\"op\": \"topk\"}]}", ":1:12", "\"op\" knows no such word"},
      {"{\"post\": [{\"op\": \"softmax\"}]}", ":1:11", "does not end"},
      {"{\"post\": [{\"op\": \"top-k\"}, {\"op\": \"softmax\"}]}", ":1:29", "softmax cannot come here"},
      {"{\"post\": [{\"op\": \"softmax\"}, {\"op\": \"boxes\"}]}", ":1:31",
       "boxes takes its output as it is"},
      {"{\"post\": [{\"k\": 3}]}", ":1:11", "no \"op\""},
      {"{\"post\": {}}", ":1:2", "no list"},
      {"{\"post\": [{\"op\": \"ctc\", \"labels\": [1]}]}", ":1:25", "\"labels\""},
      {"{\"pre\": {},\n}", ":2:1", "no JSON"},
      {"[]", ":1:1", "no object"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    hone_pipeline_spec s;
    hone_error e = {0};
    char where[100];
    assert_int_equal(hone_pipeline_spec_parse(cases[i].json, strlen(cases[i].json), "m.json", &s, &e),
                     HONE_ERROR_INPUT);
    snprintf(where, sizeof where, "m.json%s", cases[i].where);
    if (strcmp(e.where, where) != 0 || !strstr(e.what, cases[i].what))
      fail_msg("%s: %s %s", cases[i].json, e.where, e.what);
    assert_null(s.impl);
  }
}

/* Cut anywhere, and with memory lacking at any time: an error. */
static void descriptions_that_are_cut(void **state) {
  (void)state;
  static const char json[] =
      "{\"pre\": {\"mean\": [1, 2, 3]}, \"post\": [{\"op\": \"ctc\", \"labels\": [\"a\\\"\", "
      "\"b\"]}]}";
  hone_pipeline_spec s;
  for (size_t n = 0; n + 1 < sizeof json; n++) {
    hone_error e = {0};
    assert_int_equal(hone_pipeline_spec_parse(json, n, "m.json", &s, &e), HONE_ERROR_INPUT);
    assert_int_equal(strncmp(e.where, "m.json:1:", 9), 0);
  }
  bool reached = true;
  for (uint64_t n = 1; reached; n++) {
    hn_mem_fail_after(n);
    const hone_status status = hone_pipeline_spec_parse(json, sizeof json - 1, "m.json", &s, NULL);
    reached = hn_mem_failed();
    hn_mem_fail_after(0);
    assert_int_equal(status, reached ? HONE_ERROR_MEMORY : HONE_OK);
    hone_pipeline_spec_free(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_told_once_and_in_order),
                                     cmocka_unit_test(in_batches),
                                     cmocka_unit_test(by_the_controller),
                                     cmocka_unit_test(ended_at_random),
                                     cmocka_unit_test(tensors_and_bytes),
                                     cmocka_unit_test(memory_may_lack),
                                     cmocka_unit_test(what_cannot_be_is_refused),
                                     cmocka_unit_test(descriptions),
                                     cmocka_unit_test(descriptions_that_are_wrong),
                                     cmocka_unit_test(descriptions_that_are_cut)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
