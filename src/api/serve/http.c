/* The server's sockets, by libmicrohttpd: a thread a connection, which waits for its request's run, and for
 * the parts of an answer that comes in parts. */
#include "api/serve/serve.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ addresses */

typedef struct place {
  char host[256], port[8];
} place;

/* "HOST:PORT", "[HOST]:PORT" or ":PORT" in parts. */
static bool split(const char *address, place *out) {
  const char *colon = strrchr(address, ':');
  if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
      atoi(colon + 1) > 65535)
    return false;
  size_t n = (size_t)(colon - address);
  if (n && *address == '[') {
    if (address[n - 1] != ']' || n < 3) return false;
    address++, n -= 2;
  } else if (memchr(address, ':', n)) {
    return false;
  }
  if (n >= sizeof out->host) return false;
  memcpy(out->host, address, n);
  out->host[n] = 0;
  snprintf(out->port, sizeof out->port, "%s", colon + 1);
  return true;
}

/* Before a library is asked for: what is written wrongly is told everywhere alike. */
static hone_status read_address(const char *address, place *out, hone_error *error) {
  if (split(address, out)) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "that is no address to listen at");
  hn_error_expected(error, "127.0.0.1:8000, [::1]:8000 or :8000");
  hn_error_got(error, "%.100s", address);
  return HONE_ERROR_USAGE;
}

#ifdef HN_HAVE_MICROHTTPD
#include "base/late/microhttpd.h"
#include "base/late/late.h"
#include "base/os.h"
#include "base/text.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 32 << 10, IDLE_SECONDS = 30, BACKLOG = 128, RETRY_SECONDS = 1, PART_BYTES = 4096 };

struct hn_http {
  hone_server *server;
  struct MHD_Daemon *daemon;
  int socket;
  atomic_uint answering; /* requests whose answer is being made */
  atomic_uint open;      /* requests between their first line and the end */
  atomic_uint lingering; /* connections */
};

#define NO_PATH "\x01" /* is refused, with the reason */

/* A request while it arrives. */
typedef struct arrival {
  struct hn_http *http;
  struct MHD_Connection *connection;
  const char *line_end;       /* where its URI ends, if nothing in it is NUL */
  bool begun, head;           /* its head is there; its method is HEAD */
  bool cut;                   /* its URI has a NUL, and was read up to there */
  hone_server_stream *stream; /* its answer, where that comes in parts */
  char *body, *response;
  size_t size, room;
  uint64_t counted; /* of the server's body_bytes */
  int refused;      /* status */
} arrival;

/* Counts bytes of bodies and responses, or says that there is no room. */
static bool count(arrival *a, uint64_t bytes, bool alone) {
  hone_server *s = a->http->server;
  const uint64_t before = atomic_fetch_add(&s->body_bytes, bytes);
  if (before + bytes > s->options.max_bodies && !(alone && !before)) {
    atomic_fetch_sub(&s->body_bytes, bytes);
    return false;
  }
  a->counted += bytes;
  return true;
}

static void drop_body(arrival *a) {
  atomic_fetch_sub(&a->http->server->body_bytes, a->counted);
  a->counted = 0;
  hn_free(a->body);
  a->body = NULL;
  a->size = a->room = 0;
}

/* ------------------------------------------------------------------ responses */

static int socket_of(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

/* Is nobody there any more who would read the answer? Whoever has closed his side is not, whatever he sent
 * before. */
static bool hung_up(void *arg) {
  const arrival *a = arg;
  struct pollfd at = {.fd = socket_of(a->connection), .events = POLLRDHUP};
  return poll(&at, 1, 0) > 0 && at.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}

/* While the model is at work the connection says nothing, and is not idle. */
static void wait_patiently(const arrival *a, bool on) {
  MHD_set_connection_option(a->connection, MHD_CONNECTION_OPTION_TIMEOUT, on ? 0u : (unsigned)IDLE_SECONDS);
}

static ssize_t next_part(void *arg, uint64_t at, char *to, size_t room) {
  const arrival *a = arg;
  (void)at;
  wait_patiently(a, true);
  const size_t n = hone_server_stream_read(a->stream, to, room);
  wait_patiently(a, false);
  return n ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

/* The body stays where it is until on_end. */
static enum MHD_Result send_response(struct MHD_Connection *c, const hone_server_response *r, arrival *a,
                                     bool close_after) {
  char number[24];
  struct MHD_Response *m =
      r->stream ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PART_BYTES, next_part, a, NULL)
                : MHD_create_response_from_buffer(r->size, r->body, MHD_RESPMEM_PERSISTENT);
  if (!m) return MHD_NO;
  MHD_add_response_header(m, "Content-Type", r->content_type);
  if (r->stream) { /* tokens are worth most at once: caches and proxies are not to gather them */
    MHD_add_response_header(m, "Cache-Control", "no-cache");
    MHD_add_response_header(m, "X-Accel-Buffering", "no");
  }
  if (r->allow) MHD_add_response_header(m, "Allow", r->allow);
  if (close_after) MHD_add_response_header(m, "Connection", "close");
  if (r->json_size) {
    snprintf(number, sizeof number, "%zu", r->json_size);
    MHD_add_response_header(m, "Inference-Header-Content-Length", number);
  }
  if (r->status == 503) {
    snprintf(number, sizeof number, "%d", RETRY_SECONDS);
    MHD_add_response_header(m, "Retry-After", number);
  }
  const enum MHD_Result queued = MHD_queue_response(c, (unsigned)r->status, m);
  MHD_destroy_response(m);
  return queued;
}

static char *why_not(int status) {
  static char doubtful[] =
      "{\"error\":\"the request's length is in doubt: Content-Length or Transfer-Encoding twice or "
      "together, a Transfer-Encoding in HTTP/1.0, or a header with a blank in its name or in several "
      "lines\"}",
              transferred[] = "{\"error\":\"bodies come with a Content-Length or chunked: there is no other "
                              "Transfer-Encoding\"}",
              large[] = "{\"error\":\"the request is larger than this server takes\"}",
              coded[] = "{\"error\":\"bodies are taken as they are: no Content-Encoding\"}",
              full[] = "{\"error\":\"the server has no room for more requests or responses now\"}";
  return status == 400   ? doubtful
         : status == 501 ? transferred
         : status == 413 ? large
         : status == 415 ? coded
                         : full;
}

/* Before its body is there, or instead of its answer. */
static enum MHD_Result turn_away(struct MHD_Connection *c, hone_server *s, int status) {
  char *text = why_not(status);
  const hone_server_response r = {
      .status = status, .content_type = "application/json", .body = text, .size = strlen(text)};
  atomic_fetch_add(&s->responses[status / 100], 1);
  return send_response(c, &r, NULL, true);
}

/* While its body arrives, where libmicrohttpd takes no answer. */
static void turn_away_now(const arrival *a) {
  char head[256];
  const char *text = why_not(a->refused);
  const int n =
      snprintf(head, sizeof head,
               "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
               "Content-Length: %zu\r\n\r\n%s",
               a->refused == 413 ? "413 Content Too Large" : "503 Service Unavailable\r\nRetry-After: 1",
               strlen(text), a->head ? "" : text);
  atomic_fetch_add(&a->http->server->responses[a->refused / 100], 1);
  send(socket_of(a->connection), head, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The connection of whoever was turned away is to be closed. What has not been read by then would reset it,
 * and the reset take the answer from who has not read it yet. So he hears its end, and for a while what he
 * still sends is dropped: as much as a request may be, until he is silent. Only so many are waited for that
 * others find connections. */
static void linger(struct hn_http *h, int fd) {
  char dropped[16384];
  struct pollfd at = {.fd = fd, .events = POLLIN};
  const uint32_t ms = h->server->linger_ms;
  const uint64_t until = hn_now_ns() + ms * 1000000ull;
  uint64_t most = h->server->options.max_body;
  if (4 * atomic_fetch_add(&h->lingering, 1) < h->server->options.connections) {
    shutdown(fd, SHUT_WR);
    while (most && hn_now_ns() < until && poll(&at, 1, (int)(ms / 5 * 2)) > 0) {
      const ssize_t n = recv(fd, dropped, sizeof dropped, MSG_DONTWAIT);
      if (n <= 0) break;
      most -= (uint64_t)n < most ? (uint64_t)n : most;
    }
  }
  atomic_fetch_sub(&h->lingering, 1);
}

/* ------------------------------------------------------------------ requests */

/* How long a request says that it is. */
typedef struct said {
  const char *length, *transfer;
  bool doubtful; /* a proxy before this server may have read it otherwise */
} said;

static enum MHD_Result look_at(void *arg, enum MHD_ValueKind kind, const char *name, const char *value) {
  said *s = arg;
  const char **is = strcasecmp(name, "Content-Length") == 0      ? &s->length
                    : strcasecmp(name, "Transfer-Encoding") == 0 ? &s->transfer
                                                                 : NULL;
  (void)kind;
  /* A line that goes on in the next one: libmicrohttpd 0.9 appends that to a copy of the name, which lies
   * behind the value, and "Content-Leng: 9", " th" is a length. */
  const bool folded = value && value < name;
  if (folded || name[strcspn(name, " \t")] || (is && *is)) s->doubtful = true;
  if (is) *is = value ? value : "";
  return MHD_YES;
}

static int judge_head(struct MHD_Connection *c, const hone_server *s, const char *version) {
  said by = {0};
  const char *encoding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Encoding");
  MHD_get_connection_values(c, MHD_HEADER_KIND, look_at, &by);
  if (by.doubtful || (by.transfer && (by.length || strcmp(version, "HTTP/1.1") < 0))) return 400;
  if (by.transfer && strcasecmp(by.transfer, "chunked") != 0) return 501;
  if (encoding && strcmp(encoding, "identity") != 0) return 415;
  return by.length && strtoull(by.length, NULL, 10) > s->options.max_body ? 413 : 0;
}

/* What was said of its length counts for nothing: memory is taken as bytes arrive. */
static int take(arrival *a, const char *data, size_t size) {
  const uint64_t most = a->http->server->options.max_body;
  if (size > most - a->size) return 413;
  if (!count(a, size, false)) return 503;
  if (a->size + size + 1 > a->room) {
    size_t room = a->room ? a->room : 4096;
    while (room < a->size + size + 1) room *= 2;
    if (room > most + 1) room = (size_t)most + 1;
    char *more = hn_realloc(a->body, room);
    if (!more) return 503;
    a->body = more;
    a->room = room;
  }
  memcpy(a->body + a->size, data, size);
  a->size += size;
  a->body[a->size] = 0;
  return 0;
}

/* The request's body makes room for the response, which may wait long for its reader. */
static enum MHD_Result answer(arrival *a, struct MHD_Connection *c, const hone_server_request *request) {
  hone_server *s = a->http->server;
  hone_server_response r;
  wait_patiently(a, true);
  hone_server_answer(s, request, &r);
  wait_patiently(a, false);
  drop_body(a);
  a->response = r.body;
  a->stream = r.stream;
  if (count(a, r.size, true)) return send_response(c, &r, a, atomic_load(&s->stopping));
  atomic_fetch_sub(&s->responses[r.status / 100 % 6], 1); /* nobody will see it */
  hn_free(a->response);
  a->response = NULL;
  return turn_away(c, s, 503);
}

/* The first line, as it came. Its parts lie as they came until the request ends. */
static void *on_line(void *arg, const char *uri, struct MHD_Connection *c) {
  struct hn_http *h = arg;
  arrival *a = hn_calloc(1, sizeof *a);
  if (!a) return NULL;
  a->http = h;
  a->connection = c;
  a->line_end = uri ? uri + strlen(uri) : NULL;
  atomic_fetch_add(&h->open, 1);
  return a;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state) {
  struct hn_http *h = arg;
  arrival *a = *state;
  if (!a) return MHD_NO;
  if (!a->begun) {
    a->begun = true;
    a->head = strcmp(method, "HEAD") == 0;
    a->cut = a->line_end && a->line_end + 1 != version;
    a->refused = judge_head(c, h->server, version);
    return a->refused ? turn_away(c, h->server, a->refused) : MHD_YES;
  }
  if (*size) {
    a->refused = take(a, data, *size);
    *size = 0;
    if (!a->refused) return MHD_YES;
    drop_body(a);
    turn_away_now(a);
    return MHD_NO; /* closes the connection */
  }
  const hone_server_request request = {
      .method = method,
      .path = a->cut ? NO_PATH : url,
      .json_size = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Inference-Header-Content-Length"),
      .body = a->body,
      .size = a->size,
      .streams = true,
      .gone = hung_up,
      .arg = a};
  atomic_fetch_add(&h->answering, 1);
  const enum MHD_Result queued = answer(a, c, &request);
  atomic_fetch_sub(&h->answering, 1);
  return queued;
}

static void on_end(void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why) {
  arrival *a = *state;
  (void)arg;
  if (!a) return;
  struct hn_http *h = a->http;
  const bool lingers = a->refused && (why == MHD_REQUEST_TERMINATED_COMPLETED_OK ||
                                      why == MHD_REQUEST_TERMINATED_WITH_ERROR); /* and may be there still */
  drop_body(a);
  hone_server_stream_close(a->stream);
  hn_free(a->response);
  hn_free(a);
  *state = NULL;
  atomic_fetch_sub(&h->open, 1); /* who stops the server does not wait for it, but cuts the connection */
  if (lingers) linger(h, socket_of(c));
}

/* %XX of a path becomes a byte, in place. %00 would end the path there, %2F part a name in two, and make it
 * another path: a character that no path has stands for them, and is refused. */
static size_t unescape(void *arg, struct MHD_Connection *c, char *text) {
  char *to = text;
  (void)arg, (void)c;
  for (const char *at = text; *at; at++) {
    const int high = *at == '%' ? hn_text_hex(at[1]) : -1, low = high < 0 ? -1 : hn_text_hex(at[2]);
    const int is = low < 0 ? *at : high << 4 | low;
    *to++ = low >= 0 && (!is || is == '/') ? *NO_PATH : (char)is;
    at += low < 0 ? 0 : 2;
  }
  *to = 0;
  return (size_t)(to - text);
}

static void keep_quiet(void *arg, const char *format, va_list ap) { (void)arg, (void)format, (void)ap; }

/* ------------------------------------------------------------------ opening */

static int listen_at(const struct addrinfo *at) {
  const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, off = 0;
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (at->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

static hone_status open_socket(const char *address, const place *where, int *out, hone_error *error) {
  struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE},
                  *list = NULL;
  const char *host = where->host;
  const int failed = getaddrinfo(*host ? host : NULL, where->port, &want, &list);
  if (failed) {
    hn_fail(error, HONE_ERROR_USAGE, "there is no address '%.100s': %s", host, gai_strerror(failed));
    return HONE_ERROR_USAGE;
  }
  *out = -1;
  for (int family = AF_INET6; *out < 0 && family; family = family == AF_INET6 ? AF_INET : 0)
    for (const struct addrinfo *at = list; at && *out < 0; at = at->ai_next)
      if (at->ai_family == family) *out = listen_at(at);
  const int why = errno;
  freeaddrinfo(list);
  if (*out >= 0) return HONE_OK;
  hn_fail(error, HONE_ERROR_IO, "cannot listen at %.100s: %s", address, strerror(why));
  if (why == EADDRINUSE) hn_error_hint(error, "another process has that port; port 0 takes one that is free");
  if (why == EACCES) hn_error_hint(error, "ports below 1024 are for root");
  return HONE_ERROR_IO;
}

static uint16_t port_of(int fd) {
  struct sockaddr_storage at;
  socklen_t size = sizeof at;
  if (getsockname(fd, (struct sockaddr *)&at, &size) != 0) return 0;
  return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                        : ((struct sockaddr_in *)&at)->sin_port);
}

hone_status hn_http_open(hone_server *s, const char *address, uint16_t *port, struct hn_http **out,
                         hone_error *error) {
  place where;
  hone_status status = read_address(address, &where, error);
  if (status == HONE_OK) status = hn_late_need(HN_LATE_LIBRARY_MICROHTTPD, error);
  if (status != HONE_OK) return status;
  struct hn_http *h = hn_calloc(1, sizeof *h);
  if (!h) return hn_fail_memory(error, sizeof *h, "a server");
  h->server = s;
  h->socket = -1;
  status = open_socket(address, &where, &h->socket, error);
  if (status == HONE_OK) {
    if (port) *port = port_of(h->socket);
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL,
        NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, h->socket, MHD_OPTION_CONNECTION_LIMIT,
        s->options.connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_EXTERNAL_LOGGER, keep_quiet, NULL, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_line, h, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!h->daemon) status = hn_fail(error, HONE_ERROR_IO, "libmicrohttpd cannot serve at %.100s", address);
  }
  if (status == HONE_OK) {
    *out = h;
    return HONE_OK;
  }
  if (h->socket >= 0) close(h->socket);
  hn_free(h);
  return status;
}

static void wait_for(const atomic_uint *these, uint64_t until) {
  const struct timespec moment = {.tv_nsec = 5000000};
  while (atomic_load(these) && hn_now_ns() < until) nanosleep(&moment, NULL);
}

/* Nobody is let in any more; who is in gets an answer. A run takes as long as it takes, but who sends or
 * reads slowly is not waited for without an end. */
void hn_http_close(struct hn_http *h) {
  enum { LYING_NS = 50000000 }; /* for what was sent on open connections, and has not been looked at */
  const int fd = MHD_quiesce_daemon(h->daemon);
  nanosleep(&(struct timespec){.tv_nsec = LYING_NS}, NULL);
  wait_for(&h->answering, UINT64_MAX);
  wait_for(&h->open, hn_now_ns() + (uint64_t)(h->server->options.stop_seconds * 1e9));
  wait_for(&h->answering, UINT64_MAX); /* what was still arriving */
  MHD_stop_daemon(h->daemon);
  if (fd >= 0) close(fd);
  hn_free(h);
}

#else

hone_status hn_http_open(hone_server *s, const char *address, uint16_t *port, struct hn_http **out,
                         hone_error *error) {
  place where;
  (void)s, (void)port, (void)out;
  if (read_address(address, &where, error) != HONE_OK) return HONE_ERROR_USAGE;
  hn_fail(error, HONE_ERROR_MISSING, "this hone was built without libmicrohttpd, which serves HTTP");
  hn_error_hint(error, "install libmicrohttpd-dev and build it again; hone_server_answer works without it");
  return HONE_ERROR_MISSING;
}

void hn_http_close(struct hn_http *h) { (void)h; }

#endif
