/* The server's sockets: requests as bytes on a connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/serve/serve.h"
#include "decoder.h"

#include <arpa/inet.h>
#include <hone/hone.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char rows[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3]) -> (%y) { %y = Neg(%x) }";
#define BODY "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"data\":[1,2,3]}]}"

static struct {
  hone_engine *engine;
  hone_server *server;
  uint16_t port;
} the;

static int start(void **state) {
  (void)state;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &the.engine, NULL), HONE_OK);
  const hone_server_options o = {.max_body = 4096, .max_bodies = 16384};
  assert_int_equal(hone_server_create(the.engine, &o, &the.server, NULL), HONE_OK);
  hone_model *m = net_parse("rows", rows);
  assert_int_equal(hone_server_add(the.server, m, &(hone_served_options){.name = "rows"}, NULL), HONE_OK);
  hone_model_release(m);
  const hone_status status = hone_server_listen(the.server, "127.0.0.1:0", &the.port, &e);
  if (status == HONE_ERROR_MISSING) {
    print_message("SKIP: %s\n", e.what);
    hone_server_destroy(the.server);
    hone_engine_destroy(the.engine);
    exit(0);
  }
  if (status != HONE_OK) fail_msg("%s", e.what);
  return 0;
}

static int end(void **state) {
  (void)state;
  hone_server_destroy(the.server);
  hone_engine_destroy(the.engine);
  return 0;
}

static int dial(void) {
  const struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons(the.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
  return fd;
}

/* Reads until the server has closed, or, unless it is to be all, there is a response of as many bytes of body
 * as it says. */
static char *receive(int fd, bool all) {
  enum { ROOM = 65536 };
  static char text[ROOM];
  size_t n = 0;
  for (;;) {
    const ssize_t got = recv(fd, text + n, ROOM - 1 - n, 0);
    if (got <= 0) break;
    n += (size_t)got;
    text[n] = 0;
    const char *body = strstr(text, "\r\n\r\n"), *length = strstr(text, "Content-Length: ");
    if (!all && body && length && n - (size_t)(body + 4 - text) >= strtoul(length + 16, NULL, 10)) break;
  }
  text[n] = 0;
  return text;
}

static void send_all(int fd, const char *bytes, size_t size) {
  while (size) {
    const ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) break; /* it has heard enough */
    bytes += sent, size -= (size_t)sent;
  }
}

static char *exchange(int fd, const char *bytes, size_t size) {
  send_all(fd, bytes, size);
  return receive(fd, false);
}

static void wants(const char *bytes, const char *status, const char *text) {
  const int fd = dial();
  const char *got = exchange(fd, bytes, strlen(bytes));
  if (strncmp(got, status, strlen(status)) != 0 || !strstr(got, text)) fail_msg("%.200s: %s", bytes, got);
  close(fd);
}

static void requests_are_answered(void **state) {
  (void)state;
  char text[1024];
  wants("GET /v2/health/ready HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200", "{\"ready\":true}");
  wants("GET /v2/models/%72ows HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200", "application/json");
  wants("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200", "text/plain; version=0.0.4");
  wants("PUT /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405", "Allow: GET, HEAD");
  snprintf(text, sizeof text,
           "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", strlen(BODY),
           BODY);
  wants(text, "HTTP/1.1 200", "\"data\":[-1,-2,-3]");
  snprintf(text, sizeof text,
           "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
           "chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
           strlen(BODY), BODY);
  wants(text, "HTTP/1.1 200", "\"data\":[-1,-2,-3]");
}

static void a_connection_serves_again(void **state) {
  (void)state;
  char text[1024];
  const int fd = dial();
  snprintf(text, sizeof text,
           "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s", strlen(BODY),
           BODY);
  for (int i = 0; i < 3; i++) assert_non_null(strstr(exchange(fd, text, strlen(text)), "[-1,-2,-3]"));
  close(fd);
}

static void tensors_cross_as_bytes(void **state) {
  (void)state;
  const float x[3] = {1, 2, 3}, want[3] = {-1, -2, -3};
  static const char json[] =
      "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,3],\"datatype\":\"FP32\",\"parameters\":"
      "{\"binary_data_size\":12}}],\"parameters\":{\"binary_data_output\":true}}";
  char text[1024];
  const int n = snprintf(text, sizeof text,
                         "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n"
                         "Inference-Header-Content-Length: %zu\r\n\r\n%s",
                         sizeof json - 1 + sizeof x, sizeof json - 1, json);
  memcpy(text + n, x, sizeof x);
  const int fd = dial();
  char *got = exchange(fd, text, (size_t)n + sizeof x);
  const char *length = strstr(got, "Inference-Header-Content-Length: "), *body = strstr(got, "\r\n\r\n");
  assert_non_null(length);
  assert_memory_equal(body + 4 + strtoul(length + 33, NULL, 10), want, sizeof want);
  close(fd);
}

static void what_is_too_much_is_refused(void **state) {
  (void)state;
  wants("POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n", "HTTP/1.1 413",
        "larger");
  wants("POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "HTTP/1.1 4", "");
  wants("POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: "
        "9\r\n\r\n123456789",
        "HTTP/1.1 415", "Content-Encoding");
  /* Two lengths: a proxy may have believed the other one. */
  wants("POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 400", "");
}

/* What a proxy may have read otherwise would be two requests for one of them, and one for the other. */
static void lengths_are_beyond_doubt(void **state) {
  (void)state;
  static const struct {
    const char *head, *status;
  } cases[] = {{"1\r\nContent-Length: 0\r\nContent-Length: 33", "HTTP/1.1 400"},
               {"1\r\nContent-Length: 0\r\ncontent-length: 0", "HTTP/1.1 400"},
               {"1\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked", "HTTP/1.1 400"},
               {"1\r\nContent-Length: 0\r\nTransfer-Encoding : chunked", "HTTP/1.1 400"},
               {"1\r\nContent-Length:\r\n 33", "HTTP/1.1 400"},
               {"1\r\nContent-Leng: 33\r\n th", "HTTP/1.1 400"},
               {"1\r\nTransfer-Encodin: chunked\r\n\tg", "HTTP/1.1 400"},
               {"0\r\nTransfer-Encoding: chunked", "HTTP/1.1 400"},
               {"0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked", "HTTP/1.1 400"},
               {"1\r\nTransfer-Encoding: gzip, chunked", "HTTP/1.1 501"},
               {"1\r\nTransfer-Encoding: identity", "HTTP/1.1 501"}};
  char text[512];
  for (size_t k = 0; k < 2 * (sizeof cases / sizeof *cases); k++) { /* no body, and chunks of none */
    const size_t i = k / 2;
    const int n = snprintf(text, sizeof text,
                           "POST /v2/repository/index HTTP/1.%s\r\nHost: a\r\n\r\n"
                           "%sGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n",
                           cases[i].head, k % 2 ? "0\r\n\r\n" : "");
    const int fd = dial();
    send_all(fd, text, (size_t)n);
    const char *got = receive(fd, true), *again = strstr(got + 1, "HTTP/1.1 ");
    const bool hone = strncmp(got, cases[i].status, 12) == 0 && strstr(got, "Transfer-Encoding") != NULL;
    /* libmicrohttpd 1.0 sees some of them by itself. */
    const bool library = strncmp(got, "HTTP/1.1 400", 12) == 0 && strstr(got, "<html>") != NULL;
    /* Nothing behind it is a request. */
    if ((!hone && !library) || again || !strstr(got, "Connection: close")) fail_msg("%s: %s", text, got);
    close(fd);
  }
}

/* Whoever reads nothing before he has sent all of it hears why, too: no reset takes the answer from him. */
static void what_is_too_much_is_told(void **state) {
  (void)state;
  enum { MUCH = 16 << 20 };
  const uint16_t port = the.port;
  hone_server *s = NULL;
  /* From the answer on he may send as much as a request may be, for a while. */
  assert_int_equal(
      hone_server_create(the.engine, &(hone_server_options){.max_body = MUCH - (4 << 20)}, &s, NULL),
      HONE_OK);
  s->linger_ms = 200000;
  assert_int_equal(hone_server_listen(s, "127.0.0.1:0", &the.port, NULL), HONE_OK);
  static const char *const heads[] = {"Transfer-Encoding: chunked\r\n\r\n2000000\r\n",
                                      "Content-Length: 33554432\r\n\r\n"};
  char *much = calloc(1, MUCH);
  assert_non_null(much);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
    const int n = snprintf(much, 256, "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\n%s", heads[i]);
    memset(much + n, '7', 256);
    const int fd = dial();
    const char *got = exchange(fd, much, i == 0 ? MUCH : MUCH / 2); /* that one is refused at its head */
    if (strncmp(got, "HTTP/1.1 413", 12) != 0 || !strstr(got, "larger than this server takes"))
      fail_msg("%s: '%s'", heads[i], got);
    close(fd);
  }
  free(much);
  hone_server_destroy(s);
  the.port = port;
}

/* Neither does an answer without a body get one. */
static void what_is_too_much_is_told_in_heads(void **state) {
  (void)state;
  enum { BODY_BYTES = 4097 };
  char text[256 + BODY_BYTES];
  const int n = snprintf(text, sizeof text,
                         "HEAD /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n");
  memset(text + n, '7', BODY_BYTES);
  const int fd = dial();
  send_all(fd, text, (size_t)n + BODY_BYTES);
  const char *got = receive(fd, true), *body = strstr(got, "\r\n\r\n");
  if (strncmp(got, "HTTP/1.1 413", 12) != 0 || !body || body[4]) fail_msg("%s", got);
  close(fd);
}

/* Sends on, a byte at a time, until it may not any more. */
typedef struct dripping {
  int fd;
  atomic_uint sent;
  atomic_bool cut;
} dripping;

static void *drip(void *arg) {
  dripping *d = arg;
  while (send(d->fd, "7", 1, MSG_NOSIGNAL) == 1) {
    atomic_fetch_add(&d->sent, 1);
    usleep(5000);
  }
  atomic_store(&d->cut, true);
  return NULL;
}

/* Is turned away, and hears the end of what the server says: now it lingers, or has closed. */
static int turned_away(void) {
  static const char head[] = "POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999\r\n\r\n";
  const int fd = dial();
  send_all(fd, head, sizeof head - 1);
  assert_int_equal(strncmp(receive(fd, true), "HTTP/1.1 413", 12), 0);
  return fd;
}

/* Whoever was turned away and still sends holds no server that is stopped, and not all of its connections. */
static void who_is_turned_away_holds_nobody(void **state) {
  (void)state;
  enum { SECONDS = 200, CONNECTIONS = 8, HELD = CONNECTIONS / 4 };
  const uint16_t port = the.port;
  hone_server *s = NULL;
  assert_int_equal(
      hone_server_create(the.engine, &(hone_server_options){.connections = CONNECTIONS}, &s, NULL), HONE_OK);
  s->linger_ms = SECONDS * 1000;
  assert_int_equal(hone_server_listen(s, "127.0.0.1:0", &the.port, NULL), HONE_OK);
  dripping d[HELD + 1] = {0};
  pthread_t thread[HELD + 1];
  for (int i = 0; i < HELD + 1; i++) {
    d[i].fd = turned_away();
    assert_int_equal(pthread_create(&thread[i], NULL, drip, &d[i]), 0);
    while (i < HELD && atomic_load(&d[i].sent) < 10) /* one that is closed is so at the second byte */
      if (atomic_load(&d[i].cut))
        fail_msg("nothing is heard of whoever was turned away");
      else
        usleep(1000);
  }
  const time_t begun = time(NULL);
  pthread_join(thread[HELD], NULL); /* the others hold their quarter: this one was closed at once */
  for (int i = 0; i < HELD; i++) assert_false(atomic_load(&d[i].cut));
  hone_server_destroy(s);
  for (int i = 0; i < HELD; i++) pthread_join(thread[i], NULL);
  assert_true(time(NULL) - begun < SECONDS / 2);
  for (int i = 0; i < HELD + 1; i++) close(d[i].fd);
  the.port = port;
}

/* A path is what it is whole: no byte in it, escaped or as it is, makes it another one. */
static void no_byte_ends_a_path(void **state) {
  (void)state;
  static const char *const wrong[] = {"/v2/models/rows%00",
                                      "/v2/models/rows%00x",
                                      "/v2/models/rows%00/ready",
                                      "/v2/models/%00rows",
                                      "/v2/health/live%00",
                                      "/v2%00/models/rows",
                                      "/metrics%00",
                                      "/%00",
                                      "/v2/models/rows%0a",
                                      "/v2/models/rows%0D%0A",
                                      "/v2/models/rows%7f",
                                      "/v2/models/rows%ff",
                                      "/v2/models/rows%c2%80",
                                      "/v2/models/rows%01",
                                      "/v2/models%2Frows",
                                      "/v2/models/rows%2fready",
                                      "%2Fv2/models/rows",
                                      "%2fmetrics"};
  static const char *const none[] = {"/v2/models/rows%",     "/v2/models/rows%0",  "/v2/models/rows%zz",
                                     "/v2/models/rows%2500", "/v2/models/rows%20", "/v2/models/row%c3%a4"};
  char text[256];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", wrong[i]);
    wants(text, "HTTP/1.1 400", "control character");
  }
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", none[i]);
    wants(text, "HTTP/1.1 404", "there is no model");
  }
  /* A NUL as it is. libmicrohttpd 0.9 reads up to there, 1.0 says nothing and closes. */
  static const char *const cut[] = {"/v2@", "/v2/health/live@x", "/v2@?a=b", "/v2?a=@b",
                                    "@/v2", "/v2@HTTP/1.1"};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
    const int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cut[i]), fd = dial();
    *strchr(text, '@') = 0;
    const char *got = exchange(fd, text, (size_t)n);
    if (*got && (strncmp(got, "HTTP/1.1 400", 12) != 0 || !strstr(got, "control character")))
      fail_msg("%s: %s", cut[i], got);
    close(fd);
  }
}

static void whoever_hangs_up_is_forgotten(void **state) {
  (void)state;
  static const char head[] =
      "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{\"inputs\"";
  for (int i = 0; i < 40; i++) {
    const int fd = dial();
    assert_int_equal(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (int)sizeof head - 1);
    close(fd);
  }
  requests_are_answered(NULL);
  /* Their bodies are given back, at the latest when their threads have run. */
  for (int i = 0; i < 2000; i++) {
    const int fd = dial();
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
    const bool gone = strstr(exchange(fd, ask, sizeof ask - 1), "hone_body_bytes 0\n") != NULL;
    close(fd);
    if (gone) return;
    usleep(5000);
  }
  fail_msg("bodies of requests that were never finished stay");
}

/* What a request of 4 numbers makes: more than sockets hold. */
enum { LARGE = 16 << 20 };
static const char large[] = "ir 8\nopset 17\ngraph g(%x: f32[1]) -> (%y) {\n"
                            "  const %s: i64[2] = {4194304, 1}\n"
                            "  %y = Expand(%x, %s)\n}";

static hone_server *serve_large(const hone_server_options *o, uint16_t *port) {
  hone_server *s = NULL;
  assert_int_equal(hone_server_create(the.engine, o, &s, NULL), HONE_OK);
  hone_model *m = net_parse("large", large);
  assert_int_equal(hone_server_add(s, m, &(hone_served_options){.name = "large"}, NULL), HONE_OK);
  hone_model_release(m);
  assert_int_equal(hone_server_listen(s, "127.0.0.1:0", port, NULL), HONE_OK);
  return s;
}

static int ask_large(void) {
  static const char body[] =
      "{\"inputs\":[{\"name\":\"x\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[1]}],"
      "\"parameters\":{\"binary_data_output\":true}}";
  char text[512];
  const int fd = dial(), n = snprintf(text, sizeof text,
                                      "POST /v2/models/large/infer HTTP/1.1\r\nHost: a\r\nContent-Length: "
                                      "%zu\r\n\r\n%s",
                                      sizeof body - 1, body);
  const int little = 4096; /* this side holds next to nothing */
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
  assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
  return fd;
}

/* Who does not read its response holds its bytes, which others find taken, and no server that is stopped. */
static void slow_readers_hold_nobody(void **state) {
  (void)state;
  const uint16_t port = the.port;
  char head[16] = "";
  const hone_server_options o = {.max_body = 4096, .max_bodies = LARGE + 65536, .stop_seconds = 0.05};
  hone_server *s = serve_large(&o, &the.port);
  const int slow = ask_large();
  assert_int_equal(recv(slow, head, 12, MSG_WAITALL), 12);
  assert_string_equal(head, "HTTP/1.1 200");
  const int late = ask_large();
  assert_int_equal(recv(late, head, 12, MSG_WAITALL), 12);
  assert_string_equal(head, "HTTP/1.1 503");
  hone_server_stop(s);
  hone_server_destroy(s);
  close(late);
  close(slow);
  the.port = port;
}

/* ------------------------------------------------------------------ generation */

enum { LONG = 1 << 16 }; /* tokens: nobody sees their end */

static hone_server *serve_decoder(uint16_t *port) {
  const decoder_size z = {
      .vocabulary = 31, .heads = 2, .kv_heads = 1, .size = 4, .layers = 1, .positions = LONG, .seed = 3};
  hone_server *s = NULL;
  hone_model *m = decoder_build(&z);
  assert_int_equal(hone_server_create(the.engine, NULL, &s, NULL), HONE_OK);
  const hone_served_options o = {.name = "net", .context = LONG, .sequences = 2};
  assert_int_equal(hone_server_add(s, m, &o, NULL), HONE_OK);
  hone_model_release(m);
  assert_int_equal(hone_server_listen(s, "127.0.0.1:0", port, NULL), HONE_OK);
  return s;
}

static int ask_decoder(const char *path, int tokens) {
  char body[128], text[512];
  const int size =
      snprintf(body, sizeof body, "{\"input_ids\":[1,2,3],\"parameters\":{\"max_tokens\":%d}}", tokens);
  const int n = snprintf(text, sizeof text,
                         "POST /v2/models/net/%s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path,
                         size, body);
  const int fd = dial();
  assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
  return fd;
}

/* All that comes until the text is there, of which `out` keeps the last `size` bytes, or half of them. */
static char *read_until(int fd, const char *text, char *out, size_t size) {
  size_t n = 0, looked = 0;
  for (ssize_t got; (got = recv(fd, out + n, size - 1 - n, 0)) > 0;) {
    n += (size_t)got;
    out[n] = 0;
    if (strstr(out + looked, text)) return out;
    looked = n > strlen(text) ? n - strlen(text) : 0;
    if (n < size / 2) continue;
    memmove(out, out + looked, n - looked + 1);
    n -= looked, looked = 0;
  }
  fail_msg("'%s' does not come: %.300s", text, out);
  return NULL;
}

static void wait_for_metric(const char *line) {
  static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int i = 0; i < 4000; i++) {
    const int fd = dial();
    const bool there = strstr(exchange(fd, ask, sizeof ask - 1), line) != NULL;
    close(fd);
    if (there) return;
    usleep(5000);
  }
  fail_msg("never: %s", line);
}

static void tokens_come_as_they_are_made(void **state) {
  (void)state;
  const uint16_t port = the.port;
  char text[65536] = "", whole[65536] = "";
  hone_server *s = serve_decoder(&the.port);
  int fd = ask_decoder("generate", 5);
  read_until(fd, "\"finish_reason\":\"length\"}", whole, sizeof whole);
  assert_non_null(strstr(whole, "Content-Type: application/json"));
  close(fd);
  fd = ask_decoder("generate_stream", 5);
  read_until(fd, "\"finish_reason\":\"length\"}\n\n", text, sizeof text);
  assert_int_equal(strncmp(text, "HTTP/1.1 200", 12), 0);
  assert_non_null(strstr(text, "Content-Type: text/event-stream"));
  assert_non_null(strstr(text, "Cache-Control: no-cache"));
  assert_non_null(strstr(text, "X-Accel-Buffering: no"));
  int events = 0;
  for (const char *at = text; (at = strstr(at, "data: {")); at++) events++;
  assert_int_equal(events, 5);
  close(fd);
  wants("POST /v2/models/net/generate_stream HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 400", "input_ids");
  /* Whoever hangs up, while he reads or while he waits, leaves his place. */
  fd = ask_decoder("generate_stream", LONG - 3);
  read_until(fd, "data: {", text, sizeof text);
  close(fd);
  wait_for_metric("hone_sequences_total{model=\"net\",version=\"1\",reason=\"gone\"} 1\n");
  fd = ask_decoder("generate", LONG - 3);
  wait_for_metric("hone_sequences_live{model=\"net\",version=\"1\"} 1\n");
  close(fd);
  wait_for_metric("hone_sequences_total{model=\"net\",version=\"1\",reason=\"gone\"} 2\n");
  fd = ask_decoder("generate", LONG - 3);
  wait_for_metric("hone_sequences_live{model=\"net\",version=\"1\"} 1\n");
  assert_int_equal(send(fd, "G", 1, MSG_NOSIGNAL), 1); /* what nobody reads hides nothing */
  close(fd);
  wait_for_metric("hone_sequences_total{model=\"net\",version=\"1\",reason=\"gone\"} 3\n");
  /* Two that run, two that wait, and the end of the server. */
  int last[4];
  for (int i = 0; i < 4; i++) {
    last[i] = ask_decoder(i % 2 ? "generate" : "generate_stream", LONG - 3);
    if (i < 2)
      wait_for_metric(i ? "hone_sequences_live{model=\"net\",version=\"1\"} 2\n"
                        : "hone_sequences_live{model=\"net\",version=\"1\"} 1\n");
  }
  wait_for_metric("hone_requests_waiting{model=\"net\",version=\"1\"} 2\n");
  hone_server_stop(s);
  for (int i = 0; i < 4; i++) {
    *text = 0;
    read_until(last[i], i < 2 ? "\"finish_reason\":\"cancelled\"}" : "the server is being stopped", text,
               sizeof text);
    close(last[i]);
  }
  hone_server_destroy(s);
  the.port = port;
}

/* Clients that leave at any moment, politely or not, hold no place, and who stays is answered. */
static void many_come_and_go(void **state) {
  (void)state;
  enum { CLIENTS = 60 };
  const uint16_t port = the.port;
  char text[65536] = "";
  int fd[CLIENTS];
  hone_server *s = serve_decoder(&the.port);
  for (int i = 0; i < CLIENTS; i++) {
    fd[i] = ask_decoder(i % 2 ? "generate" : "generate_stream", LONG - 3);
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (i % 3 == 1) assert_int_equal(setsockopt(fd[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    if (i % 5 == 4) assert_int_equal(shutdown(fd[i], SHUT_WR), 0);
    if (i >= CLIENTS / 2) close(fd[i - CLIENTS / 2]); /* one comes, one goes */
  }
  for (int i = CLIENTS / 2; i < CLIENTS; i++) close(fd[i]);
  wait_for_metric("hone_sequences_live{model=\"net\",version=\"1\"} 0\n");
  wait_for_metric("hone_requests_waiting{model=\"net\",version=\"1\"} 0\n");
  wait_for_metric("hone_cache_blocks_used{model=\"net\",version=\"1\"} 0\n");
  const int last = ask_decoder("generate_stream", 5);
  read_until(last, "\"finish_reason\":\"length\"}\n\n", text, sizeof text);
  close(last);
  hone_server_destroy(s);
  the.port = port;
}

/* As many bodies as are promised fit, whatever room they were given. */
static void bodies_fill_what_is_promised(void **state) {
  (void)state;
  enum { EACH = 3000, ALL = 5 };
  static char body[EACH];
  char text[128];
  int fd[ALL];
  for (int i = 0; i < ALL; i++) { /* all but a byte of each: 14995 of 16384 */
    fd[i] = dial();
    const int n =
        snprintf(text, sizeof text,
                 "POST /v2/models/rows/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", (int)EACH);
    assert_int_equal(send(fd[i], text, (size_t)n, MSG_NOSIGNAL), n);
    assert_int_equal(send(fd[i], body, EACH - 1, MSG_NOSIGNAL), EACH - 1);
  }
  for (int i = 0; i < ALL; i++) {
    const char *got = exchange(fd[i], body, 1);
    if (strncmp(got, "HTTP/1.1 400", 12) != 0) fail_msg("%s", got); /* it was read, and is no JSON */
    close(fd[i]);
  }
}

static void addresses_are_checked(void **state) {
  (void)state;
  hone_server *s = NULL;
  hone_error e = {0};
  char taken[32];
  assert_int_equal(hone_server_create(the.engine, NULL, &s, NULL), HONE_OK);
  static const char *const wrong[] = {"",        ":",      "8000",      "a:b", "127.0.0.1:99999",
                                      "[::1:80", "::1:80", "127.0.0.1:"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(hone_server_listen(s, wrong[i], NULL, &e), HONE_ERROR_USAGE);
  snprintf(taken, sizeof taken, "127.0.0.1:%u", the.port);
  assert_int_equal(hone_server_listen(s, taken, NULL, &e), HONE_ERROR_IO);
  assert_non_null(strstr(e.hint, "port 0"));
  assert_int_equal(hone_server_listen(the.server, "127.0.0.1:0", NULL, &e), HONE_ERROR_USAGE);
  hone_server_destroy(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_are_answered),           cmocka_unit_test(a_connection_serves_again),
      cmocka_unit_test(tensors_cross_as_bytes),          cmocka_unit_test(what_is_too_much_is_refused),
      cmocka_unit_test(whoever_hangs_up_is_forgotten),   cmocka_unit_test(addresses_are_checked),
      cmocka_unit_test(slow_readers_hold_nobody),        cmocka_unit_test(bodies_fill_what_is_promised),
      cmocka_unit_test(tokens_come_as_they_are_made),    cmocka_unit_test(many_come_and_go),
      cmocka_unit_test(what_is_too_much_is_told),        cmocka_unit_test(no_byte_ends_a_path),
      cmocka_unit_test(lengths_are_beyond_doubt),        cmocka_unit_test(what_is_too_much_is_told_in_heads),
      cmocka_unit_test(who_is_turned_away_holds_nobody),
  };
  return cmocka_run_group_tests_name("serve_http", tests, start, end);
}
