/* The server's sockets, by libmicrohttpd: a thread a connection, which waits for its request's run. */
#include "api/serve/serve.h"
#include "base/error.h"

#ifdef HN_HAVE_MICROHTTPD
#include "base/late/microhttpd.h"
#include "base/late/late.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_BYTES = 32 << 10, IDLE_SECONDS = 30, BACKLOG = 128, RETRY_SECONDS = 1 };

struct hn_http {
  hone_server *server;
  struct MHD_Daemon *daemon;
  int socket;
};

/* A request while it arrives. */
typedef struct arrival {
  hone_server *server;
  char *body;
  size_t size, room;
  uint64_t counted; /* of the server's body_bytes */
  int refused;      /* status */
  uint64_t dropped; /* bytes that came after that */
  bool answering;   /* counted by the server until the response has gone out */
} arrival;

/* ------------------------------------------------------------------ responses */

static enum MHD_Result send_response(struct MHD_Connection *c, hone_server_response *r, bool close_after) {
  char number[24];
  struct MHD_Response *m = MHD_create_response_from_buffer(r->size, r->body, MHD_RESPMEM_MUST_COPY);
  hone_server_response_free(r);
  if (!m) return MHD_NO;
  MHD_add_response_header(m, "Content-Type", r->content_type);
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

/* Before its body is there, or instead of its answer. */
static enum MHD_Result turn_away(struct MHD_Connection *c, hone_server *s, int status) {
  const char *text = status == 400
                         ? "{\"error\":\"the request has two lengths: Content-Length and Transfer-Encoding\"}"
                     : status == 413 ? "{\"error\":\"the request is larger than this server takes\"}"
                     : status == 415 ? "{\"error\":\"bodies are taken as they are: no Content-Encoding\"}"
                                     : "{\"error\":\"the server has no room for more requests now\"}";
  hone_server_response r = {.status = status, .content_type = "application/json", .size = strlen(text)};
  r.body = hn_strdup(text);
  atomic_fetch_add(&s->responses[status / 100], 1);
  return r.body ? send_response(c, &r, true) : MHD_NO;
}

/* ------------------------------------------------------------------ requests */

static int judge_head(struct MHD_Connection *c, const hone_server *s) {
  const char *length = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Length"),
             *encoding = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Content-Encoding");
  if (length && MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Transfer-Encoding"))
    return 400; /* a proxy before this server may have believed the other one */
  if (encoding && strcmp(encoding, "identity") != 0) return 415;
  return length && strtoull(length, NULL, 10) > s->options.max_body ? 413 : 0;
}

/* What was said of its length counts for nothing: memory is taken as bytes arrive. */
static void take(arrival *a, const char *data, size_t size) {
  hone_server *s = a->server;
  if (size > s->options.max_body - a->size) {
    a->refused = 413;
    return;
  }
  if (a->size + size + 1 > a->room) {
    size_t room = a->room ? a->room : 4096;
    while (room < a->size + size + 1) room *= 2;
    if (atomic_fetch_add(&s->body_bytes, room - a->counted) + (room - a->counted) > s->options.max_bodies) {
      atomic_fetch_sub(&s->body_bytes, room - a->counted);
      a->refused = 503;
      return;
    }
    a->counted = room;
    char *more = hn_realloc(a->body, room);
    if (!more) {
      a->refused = 503;
      return;
    }
    a->body = more;
    a->room = room;
  }
  memcpy(a->body + a->size, data, size);
  a->size += size;
  a->body[a->size] = 0;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *data, size_t *size, void **state) {
  struct hn_http *h = arg;
  arrival *a = *state;
  (void)version;
  if (!a) {
    a = *state = hn_calloc(1, sizeof *a);
    if (!a) return MHD_NO;
    a->server = h->server;
    a->refused = judge_head(c, h->server);
    return a->refused ? turn_away(c, h->server, a->refused) : MHD_YES;
  }
  if (*size) {
    a->dropped += a->refused ? *size : 0;
    if (!a->refused) take(a, data, *size);
    *size = 0;
    return a->dropped > h->server->options.max_body ? MHD_NO
                                                    : MHD_YES; /* nobody who wants to hear why sends on */
  }
  if (a->refused) return turn_away(c, h->server, a->refused);
  hone_server_response r;
  const hone_server_request request = {
      .method = method,
      .path = url,
      .json_size = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Inference-Header-Content-Length"),
      .body = a->body,
      .size = a->size};
  a->answering = true;
  atomic_fetch_add(&h->server->answering, 1);
  hone_server_answer(h->server, &request, &r);
  return send_response(c, &r, atomic_load(&h->server->stopping));
}

static void on_end(void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why) {
  arrival *a = *state;
  (void)arg, (void)c, (void)why;
  if (!a) return;
  atomic_fetch_sub(&a->server->body_bytes, a->counted);
  if (a->answering) atomic_fetch_sub(&a->server->answering, 1);
  hn_free(a->body);
  hn_free(a);
  *state = NULL;
}

static void keep_quiet(void *arg, const char *format, va_list ap) { (void)arg, (void)format, (void)ap; }

/* ------------------------------------------------------------------ opening */

/* "HOST:PORT", "[HOST]:PORT" or ":PORT" in parts. */
static bool split(const char *address, char *host, size_t room, char *port, size_t port_room) {
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
  if (n >= room) return false;
  memcpy(host, address, n);
  host[n] = 0;
  snprintf(port, port_room, "%s", colon + 1);
  return true;
}

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

static hone_status open_socket(const char *address, int *out, hone_error *error) {
  char host[256], port[8];
  struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE},
                  *list = NULL;
  if (!split(address, host, sizeof host, port, sizeof port)) {
    hn_fail(error, HONE_ERROR_USAGE, "that is no address to listen at");
    hn_error_expected(error, "127.0.0.1:8000, [::1]:8000 or :8000");
    hn_error_got(error, "%.100s", address);
    return HONE_ERROR_USAGE;
  }
  const int failed = getaddrinfo(*host ? host : NULL, port, &want, &list);
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
  hone_status status = hn_late_need(HN_LATE_LIBRARY_MICROHTTPD, error);
  if (status != HONE_OK) return status;
  struct hn_http *h = hn_calloc(1, sizeof *h);
  if (!h) return hn_fail_memory(error, sizeof *h, "a server");
  h->server = s;
  h->socket = -1;
  status = open_socket(address, &h->socket, error);
  if (status == HONE_OK) {
    if (port) *port = port_of(h->socket);
    h->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC, 0, NULL,
        NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, h->socket, MHD_OPTION_CONNECTION_LIMIT,
        s->options.connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_EXTERNAL_LOGGER, keep_quiet, NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
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

/* Nobody is let in any more; who is in gets an answer. */
void hn_http_close(struct hn_http *h) {
  const int fd = MHD_quiesce_daemon(h->daemon);
  const struct timespec moment = {.tv_nsec = 5000000};
  while (atomic_load(&h->server->answering)) nanosleep(&moment, NULL);
  MHD_stop_daemon(h->daemon);
  if (fd >= 0) close(fd);
  hn_free(h);
}

#else

hone_status hn_http_open(hone_server *s, const char *address, uint16_t *port, struct hn_http **out,
                         hone_error *error) {
  (void)s, (void)address, (void)port, (void)out;
  hn_fail(error, HONE_ERROR_MISSING, "this hone was built without libmicrohttpd, which serves HTTP");
  hn_error_hint(error, "install libmicrohttpd-dev and build it again; hone_server_answer works without it");
  return HONE_ERROR_MISSING;
}

void hn_http_close(struct hn_http *h) { (void)h; }

#endif
