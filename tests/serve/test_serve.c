/* The Open Inference Protocol, without sockets: every request is answered, right ones with what the model
 * gives, wrong ones with a status and what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/shapes/proofs.h"
#include "base/error.h"
#include "net.h"
#include "temporary.h"

#include <hone/hone.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WIDE = 3, CLIENTS = 6 };

static const char *device; /* the first argument */

/* Rows are independent. */
static const char rows[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3]) -> (%y, %k) {\n"
                           "  const %two: f32 = {2}\n"
                           "  %y = Mul(%x, %two)\n"
                           "  %k = ArgMax(%x) {axis=1, keepdims=0}\n}";
/* The sum over N: rows meet. */
static const char sums[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3]) -> (%y) {\n"
                           "  const %axes: i64[1] = {0}\n"
                           "  %y = ReduceSum(%x, %axes) {keepdims=1}\n}";
/* An index that a request may get wrong. */
static const char table[] = "ir 8\nopset 17\ngraph g(%i: i64[N]) -> (%y) {\n"
                            "  const %t: f32[4] = {10, 11, 12, 13}\n"
                            "  %y = Gather(%t, %i)\n}";
/* Rows of 64, whatever the samples are; and rows of 32, of which a sample has as many as it is long. */
static const char wide[] = "ir 8\nopset 17\ngraph g(%x: f32[NxS]) -> (%y) {\n"
                           "  const %s: i64[2] = {-1, 64}\n"
                           "  %y = Reshape(%x, %s)\n}";
static const char narrow[] = "ir 8\nopset 17\ngraph g(%x: f32[NxS]) -> (%y) {\n"
                             "  const %s: i64[2] = {-1, 32}\n"
                             "  %y = Reshape(%x, %s)\n}";
/* The same for one: no shape is open, and there is one plan. */
static const char pick[] = "ir 8\nopset 17\ngraph g(%i: i64[]) -> (%y) {\n"
                           "  const %t: f32[4] = {10, 11, 12, 13}\n"
                           "  %y = Gather(%t, %i)\n}";
static const char texts[] = "ir 8\nopset 17\ngraph g(%s: string[N]) -> (%y) { %y = Identity(%s) }";
static const char types[] =
    "ir 8\nopset 17\ngraph g(%b: bool[2], %u: u8[2], %l: i64[2], %h: f16[2], %d: f64[2]) -> "
    "(%p, %q, %r, %s, %t) {\n"
    "  %p = Identity(%b)\n  %q = Identity(%u)\n  %r = Identity(%l)\n"
    "  %s = Identity(%h)\n  %t = Identity(%d)\n}";
static const char items[] = "ir 8\nopset 17\ngraph g(%x: f32[3]) -> (%y) { %y = SequenceConstruct(%x) }";

static struct {
  hone_engine *engine;
  hone_server *server;
} the;

static hone_status add(const char *name, const char *text, const hone_served_options *more, hone_error *e) {
  hone_served_options o = more ? *more : (hone_served_options){0};
  o.name = name;
  hone_model *m = net_parse(name, text);
  const hone_status status = hone_server_add(the.server, m, &o, e);
  hone_model_release(m);
  return status;
}

static int start(void **state) {
  (void)state;
  assert_int_equal(
      hone_engine_create(&(hone_engine_options){.device = device, .threads = 1}, &the.engine, NULL), HONE_OK);
  const hone_server_options o = {.max_body = 4 << 20};
  assert_int_equal(hone_server_create(the.engine, &o, &the.server, NULL), HONE_OK);
  assert_int_equal(add("rows", rows, &(hone_served_options){.max_batch = 4}, NULL), HONE_OK);
  assert_int_equal(add("sums", sums, NULL, NULL), HONE_OK);
  assert_int_equal(add("table", table, &(hone_served_options){.batch_delay = 0.05}, NULL), HONE_OK);
  assert_int_equal(add("texts", texts, NULL, NULL), HONE_OK);
  assert_int_equal(add("types", types, NULL, NULL), HONE_OK);
  return 0;
}

static int end(void **state) {
  (void)state;
  hone_server_destroy(the.server);
  hone_engine_destroy(the.engine);
  return 0;
}

static hone_server_response send_bytes(const char *method, const char *path, const char *json_size,
                                       const void *body, size_t size) {
  const hone_server_request r = {
      .method = method, .path = path, .json_size = json_size, .body = body, .size = size};
  hone_server_response out;
  hone_server_answer(the.server, &r, &out);
  return out;
}

static hone_server_response send(const char *method, const char *path, const char *body) {
  return send_bytes(method, path, NULL, body, body ? strlen(body) : 0);
}

/* Sends, wants this status and this text in the response. */
static void wants(const char *method, const char *path, const char *body, int status, const char *text) {
  hone_server_response r = send(method, path, body);
  if (r.status != status || !r.body || !strstr(r.body, text))
    fail_msg("%s %s %s: %d %s", method, path, body ? body : "", r.status, r.body ? r.body : "");
  json_t *doc = r.content_type && strcmp(r.content_type, "application/json") == 0
                    ? json_loads(r.body, JSON_DECODE_ANY, NULL)
                    : json_null();
  if (!doc && !strstr(r.body, "NaN")) fail_msg("%s", r.body);
  json_decref(doc);
  hone_server_response_free(&r);
}

static void refused(const char *path, const char *body, const char *text) {
  wants("POST", path, body, 400, text);
}

#define ROWS(shape, data)                                                                                    \
  "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":" shape ",\"data\":" data "}]}"

/* ------------------------------------------------------------------ tests */

static void what_there_is_is_told(void **state) {
  (void)state;
  wants("GET", "/v2", NULL, 200, "\"name\":\"hone\"");
  wants("GET", "/v2/health/live", NULL, 200, "{\"live\":true}");
  wants("GET", "/v2/health/ready", NULL, 200, "{\"ready\":true}");
  wants("GET", "/v2/models/rows", NULL, 200,
        "\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[-1,3]}],"
        "\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[-1,3]},"
        "{\"name\":\"k\",\"datatype\":\"INT64\",\"shape\":[-1]}]");
  wants("GET", "/v2/models/rows/versions/1", NULL, 200, "\"versions\":[\"1\"]");
  wants("GET", "/v2/models/rows/ready", NULL, 200, "{\"name\":\"rows\",\"ready\":true}");
  wants("POST", "/v2/repository/index", "{}", 200,
        "{\"name\":\"table\",\"version\":\"1\",\"state\":\"READY\"");
  wants("GET", "/v2/models/rows/versions/2/ready", NULL, 404, "has no version '2', but '1'");
  wants("GET", "/v2/models/none", NULL, 404, "there is no model 'none'");
  wants("GET", "/v2/models/rows/stop", NULL, 404, "/infer (POST)");
  wants("GET", "/", NULL, 404, "/v2/health/ready");
  wants("GET", "/v2/models/rows/infer", NULL, 405, "takes POST");
  wants("DELETE", "/v2/models/rows", NULL, 405, "takes GET");
}

static void numbers_come_back(void **state) {
  (void)state;
  wants("POST", "/v2/models/rows/infer", ROWS("[2,3]", "[1, 2.5, -3e-1, 4,\n5,6]"), 200,
        "{\"model_name\":\"rows\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\","
        "\"shape\":[2,3],\"data\":[2,5,-0.600000024,8,10,12]},"
        "{\"name\":\"k\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[1,2]}]}");
  wants("POST", "/v2/models/rows/versions/1/infer", ROWS("[2,3]", "[[1,2,3],[4,5,6]]"), 200,
        "[2,4,6,8,10,12]");
  wants("POST", "/v2/models/rows/infer",
        "{\"id\":\"a\\\"\\u00e9\",\"inputs\":[{\"data\":[0,NaN,-Infinity],\"shape\":[1,3],\"datatype\":"
        "\"FP32\","
        "\"name\":\"x\"}],\"outputs\":[{\"name\":\"y\"}]}",
        200,
        "\"id\":\"a\\\"\xc3\xa9\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,3],"
        "\"data\":[0,NaN,-Infinity]}]}");
  wants("POST", "/v2/models/rows/infer",
        "{\"inputs\":[{\"name\":\"x\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":[1,3,2,9,7,8]}],"
        "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"classification\":2}}]}",
        200, "\"datatype\":\"BYTES\",\"shape\":[2,2],\"data\":[\"6:1\",\"4:2\",\"18:0\",\"16:2\"]");
  wants("POST", "/v2/models/types/infer",
        "{\"inputs\":[{\"name\":\"b\",\"shape\":[2],\"datatype\":\"BOOL\",\"data\":[true,0]},"
        "{\"name\":\"u\",\"shape\":[2],\"datatype\":\"UINT8\",\"data\":[0,255]},"
        "{\"name\":\"l\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[-9223372036854775808,"
        "9223372036854775807]},"
        "{\"name\":\"h\",\"shape\":[2],\"datatype\":\"FP16\",\"data\":[65504,0.1]},"
        "{\"name\":\"d\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[0.1,1e300]}]}",
        200, "[true,false]");
  wants("POST", "/v2/models/types/infer",
        "{\"inputs\":[{\"name\":\"b\",\"shape\":[2],\"datatype\":\"BOOL\",\"data\":[true,0]},"
        "{\"name\":\"u\",\"shape\":[2],\"datatype\":\"UINT8\",\"data\":[0,255]},"
        "{\"name\":\"l\",\"shape\":[2],\"datatype\":\"INT64\",\"data\":[-9223372036854775808,"
        "9223372036854775807]},"
        "{\"name\":\"h\",\"shape\":[2],\"datatype\":\"FP16\",\"data\":[65504,0.1]},"
        "{\"name\":\"d\",\"shape\":[2],\"datatype\":\"FP64\",\"data\":[0.1,1e300]}]}",
        200,
        "[0,255]},{\"name\":\"r\",\"datatype\":\"INT64\",\"shape\":[2],\"data\":[-9223372036854775808,"
        "9223372036854775807]},"
        "{\"name\":\"s\",\"datatype\":\"FP16\",\"shape\":[2],\"data\":[65504,0.099976]},"
        "{\"name\":\"t\",\"datatype\":\"FP64\",\"shape\":[2],\"data\":[0.10000000000000001,1."
        "0000000000000001e+300]}");
}

static void texts_come_back(void **state) {
  (void)state;
  wants("POST", "/v2/models/texts/infer",
        "{\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\",\"data\":[\"a\\n\",\"]}"
        "\\\"\\u00fc\"]}]}",
        200, "\"data\":[\"a\\u000a\",\"]}\\\"\xc3\xbc\"]");
  static const char json[] =
      "{\"inputs\":[{\"name\":\"s\",\"shape\":[2],\"datatype\":\"BYTES\",\"parameters\":"
      "{\"binary_data_size\":11}}],\"parameters\":{\"binary_data_output\":true}}",
                    tail[] = "\3\0\0\0a\0b\0\0\0\0";
  char body[sizeof json + sizeof tail], size[16];
  memcpy(body, json, sizeof json - 1);
  memcpy(body + sizeof json - 1, tail, 11);
  snprintf(size, sizeof size, "%zu", sizeof json - 1);
  hone_server_response r = send_bytes("POST", "/v2/models/texts/infer", size, body, sizeof json - 1 + 11);
  assert_int_equal(r.status, 200);
  assert_int_equal(r.size - r.json_size, 11);
  assert_memory_equal(r.body + r.json_size, tail, 11);
  hone_server_response_free(&r);
  r = send_bytes("POST", "/v2/models/texts/infer", size, body, sizeof json - 1 + 10);
  assert_int_equal(r.status, 400);
  hone_server_response_free(&r);
  body[sizeof json - 1] = 8; /* a text that is longer than the bytes */
  r = send_bytes("POST", "/v2/models/texts/infer", size, body, sizeof json - 1 + 11);
  assert_int_equal(r.status, 400);
  assert_non_null(strstr(r.body, "end within a string"));
  hone_server_response_free(&r);
}

static void bytes_come_back(void **state) {
  (void)state;
  const float x[WIDE] = {1, 2, 3}, want[WIDE] = {2, 4, 6};
  char body[512], size[16];
  const int n =
      snprintf(body, sizeof body,
               "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"parameters\":"
               "{\"binary_data_size\":12}}],\"outputs\":[{\"name\":\"k\"},{\"name\":\"y\",\"parameters\":"
               "{\"binary_data\":true}}]}");
  memcpy(body + n, x, sizeof x);
  snprintf(size, sizeof size, "%d", n);
  hone_server_response r = send_bytes("POST", "/v2/models/rows/infer", size, body, (size_t)n + sizeof x);
  assert_int_equal(r.status, 200);
  assert_string_equal(r.content_type, "application/octet-stream");
  assert_int_equal(r.size - r.json_size, sizeof want);
  assert_memory_equal(r.body + r.json_size, want, sizeof want);
  json_t *doc = json_loadb(r.body, r.json_size, 0, NULL);
  assert_non_null(doc);
  json_decref(doc);
  hone_server_response_free(&r);
  for (size_t less = 1; less <= sizeof x; less++) {
    r = send_bytes("POST", "/v2/models/rows/infer", size, body, (size_t)n + sizeof x - less);
    assert_int_equal(r.status, 400);
    hone_server_response_free(&r);
  }
  static const char *const lengths[] = {"", "-1", "x", "1 ", "99999999999999999999999999", "600"};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    r = send_bytes("POST", "/v2/models/rows/infer", lengths[i], body, (size_t)n);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "Inference-Header-Content-Length"));
    hone_server_response_free(&r);
  }
}

static void wrong_requests_are_told_what_is_wrong(void **state) {
  (void)state;
  const char *path = "/v2/models/rows/infer";
  refused(path, NULL, "no JSON");
  refused(path, "hello", "no JSON");
  refused(path, "[]", "no JSON object");
  refused(path, "{}", "no list 'inputs'");
  refused(path, "{\"inputs\":[7]}", "has no name");
  refused(path, "{\"inputs\":[]}", "input 'x' is missing");
  refused(path, "{\"inputs\":[{\"name\":\"z\"}]}", "its first input is 'x'");
  refused(path, "{\"inputs\":[{\"name\":\"x\"}]}", "expected FP32, got none");
  refused(path, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"INT8\"}]}", "expected FP32, got INT8");
  refused(path, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\"}]}", "has no shape");
  refused(path, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,3]}]}", "has no 'data'");
  refused(path, "{\"id\":1,\"inputs\":[]}", "'id' is no string");
  refused(path, "{\"outputs\":[{\"name\":\"q\"}],\"inputs\":[]}", "its first output is 'y'");
  refused(path, "{\"outputs\":[{\"name\":\"y\"},{\"name\":\"k\"},{\"name\":\"y\"}],\"inputs\":[]}",
          "'y' is named twice");
  refused(path, ROWS("[3]", "[1,2,3]"), "has 1 dimensions; expected 2");
  refused(path, ROWS("[1.5,3]", "[1,2,3]"), "no list of integers");
  refused(path, ROWS("[0,3]", "[]"), "expected 1 to 4, got 0");
  refused(path, ROWS("[5,3]", "[]"), "expected 1 to 4, got 5");
  refused(path, ROWS("[1,4]", "[1,2,3,4]"), "expected 3, got 4");
  refused(path, ROWS("[1,3]", "[1,2]"), "expected 3, got 2");
  refused(path, ROWS("[1,3]", "[1,2,3,4]"), "more numbers than the shape has");
  refused(path, ROWS("[1,3]", "[1,2,3,]"), "number is missing");
  refused(path, ROWS("[1,3]", "[1,,3]"), "number is missing, at element 1");
  refused(path, ROWS("[1,3]", "[1 2 3]"), "comma");
  refused(path, ROWS("[1,3]", "[1,0x2,3]"), "that is no number, at element 1, got 0x2");
  refused(path, ROWS("[1,3]", "[1,1-2,3]"), "that is no number");
  refused(path, ROWS("[1,3]", "[1,1e39,3]"), "its type cannot hold that");
  refused(path, ROWS("[1,3]", "[1,\"2\",3]"), "number is missing");
  refused(path, ROWS("[1,3]", "[[1,2]]"), "expected 3, as dimension 1");
  refused(path, ROWS("[1,3]", "[[[1,2,3]]]"), "number is missing");
  refused(path, ROWS("[2,3]", "[[1,2,3],4,5,6]"), "array is missing");
  refused(path, ROWS("[1,3]", "[1,2,3"), "no JSON");
  refused(path, ROWS("[1,3]", "{\"a\":1}"), "has no 'data'");
  refused("/v2/models/table/infer",
          "{\"inputs\":[{\"name\":\"i\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[1.5]}]}",
          "that is no integer");
  refused(
      "/v2/models/table/infer",
      "{\"inputs\":[{\"name\":\"i\",\"datatype\":\"INT64\",\"shape\":[1],\"data\":[9223372036854775808]}]}",
      "cannot hold");
}

/* A model is called as clients call it: where its file lies is nobody's business, however long its path is.
 */
static void files_are_not_named(void **state) {
  (void)state;
  char folder[96], path[600], name[16], to[64];
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-secret")));
  snprintf(path, sizeof path, "%s", folder);
  for (int i = 0; i < 3; i++) {
    const size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/%0*d", 120, i);
    assert_int_equal(mkdir(path, 0700), 0);
    net_save(path, "m.onnx", pick);
    const size_t end = strlen(path);
    snprintf(path + end, sizeof path - end, "/m.onnx");
    hone_model *m = NULL;
    assert_int_equal(hone_model_load(path, &m, NULL), HONE_OK);
    path[end] = 0;
    snprintf(name, sizeof name, "told%d", i);
    assert_int_equal(hone_server_add(the.server, m, &(hone_served_options){.name = name}, NULL), HONE_OK);
    hone_model_release(m);
    snprintf(to, sizeof to, "/v2/models/%s/infer", name);
    hone_server_response r =
        send("POST", to, "{\"inputs\":[{\"name\":\"i\",\"datatype\":\"INT64\",\"shape\":[],\"data\":[9]}]}");
    assert_int_equal(r.status, 400);
    if (strstr(r.body, "secret") || strncmp(r.body + 10, name, 5) != 0) fail_msg("%s", r.body);
    hone_server_response_free(&r);
  }
  assert_int_equal(temporary_remove(folder), 0);
}

/* Cut off anywhere, and with any byte another one: an answer, and never more than that. */
static void damaged_requests_are_answered(void **state) {
  (void)state;
  const char whole[] = "{\"id\":\"q\",\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\","
                       "\"data\":[1,[2],\"3\"]}],"
                       "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":false}}]}";
  char body[sizeof whole];
  for (size_t n = 0; n < sizeof whole - 1; n++) {
    char *exact = malloc(n + 1); /* so that a sanitizer sees what is read behind it */
    assert_non_null(exact);
    memcpy(exact, whole, n);
    hone_server_response r = send_bytes("POST", "/v2/models/rows/infer", NULL, exact, n);
    assert_int_equal(r.status, 400);
    hone_server_response_free(&r);
    free(exact);
    for (const char *c = "\"[]{},\\0\xff"; *c; c++) {
      memcpy(body, whole, sizeof whole);
      body[n] = *c;
      r = send_bytes("POST", "/v2/models/rows/infer", NULL, body, sizeof whole - 1);
      assert_true(r.status == 200 || r.status == 400);
      hone_server_response_free(&r);
    }
  }
  enum { DEEP = 100000 };
  char *deep = malloc(DEEP + 1);
  assert_non_null(deep);
  memset(deep, '[', DEEP);
  deep[DEEP] = 0;
  refused("/v2/models/rows/infer", deep, "depth");
  memcpy(deep, "{\"inputs\":[{\"data\":", 19);
  refused("/v2/models/rows/infer", deep, "no JSON");
  free(deep);
}

/* ------------------------------------------------------------------ batches */

typedef struct client {
  pthread_t thread;
  int number, wrong;
  hone_server_response response;
} client;

static void *ask(void *arg) {
  client *c = arg;
  char body[200];
  snprintf(body, sizeof body,
           "{\"inputs\":[{\"name\":\"i\",\"shape\":[1],\"datatype\":\"INT64\",\"data\":[%d]}]}",
           c->number == c->wrong ? 99 : c->number % 4);
  c->response = send("POST", "/v2/models/table/infer", body);
  return NULL;
}

static hone_served about(const char *name) {
  hone_served m;
  for (uint32_t i = 0; hone_server_model(the.server, i, &m); i++)
    if (strcmp(m.name, name) == 0) return m;
  fail();
  return m;
}

static void crowd(int wrong) {
  client c[CLIENTS];
  for (int i = 0; i < CLIENTS; i++) {
    c[i] = (client){.number = i, .wrong = wrong};
    assert_int_equal(pthread_create(&c[i].thread, NULL, ask, &c[i]), 0);
  }
  for (int i = 0; i < CLIENTS; i++) {
    char want[40];
    pthread_join(c[i].thread, NULL);
    snprintf(want, sizeof want, "\"data\":[%d]", 10 + i % 4);
    if (c[i].response.status != (i == wrong ? 400 : 200) || (i != wrong && !strstr(c[i].response.body, want)))
      fail_msg("%d: %d %s", i, c[i].response.status, c[i].response.body);
    hone_server_response_free(&c[i].response);
  }
}

static void requests_share_runs(void **state) {
  (void)state;
  const hone_served before = about("table");
  assert_int_equal(before.max_batch, 8);
  assert_string_equal(before.alone, "");
  hone_served after = before;
  for (int round = 0; round < 50 && after.runs - before.runs >= after.samples - before.samples; round++) {
    crowd(-1);
    after = about("table");
  }
  assert_true(after.runs - before.runs < after.samples - before.samples); /* a run had several */
  assert_int_equal(after.answered - before.answered, after.samples - before.samples);
  assert_true(after.p50_ms > 0 && after.p99_ms >= after.p50_ms);
}

/* What one asks wrongly is told to this one alone. */
static void a_wrong_request_spoils_no_other(void **state) {
  (void)state;
  const hone_served before = about("table");
  crowd(2);
  const hone_served after = about("table");
  assert_int_equal(after.answered - before.answered, CLIENTS - 1);
  assert_int_equal(after.failed - before.failed, 1);
}

typedef struct long_client {
  pthread_t thread;
  const char *path;
  int size, value;
  hone_server_response response;
} long_client;

static void *ask_long(void *arg) {
  enum { ROOM = 2048 };
  long_client *c = arg;
  char body[ROOM];
  int n =
      snprintf(body, ROOM, "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,%d],\"datatype\":\"FP32\",\"data\":[%d",
               c->size, c->value);
  for (int i = 1; i < c->size; i++) n += snprintf(body + n, (size_t)(ROOM - n), ",%d", c->value);
  snprintf(body + n, (size_t)(ROOM - n), "]}]}");
  c->response = send("POST", c->path, body);
  return NULL;
}

/* Two clients at once, with 1s and 2s: to each its own, of this shape, or an error. */
static void two_long(const char *path, int size, int status, const char *shape) {
  long_client c[2];
  for (int i = 0; i < 2; i++) {
    c[i] = (long_client){.path = path, .size = size, .value = 1 + i};
    assert_int_equal(pthread_create(&c[i].thread, NULL, ask_long, &c[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    pthread_join(c[i].thread, NULL);
    const char *body = c[i].response.body, *data = body ? strstr(body, "\"data\":[") : NULL;
    if (c[i].response.status != status || (status == 200 && (!data || !strstr(body, shape))))
      fail_msg("%d: %d %s", i, c[i].response.status, body ? body : "");
    for (; data && *data != ']'; data++)
      if (*data == (i ? '1' : '2')) fail_msg("%d has what is another's: %s", i, body);
    hone_server_response_free(&c[i].response);
  }
}

/* What was proved of the usual size is not believed of others. */
static void sizes_are_proved_as_they_come(void **state) {
  (void)state;
  const hone_size_profile first[] = {{.symbol = "N", 1, 2, 2}, {.symbol = "S", 32, 64, 64}},
                          second[] = {{.symbol = "N", 1, 2, 2}, {.symbol = "S", 32, 64, 96}};
  hone_served_options o = {.profiles = first, .n_profiles = 2, .batch_delay = 0.5};
  assert_int_equal(add("wide", wide, &o, NULL), HONE_OK);
  o.profiles = second;
  assert_int_equal(add("narrow", narrow, &o, NULL), HONE_OK);
  assert_int_equal(about("wide").max_batch, 2);
  two_long("/v2/models/wide/infer", 32, 400, "");
  two_long("/v2/models/wide/infer", 64, 200, "\"shape\":[1,64]");
  for (int round = 0; round < 20 && about("narrow").runs >= about("narrow").samples; round++)
    two_long("/v2/models/narrow/infer", 96, 200, "\"shape\":[3,32]");
  assert_true(about("narrow").runs < about("narrow").samples); /* a run had both */
}

/* A scale that is taken over all rows of a run makes one's answer depend on another's numbers. */
static void statistics_over_all_rows_are_not_shared(void **state) {
  (void)state;
  static const char dynamic[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3]) -> (%y) {\n"
                                "  %q, %s, %z = DynamicQuantizeLinear(%x)\n"
                                "  %y = DequantizeLinear(%q, %s, %z)\n}";
  hone_reason why = {""};
  assert_int_equal(add("dynamic", dynamic, NULL, NULL), HONE_OK);
  assert_int_equal(about("dynamic").max_batch, 1);
  assert_non_null(strstr(about("dynamic").alone, "DynamicQuantizeLinear"));
  assert_true(hn_proofs_precision("f32", &why) && hn_proofs_precision("bf16", &why));
  assert_false(hn_proofs_precision("fp8", &why));
  assert_non_null(strstr(why.text, "fp8"));
}

/* JSON beside the numbers is bounded wherever it stands. */
static void much_text_is_refused(void **state) {
  (void)state;
  enum { MUCH = (1 << 20) + 4 };
  char *body = malloc(MUCH + 200);
  assert_non_null(body);
  static const char *const places[][2] = {
      {"{\"id\":\"", "\"}"}, {"{", "}"}, {"{\"inputs\":[{\"data\":[1]}]", "}"}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    snprintf(body, MUCH + 200, "%s%*s%s", places[i][0], (int)MUCH, "", places[i][1]);
    refused("/v2/models/rows/infer", body, "larger than 1024 KiB");
  }
  free(body);
}

/* A reason is text, also where a name was cut within a character. */
static void reasons_are_whole(void **state) {
  (void)state;
  hone_reason why;
  for (int n = 1; n < 5; n++) {
    hn_refuse(&why, "node '%.*s' \xff", n, "a\xc3\xa9\xe2\x82\xac");
    json_t *text = json_string(why.text);
    assert_non_null(text);
    json_decref(text);
  }
  assert_string_equal(why.text, "node 'a\xc3\xa9' ");
}

static void *add_rows(void *arg) {
  hone_status *status = arg;
  *status = add("twice", rows, NULL, NULL);
  return NULL;
}

static void *stop_it(void *arg) {
  (void)arg;
  hone_server_stop(the.server);
  return NULL;
}

/* Of two threads that add a model of one name one does; two that stop it do no harm. */
static void threads_may_add_and_stop(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t thread[THREADS];
  hone_status status[THREADS];
  int good = 0;
  hone_server *first = the.server;
  assert_int_equal(hone_server_create(the.engine, NULL, &the.server, NULL), HONE_OK);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&thread[i], NULL, add_rows, &status[i]), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    good += status[i] == HONE_OK;
    assert_true(status[i] == HONE_OK || status[i] == HONE_ERROR_USAGE);
  }
  assert_int_equal(good, 1);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, stop_it, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  assert_int_equal(hone_server_listen(the.server, "127.0.0.1:0", NULL, NULL), HONE_ERROR_USAGE);
  hone_server_destroy(the.server);
  the.server = first;
}

static void rows_that_meet_run_apart(void **state) {
  (void)state;
  const hone_served m = about("sums");
  assert_int_equal(m.max_batch, 1);
  assert_true(strlen(m.alone) > 5);
  wants("POST", "/v2/models/sums/infer", ROWS("[2,3]", "[1,2,3,4,5,6]"), 200,
        "\"shape\":[1,3],\"data\":[5,7,9]");
}

/* ------------------------------------------------------------------ the rest */

/* Two engines, of one thread each, take from one row, and answer alike. */
static void engines_share_a_row(void **state) {
  (void)state;
  hone_engine *both[2] = {the.engine, NULL}, *none[1] = {NULL};
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.device = device, .threads = 1}, &both[1], NULL),
                   HONE_OK);
  hone_server *first = the.server;
  the.server = NULL;
  assert_int_equal(hone_server_create(the.engine, NULL, &the.server, NULL), HONE_OK);
  assert_int_equal(add("none", table, &(hone_served_options){.engines = none, .n_engines = 1}, &e),
                   HONE_ERROR_USAGE);
  assert_int_equal(add("none", table, &(hone_served_options){.n_engines = 1}, &e), HONE_ERROR_USAGE);
  assert_int_equal(
      add("table", table, &(hone_served_options){.engines = both, .n_engines = 2, .max_batch = 1}, NULL),
      HONE_OK);
  assert_int_equal(add("types", types, &(hone_served_options){.engines = both, .n_engines = 2}, NULL),
                   HONE_OK);
  for (int i = 0; i < 20; i++) crowd(i % 7);
  const hone_served m = about("table");
  assert_int_equal(m.runs, m.answered);
  assert_int_equal(m.answered + m.failed, 20 * CLIENTS);
  hone_server_destroy(the.server);
  the.server = first;
  hone_engine_destroy(both[1]);
}

static void what_cannot_be_served_is_said(void **state) {
  (void)state;
  hone_error e = {0};
  assert_int_equal(add("items", items, NULL, &e), HONE_ERROR_UNSUPPORTED);
  assert_non_null(strstr(e.what, "no type"));
  assert_int_equal(add("rows", rows, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(add("a/b", rows, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(add("", rows, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(
      add("p", rows,
          &(hone_served_options){.profiles = &(hone_size_profile){.symbol = "Q", 1, 1, 2}, .n_profiles = 1},
          &e),
      HONE_ERROR_USAGE);
}

static void what_was_done_is_counted(void **state) {
  (void)state;
  wants("GET", "/metrics", NULL, 200, "# TYPE hone_request_seconds histogram\n");
  wants("GET", "/metrics", NULL, 200,
        "hone_request_seconds_bucket{model=\"rows\",version=\"1\",le=\"+Inf\"} ");
  wants("GET", "/metrics", NULL, 200, "hone_requests_total{model=\"sums\",version=\"1\",code=\"2xx\"} 1\n");
  wants("GET", "/metrics", NULL, 200, "hone_requests_total{model=\"rows\",version=\"1\",code=\"4xx\"} ");
}

static void a_stopped_server_answers_no_more(void **state) {
  (void)state;
  hone_server_stop(the.server);
  wants("GET", "/v2/health/ready", NULL, 503, "false");
  wants("GET", "/v2/health/live", NULL, 200, "true");
  wants("POST", "/v2/models/rows/infer", ROWS("[1,3]", "[1,2,3]"), 503, "stopped");
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_there_is_is_told),
      cmocka_unit_test(numbers_come_back),
      cmocka_unit_test(texts_come_back),
      cmocka_unit_test(bytes_come_back),
      cmocka_unit_test(wrong_requests_are_told_what_is_wrong),
      cmocka_unit_test(files_are_not_named),
      cmocka_unit_test(damaged_requests_are_answered),
      cmocka_unit_test(requests_share_runs),
      cmocka_unit_test(a_wrong_request_spoils_no_other),
      cmocka_unit_test(sizes_are_proved_as_they_come),
      cmocka_unit_test(statistics_over_all_rows_are_not_shared),
      cmocka_unit_test(much_text_is_refused),
      cmocka_unit_test(reasons_are_whole),
      cmocka_unit_test(threads_may_add_and_stop),
      cmocka_unit_test(rows_that_meet_run_apart),
      cmocka_unit_test(engines_share_a_row),
      cmocka_unit_test(what_cannot_be_served_is_said),
      cmocka_unit_test(what_was_done_is_counted),
      cmocka_unit_test(a_stopped_server_answers_no_more),
  };
  return cmocka_run_group_tests_name("serve", tests, start, end);
}
