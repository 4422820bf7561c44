/* See generate_net.h. */
#include "generate_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/ops/common/op.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const decoder_size small = {
    .vocabulary = VOCABULARY, .heads = 4, .kv_heads = 2, .size = 8, .layers = 2, .positions = 128, .seed = 7};

hone_engine *engine;
static hone_engine *host; /* the processor's, where `engine` is a device */
const char *device;
static hone_engine *plain_on; /* where plain runs are */

int start(void **state) {
  (void)state;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.device = device, .threads = 2}, &engine, NULL),
                   HONE_OK);
  if (device)
    assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &host, NULL), HONE_OK);
  plain_on = engine;
  return 0;
}

static void forget_joined(void);

int end(void **state) {
  (void)state;
  forget_joined();
  hone_engine_destroy(engine);
  hone_engine_destroy(host);
  return 0;
}

hone_server *serve(const decoder_size *z, const hone_server_options *s, hone_served_options o) {
  hone_server *server = NULL;
  hone_error e = {0};
  hone_model *m = decoder_build(z);
  assert_int_equal(hone_server_create(engine, s, &server, NULL), HONE_OK);
  o.name = "net";
  if (!o.context) o.context = CONTEXT;
  if (!o.sequences) o.sequences = SEQUENCES;
  if (hone_server_add(server, m, &o, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  hone_model_release(m);
  return server;
}

/* ------------------------------------------------------------------ plain runs */

prompt_sizes prompts = {1, 40, CONTEXT};

uint32_t prompt_of(uint32_t k, int64_t *out) {
  const uint32_t n = prompts.least + k * 13 % prompts.more;
  for (uint32_t i = 0; i < n; i++) out[i] = (int64_t)((i * 17 + k * 29 + i * i * 3) % VOCABULARY);
  return n;
}

void plain_open(hone_model *m, int64_t tokens, int64_t past, int64_t keys, plain *p) {
  hone_binding b[32];
  hone_port port;
  uint32_t n = 0;
  hone_error e = {0};
  for (; hone_model_input(m, n, &port); n++) {
    b[n] = (hone_binding){.input = port.name, .rank = port.desc.rank};
    for (int32_t k = 0; k < port.desc.rank; k++)
      b[n].dim[k] = port.desc.dim[k] >= 0                   ? port.desc.dim[k]
                    : strcmp(port.symbol[k], "batch") == 0  ? 1
                    : strcmp(port.symbol[k], "tokens") == 0 ? tokens
                    : strcmp(port.symbol[k], "past") == 0   ? past
                                                            : keys;
  }
  const hone_plan_options o = {.level = device && plain_on == engine ? 2 : 1, .bindings = b, .n_bindings = n};
  if (hone_plan_create(plain_on, m, &o, &p->plan, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  assert_int_equal(hone_context_create(p->plan, &p->context, NULL), HONE_OK);
  for (uint32_t i = 0; i < hone_plan_inputs(p->plan); i++) {
    p->in[i] = (hone_tensor){.desc = *hone_plan_input_desc(p->plan, i)};
    p->in[i].data = calloc(1, (size_t)hone_desc_bytes(&p->in[i].desc));
    p->given[i] = &p->in[i];
  }
}

void plain_close(plain *p) {
  for (uint32_t i = 0; i < hone_plan_inputs(p->plan); i++) free(p->in[i].data);
  hone_context_destroy(p->context);
  hone_plan_destroy(p->plan);
}

static hone_tensor *input(plain *p, const char *name) {
  for (uint32_t i = 0; i < hone_plan_inputs(p->plan); i++)
    if (strcmp(hone_plan_input_name(p->plan, i), name) == 0) return &p->in[i];
  return NULL;
}

static void set_all(hone_tensor *t, int64_t count, const int64_t *of, int64_t from) {
  for (int64_t i = 0; t && i < count; i++) hn_set_i64(t, i, of ? of[i] : from + i);
}

/* Rows [from, from + n) of a cache, to row `at` of another. */
static void hand_on(const hone_tensor *x, int64_t from, int64_t n, const hone_tensor *y, int64_t at) {
  const size_t row = (size_t)x->desc.dim[3] * hone_dtype_size(x->desc.dtype);
  for (int64_t h = 0; h < x->desc.dim[1]; h++)
    memcpy((char *)y->data + (size_t)(h * y->desc.dim[2] + at) * row,
           (const char *)x->data + (size_t)(h * x->desc.dim[2] + from) * row, (size_t)n * row);
}

/* Reads n tokens behind `past`, hands the caches on to `next`, and gives the most probable token. */
static int64_t plain_run(plain *p, const int64_t *ids, uint32_t n, uint32_t past, plain *next) {
  hone_error e = {0};
  const hone_tensor *mask = input(p, "attention_mask");
  const int64_t length = past + n, one = length - 1, before = past, room = prompts.room;
  set_all(input(p, "input_ids"), n, ids, 0);
  for (int64_t i = 0; mask && i < mask->desc.dim[1]; i++) hn_set_i64(mask, i, i < length);
  set_all(input(p, "position_ids"), n, NULL, past);
  set_all(input(p, "seqlens_k"), 1, &one, 0);
  set_all(input(p, "total_sequence_length"), 1, &room, 0);
  set_all(input(p, "write_indices"), 1, &before, 0);
  set_all(input(p, "nonpad_kv_seqlen"), 1, &length, 0);
  if (hone_context_run(p->context, p->given, NULL, &e) != HONE_OK) fail_msg("%s: %s", e.where, e.what);
  uint32_t output = 1;
  for (uint32_t i = 0; i < hone_plan_inputs(p->plan); i++)
    if (p->in[i].desc.rank == 4)
      hand_on(hone_context_output(p->context, output++), 0, length, &next->in[i], 0);
  const hone_tensor *l = hone_context_output(p->context, 0);
  int64_t best = 0;
  const int64_t row = l->desc.dim[2];
  for (int64_t i = 1; i < row; i++)
    if (hn_get_f64(l, (n - 1) * row + i) > hn_get_f64(l, (n - 1) * row + best)) best = i;
  return best;
}

/* Joined caches have what there is and no more: each length has a plan of its own, which all sequences of a
 * network share. */
static struct {
  decoder_size of;
  hone_model *model;
  plain *step[LONGEST + MOST]; /* by the rows of its caches */
} joined;

static void forget_joined(void) {
  for (size_t i = 0; i < sizeof joined.step / sizeof *joined.step; i++) {
    if (!joined.step[i]) continue;
    plain_close(joined.step[i]);
    free(joined.step[i]);
    joined.step[i] = NULL;
  }
  hone_model_release(joined.model);
  joined.model = NULL;
}

static plain *joined_step(uint32_t past) {
  assert_true(past < sizeof joined.step / sizeof *joined.step);
  if (!joined.step[past]) {
    joined.step[past] = calloc(1, sizeof *joined.step[past]);
    plain_open(joined.model, 1, past, past + 1, joined.step[past]);
  }
  return joined.step[past];
}

static void alone_joined(const decoder_size *z, const int64_t *ids, uint32_t n, uint32_t most, int64_t *out) {
  plain first;
  if (joined.model && memcmp(&joined.of, z, sizeof *z) != 0) forget_joined();
  if (!joined.model) joined.model = decoder_build(z), joined.of = *z;
  plain_open(joined.model, n, 0, n, &first);
  for (uint32_t i = 0; i < most; i++) {
    plain *next = joined_step(n + i);
    out[i] = i ? plain_run(joined_step(n + i - 1), &out[i - 1], 1, n + i - 1, next)
               : plain_run(&first, ids, n, 0, next);
  }
  plain_close(&first);
}

static void alone_in_rooms(const decoder_size *z, const int64_t *ids, uint32_t n, uint32_t most,
                           int64_t *out) {
  plain first, step;
  hone_model *m = decoder_build(z);
  plain_open(m, n, prompts.room, prompts.room, &first);
  plain_open(m, 1, prompts.room, prompts.room, &step);
  out[0] = plain_run(&first, ids, n, 0, &step);
  for (uint32_t i = 1; i < most; i++) out[i] = plain_run(&step, &out[i - 1], 1, n + i - 1, &step);
  plain_close(&first);
  plain_close(&step);
  hone_model_release(m);
}

/* Many tests ask for the same again. */
void alone(const decoder_size *z, uint32_t k, uint32_t most, int64_t *out) {
  static decoder_size known;
  static prompt_sizes of;
  static struct {
    uint32_t n;
    int64_t id[MOST];
  } kept[ASKED];
  if (memcmp(&known, z, sizeof known) != 0 || memcmp(&of, &prompts, sizeof of) != 0)
    memset(kept, 0, sizeof kept), known = *z, of = prompts;
  assert_true(k < ASKED && most <= MOST);
  if (kept[k].n < most) {
    int64_t ids[LONGEST];
    const uint32_t n = prompt_of(k, ids);
    const bool is_joined = z->form == DECODER_CONCAT || z->form == DECODER_ATTENTION;
    if (device && z->form)
      plain_on = host; /* each step has a plan of its own, or a node that is the host's */
    (is_joined ? alone_joined : alone_in_rooms)(z, ids, n, most, kept[k].id);
    plain_on = engine;
    kept[k].n = most;
  }
  memcpy(out, kept[k].id, most * sizeof *out);
}

/* ------------------------------------------------------------------ requests */

void body_of(const asked *a, char *out, size_t size) {
  int64_t ids[LONGEST];
  const uint32_t n = prompt_of(a->k, ids);
  size_t at = (size_t)snprintf(out, size, "{\"input_ids\":[");
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(out + at, size - at, "%s%d", i ? "," : "", (int)ids[i]);
  snprintf(out + at, size - at, "],\"parameters\":{\"max_tokens\":%u%s%s}}", a->most, a->more ? "," : "",
           a->more ? a->more : "");
}

void *ask(void *arg) {
  asked *a = arg;
  char body[4096];
  struct timespec moment = {.tv_nsec = (long)a->after_us * 1000};
  nanosleep(&moment, NULL);
  body_of(a, body, sizeof body);
  const hone_server_request r = {
      .method = "POST", .path = "/v2/models/net/generate", .body = body, .size = strlen(body)};
  hone_server_response out;
  hone_server_answer(a->server, &r, &out);
  a->status = out.status;
  snprintf(a->text, sizeof a->text, "%s", out.body ? out.body : "");
  hone_server_response_free(&out);
  return NULL;
}

void ask_all(asked *a, uint32_t n) {
  pthread_t thread[16];
  for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_create(&thread[i], NULL, ask, &a[i]), 0);
  for (uint32_t i = 0; i < n; i++) pthread_join(thread[i], NULL);
}

uint32_t ids_of(const char *text, int64_t *out) {
  const char *at = strstr(text, "\"output_ids\":[");
  uint32_t n = 0;
  if (!at) return 0;
  for (at += 14; *at != ']'; at += *at == ',') {
    char *stop;
    out[n++] = strtoll(at, &stop, 10);
    at = stop;
  }
  return n;
}

double metric(hone_server *s, const char *name) {
  const hone_server_request r = {.method = "GET", .path = "/metrics", .body = NULL, .size = 0};
  hone_server_response out;
  hone_server_answer(s, &r, &out);
  const char *at = strstr(out.body, name);
  while (at && at > out.body && at[-1] != '\n') at = strstr(at + 1, name);
  assert_non_null(at);
  const double value = strtod(strchr(at, '}') + 1, NULL);
  hone_server_response_free(&out);
  return value;
}

hone_server_response open_stream(hone_server *s, uint32_t k, uint32_t most) {
  char body[4096];
  const asked a = {.k = k, .most = most};
  body_of(&a, body, sizeof body);
  const hone_server_request r = {.method = "POST",
                                 .path = "/v2/models/net/generate_stream",
                                 .body = body,
                                 .size = strlen(body),
                                 .streams = true};
  hone_server_response out;
  hone_server_answer(s, &r, &out);
  return out;
}

uint32_t read_all(hone_server_response *r, int64_t *out) {
  static char text[1 << 20];
  size_t size = 0;
  uint32_t n = 0;
  for (size_t got; (got = hone_server_stream_read(r->stream, text + size, sizeof text - 1 - size)) > 0;)
    size += got;
  text[size] = 0;
  for (const char *at = text; (at = strstr(at, "data: ")); at++) n += ids_of(at, out + n);
  if (!strstr(text, "\"finish_reason\":\"length\"")) fail_msg("%s", text);
  hone_server_response_free(r);
  return n;
}

void wants(hone_server *s, const char *path, const char *body, int status, const char *text) {
  const hone_server_request r = {.method = "POST", .path = path, .body = body, .size = strlen(body)};
  hone_server_response out;
  hone_server_answer(s, &r, &out);
  if (out.status != status || !strstr(out.body ? out.body : "", text))
    fail_msg("%s %s: %d %s", path, body, out.status, out.body ? out.body : "");
  hone_server_response_free(&out);
}
