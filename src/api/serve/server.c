/* The server: its models, and which answer belongs to a request. */
#include "api/api.h"
#include "api/serve/generate.h"
#include "base/error.h"
#include "base/os.h"
#include "base/quantile.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ models */

hone_status hone_server_create(hone_engine *engine, const hone_server_options *o, hone_server **out,
                               hone_error *error) {
  if (!engine || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_server_create needs an engine and a place for the result");
  *out = NULL;
  hone_server *s = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "a server");
  s->engine = engine;
  s->started = hn_now_ns();
  if (o) s->options = *o;
  if (!s->options.max_body) s->options.max_body = 64u << 20;
  if (!s->options.max_bodies) s->options.max_bodies = 512u << 20;
  if (s->options.max_bodies < s->options.max_body) s->options.max_bodies = s->options.max_body;
  if (!s->options.max_waiting) s->options.max_waiting = 256;
  if (!s->options.connections) s->options.connections = 128;
  if (!(s->options.stop_seconds > 0 && s->options.stop_seconds < 1e6)) s->options.stop_seconds = 5;
  s->linger_ms = 5000;
  pthread_mutex_init(&s->lock, NULL);
  pthread_mutex_init(&s->listening, NULL);
  *out = s;
  return HONE_OK;
}

void hone_server_destroy(hone_server *s) {
  if (!s) return;
  hone_server_stop(s);
  for (uint32_t i = 0; i < s->n_models; i++) hn_served_destroy(s->model[i]);
  hn_free(s->model);
  pthread_mutex_destroy(&s->listening);
  pthread_mutex_destroy(&s->lock);
  hn_free(s);
}

/* With the lock. */
static hn_served *look(const hone_server *s, const char *name, size_t n) {
  for (uint32_t i = 0; i < s->n_models; i++)
    if (strlen(s->model[i]->name) == n && memcmp(s->model[i]->name, name, n) == 0) return s->model[i];
  return NULL;
}

/* Models are only ever added: what is found stays. */
static hn_served *find(hone_server *s, const char *name, size_t n) {
  pthread_mutex_lock(&s->lock);
  hn_served *found = look(s, name, n);
  pthread_mutex_unlock(&s->lock);
  return found;
}

static hn_served *model_at(hone_server *s, uint32_t i) {
  pthread_mutex_lock(&s->lock);
  hn_served *m = i < s->n_models ? s->model[i] : NULL;
  pthread_mutex_unlock(&s->lock);
  return m;
}

static hone_status taken(const char *name, hone_error *error) {
  return hn_fail(error, HONE_ERROR_USAGE, "the server has a model '%.100s' already", name);
}

hone_status hone_server_add(hone_server *s, hone_model *model, const hone_served_options *o,
                            hone_error *error) {
  if (!s || !model || !o || !o->name)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_server_add needs a server, a model and its name");
  hn_served *m = NULL;
  if (find(s, o->name, strlen(o->name))) return taken(o->name, error);
  const uint64_t lost = hn_mem_lost();
  hone_status status = hn_served_create(s, model, o, &m, error);
  status = hn_settle(status, lost, error);
  if (status == HONE_OK) {
    pthread_mutex_lock(&s->lock);
    const bool late = look(s, m->name, strlen(m->name)) != NULL; /* another thread came before */
    hn_served **more = late ? NULL : hn_realloc(s->model, (s->n_models + 1) * sizeof *more);
    if (late) {
      status = taken(m->name, error);
    } else if (more) {
      s->model = more;
      s->model[s->n_models++] = m;
      m = NULL;
    } else {
      status = hn_fail_memory(error, sizeof *more, "a served model");
    }
    pthread_mutex_unlock(&s->lock);
  }
  hn_served_destroy(m);
  return status;
}

/* Of the times that are kept: mean and quantiles, in milliseconds. */
static void times_of(const hn_served *m, hone_served *out) {
  const size_t n = m->n_times < HN_SERVED_TIMES ? (size_t)m->n_times : HN_SERVED_TIMES;
  double *sorted = n ? hn_malloc(n * sizeof *sorted) : NULL, sum = 0;
  out->mean_ms = out->p50_ms = out->p95_ms = out->p99_ms = (double)NAN;
  if (!sorted) return;
  memcpy(sorted, m->times, n * sizeof *sorted);
  hn_ascend(sorted, n);
  for (size_t i = 0; i < n; i++) sum += sorted[i];
  out->mean_ms = 1e3 * sum / (double)n;
  out->p50_ms = 1e3 * hn_quantile(sorted, n, 0.5);
  out->p95_ms = 1e3 * hn_quantile(sorted, n, 0.95);
  out->p99_ms = 1e3 * hn_quantile(sorted, n, 0.99);
  hn_free(sorted);
}

bool hone_server_model(hone_server *s, uint32_t i, hone_served *out) {
  if (!s || !out) return false;
  hn_served *m = model_at(s, i);
  if (!m) return false;
  pthread_mutex_lock(&m->lock);
  *out = (hone_served){.name = m->name,
                       .version = m->version,
                       .max_batch = m->shares ? (uint32_t)m->max_batch : 1,
                       .alone = m->shares ? "" : m->alone.text,
                       .waiting = m->waiting,
                       .answered = m->answered,
                       .failed = m->failed[0] + m->failed[1],
                       .runs = m->runs,
                       .samples = m->samples};
  times_of(m, out);
  pthread_mutex_unlock(&m->lock);
  if (!m->generator) return true;
  const hn_slots *slots = hn_generator_slots(m->generator);
  hn_generated counts;
  hn_generator_count(m->generator, &counts);
  out->sequences = hn_slots_count(slots);
  out->context = hn_slots_context(slots);
  out->cache_bytes = hn_slots_bytes(slots);
  out->max_batch = hn_slots_share(slots, &out->alone) ? out->sequences : 1;
  out->waiting = counts.waiting;
  out->tokens = counts.tokens;
  return true;
}

/* ------------------------------------------------------------------ responses */

static void respond(hone_server_response *out, int status, hn_str *body) {
  if (body->failed || !body->ptr) {
    out->status = 500;
    hn_str_free(body);
    return;
  }
  out->status = status;
  out->body = body->ptr;
  out->size = body->len;
}

static void refuse(hone_server_response *out, int status, const char *text) {
  hn_str o = {0};
  hn_str_puts(&o, "{\"error\":");
  hn_tell_text(&o, text, strlen(text));
  hn_str_putc(&o, '}');
  respond(out, status, &o);
}

static int status_of(hone_status status) {
  switch (status) {
  case HONE_ERROR_USAGE:
  case HONE_ERROR_INPUT:
  case HONE_ERROR_UNSUPPORTED: return 400;
  case HONE_ERROR_MEMORY:
  case HONE_ERROR_BUDGET:
  case HONE_ERROR_CANCELLED: return 503;
  default: return 500;
  }
}

static void refuse_error(const hn_served *m, hone_server_response *out, const hone_error *error) {
  hn_str o = {0};
  hn_tell_error(m, error, &o);
  respond(out, status_of(error->status), &o);
}

static bool ready(hone_server *s) { return !atomic_load(&s->stopping); }

/* A device whose context is lost does nothing more in this process: who asks is to go elsewhere. */
static bool able(const hn_served *m) {
  for (uint32_t i = 0; i < m->n_replicas; i++) {
    hn_device *device;
    const hn_backend *b = hn_api_backend(m->replica[i].engine, &device);
    if (b->asynchronous && b->sync(device, NULL, NULL) != HONE_OK) return false;
  }
  return true;
}

static bool all_able(hone_server *s) {
  bool good = ready(s);
  hn_served *m; /* a device may take its time, and the lock is who asks for a model's */
  for (uint32_t i = 0; good && (m = model_at(s, i)); i++) good = able(m);
  return good;
}

static void say(hone_server_response *out, int status, const char *text) {
  hn_str o = {0};
  hn_str_puts(&o, text);
  respond(out, status, &o);
}

/* ------------------------------------------------------------------ a run */

static void infer(hone_server *s, hn_served *m, const hone_server_request *r, hone_server_response *out) {
  hn_ask ask = {0};
  hone_error error = {0};
  const uint64_t lost = hn_mem_lost();
  hone_status status =
      ready(s) ? HONE_OK : hn_fail(&error, HONE_ERROR_CANCELLED, "the server is being stopped");
  if (status == HONE_OK && m->generator) {
    status =
        hn_fail(&error, HONE_ERROR_UNSUPPORTED, "'%.80s' is served for generation, not for runs", m->name);
    hn_error_hint(&error, "POST /v2/models/NAME/generate; hone serve --no-generate serves its runs");
  }
  if (status == HONE_OK) status = hn_ask_read(m, r, &ask, &error);
  if (status == HONE_OK) status = hn_served_run(m, &ask, &error);
  status = hn_settle(status, lost, &error);
  if (status == HONE_OK && !hn_tell_answer(m, &ask, out)) status = hn_fail_memory(&error, 0, "a response");
  if (status == HONE_OK)
    out->status = 200;
  else
    refuse_error(m, out, &error);
  hn_ask_free(m, &ask);
  hn_served_count_answer(m, out->status);
}

/* ------------------------------------------------------------------ generation */

static hone_status open_stream(hone_server *s, hn_served *m, const hone_server_request *r,
                               hone_server_stream **out, hone_error *error) {
  if (!ready(s)) return hn_fail(error, HONE_ERROR_CANCELLED, "the server is being stopped");
  if (m->generator) return hn_stream_open(m, r, out, error);
  hn_fail(error, HONE_ERROR_UNSUPPORTED, "'%.80s' is not served for generation: %s", m->name,
          m->no_decoder.text);
  hn_error_hint(error,
                "docs/guide/generate.md says which models are; POST /v2/models/NAME/infer runs this one");
  return HONE_ERROR_UNSUPPORTED;
}

static void generate(hone_server *s, hn_served *m, const hone_server_request *r, bool events,
                     hone_server_response *out) {
  hone_server_stream *stream = NULL;
  hone_error error = {0};
  hn_str o = {0};
  const uint64_t lost = hn_mem_lost();
  hone_status status = hn_settle(open_stream(s, m, r, &stream, &error), lost, &error);
  if (status == HONE_OK && events) out->content_type = "text/event-stream";
  if (status == HONE_OK && events && r->streams) {
    out->status = 200;
    out->stream = stream;
    return; /* it is counted when it is closed */
  }
  if (status == HONE_OK) status = hn_stream_answer(stream, events, &o, &error);
  if (status == HONE_OK) {
    respond(out, 200, &o);
  } else {
    hn_str_free(&o);
    out->content_type = "application/json";
    refuse_error(m, out, &error);
  }
  const bool left = out->status != 200 && hn_stream_left(stream);
  hn_stream_close(stream, false);
  hn_served_count_answer(m, left ? HN_STATUS_LEFT : out->status);
}

/* ------------------------------------------------------------------ paths */

typedef enum verb { ABOUT, READY, INFER, GENERATE, GENERATE_STREAM, NO_VERB } verb;

static bool is(const char *path, const char *text) {
  const size_t n = strlen(text);
  return strncmp(path, text, n) == 0 && (!path[n] || (path[n] == '/' && !path[n + 1]));
}

/* "NAME", "NAME/ready", "NAME/versions/V/infer"...: what is wanted of which model. */
static verb of_model(hone_server *s, const char *path, hn_served **model, const char **version,
                     size_t *length) {
  const char *end = strchr(path, '/');
  const size_t n = end ? (size_t)(end - path) : strlen(path);
  *model = find(s, path, n);
  *version = NULL;
  path += n;
  if (strncmp(path, "/versions/", 10) == 0 && path[10]) {
    *version = path + 10;
    end = strchr(*version, '/');
    *length = end ? (size_t)(end - *version) : strlen(*version);
    path = *version + *length;
  }
  return is(path, "/ready")             ? READY
         : is(path, "/infer")           ? INFER
         : is(path, "/generate")        ? GENERATE
         : is(path, "/generate_stream") ? GENERATE_STREAM
         : is(path, "")                 ? ABOUT
                                        : NO_VERB;
}

static bool method_is(const hone_server_request *r, const char *wanted, hone_server_response *out) {
  const bool get = strcmp(wanted, "GET") == 0;
  if (strcmp(r->method, wanted) == 0 || (get && strcmp(r->method, "HEAD") == 0)) return true;
  char text[64];
  snprintf(text, sizeof text, "that path takes %s, not %.20s", wanted, r->method);
  refuse(out, 405, text);
  out->allow = get ? "GET, HEAD" : "POST";
  return false;
}

static void models(hone_server *s, const char *path, const hone_server_request *r,
                   hone_server_response *out) {
  hn_served *m = NULL;
  hn_str o = {0};
  const char *version;
  size_t length = 0;
  const verb v = of_model(s, path, &m, &version, &length);
  char text[400];
  if (!m) {
    snprintf(text, sizeof text, "there is no model '%.*s'; POST /v2/repository/index lists them",
             (int)strcspn(path, "/"), path);
    refuse(out, 404, text);
  } else if (version && (strlen(m->version) != length || memcmp(m->version, version, length) != 0)) {
    snprintf(text, sizeof text, "model '%.100s' has no version '%.*s', but '%.100s'", m->name,
             (int)(length < 100 ? length : 100), version, m->version);
    refuse(out, 404, text);
  } else if (v == NO_VERB) {
    refuse(out, 404,
           "of a model there are its metadata (GET), /ready (GET), /infer (POST), /generate (POST) and "
           "/generate_stream (POST)");
  } else if (v == INFER) {
    if (method_is(r, "POST", out)) infer(s, m, r, out);
  } else if (v == GENERATE || v == GENERATE_STREAM) {
    if (method_is(r, "POST", out)) generate(s, m, r, v == GENERATE_STREAM, out);
  } else if (!method_is(r, "GET", out)) {
  } else if (v == ABOUT) {
    hn_tell_model(m, &o);
    respond(out, 200, &o);
  } else {
    const bool good = ready(s) && able(m);
    hn_str_puts(&o, "{\"name\":");
    hn_tell_text(&o, m->name, strlen(m->name));
    hn_str_printf(&o, ",\"ready\":%s}", good ? "true" : "false");
    respond(out, good ? 200 : 503, &o);
  }
}

static void repository(hone_server *s, hone_server_response *out) {
  hn_str o = {0};
  hn_str_putc(&o, '[');
  pthread_mutex_lock(&s->lock);
  for (uint32_t i = 0; i < s->n_models; i++) {
    hn_str_puts(&o, i ? ",{\"name\":" : "{\"name\":");
    hn_tell_text(&o, s->model[i]->name, strlen(s->model[i]->name));
    hn_str_puts(&o, ",\"version\":");
    hn_tell_text(&o, s->model[i]->version, strlen(s->model[i]->version));
    hn_str_puts(&o, ",\"state\":\"READY\",\"reason\":\"\"}");
  }
  pthread_mutex_unlock(&s->lock);
  hn_str_putc(&o, ']');
  respond(out, 200, &o);
}

static void metrics(hone_server *s, hone_server_response *out) {
  hn_str o = {0};
  if (!hn_metrics(s, &o)) o.failed = true;
  respond(out, 200, &o);
  out->content_type = "text/plain; version=0.0.4; charset=utf-8";
}

/* No name has such a character: a path with one is nobody's, and is not shown either. */
static bool is_plain(const char *path) {
  for (size_t n; *path; path += n) {
    n = hn_text_character(path);
    if (hn_text_is_hidden(path, n)) return false;
  }
  return true;
}

static void route(hone_server *s, const hone_server_request *r, hone_server_response *out) {
  const char *path = r->path;
  if (!is_plain(path)) {
    refuse(out, 400, "the path holds a control character, a '%2F', or bytes that are no UTF-8");
  } else if (strncmp(path, "/v2/models/", 11) == 0 && path[11] && path[11] != '/') {
    models(s, path + 11, r, out);
  } else if (is(path, "/v2/repository/index")) {
    repository(s, out);
  } else if (is(path, "/v2/health/live")) {
    if (method_is(r, "GET", out)) say(out, 200, "{\"live\":true}");
  } else if (is(path, "/v2/health/ready")) {
    if (method_is(r, "GET", out)) {
      const bool good = all_able(s);
      say(out, good ? 200 : 503, good ? "{\"ready\":true}" : "{\"ready\":false}");
    }
  } else if (is(path, "/v2")) {
    if (method_is(r, "GET", out))
      say(out, 200,
          "{\"name\":\"hone\",\"version\":\"" HONE_VERSION_STRING
          "\",\"extensions\":[\"binary_tensor_data\",\"classification\",\"generate\"]}");
  } else if (is(path, "/metrics")) {
    if (method_is(r, "GET", out)) metrics(s, out);
  } else {
    refuse(out, 404,
           "nothing is there; /v2/health/ready, /v2/models/NAME, /v2/models/NAME/infer, "
           "/v2/models/NAME/generate, /v2/repository/index and /metrics are");
  }
}

void hone_server_answer(hone_server *s, const hone_server_request *r, hone_server_response *out) {
  if (!out) return;
  *out = (hone_server_response){.status = 500, .content_type = "application/json"};
  if (!s || !r || !r->method || !r->path || (!r->body && r->size)) return;
  hone_server_request request = *r;
  if (!request.body) request.body = "";
  route(s, &request, out);
  atomic_fetch_add(&s->responses[out->status / 100 % 6], 1);
}

void hone_server_response_free(hone_server_response *r) {
  if (!r) return;
  hone_server_stream_close(r->stream);
  r->stream = NULL;
  hn_free(r->body);
  r->body = NULL;
  r->size = 0;
}

/* ------------------------------------------------------------------ sockets */

hone_status hone_server_listen(hone_server *s, const char *address, uint16_t *port, hone_error *error) {
  if (!s || !address)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_server_listen needs a server and an address");
  pthread_mutex_lock(&s->listening);
  hone_status status = HONE_OK;
  if (s->http || atomic_load(&s->stopping))
    status =
        hn_fail(error, HONE_ERROR_USAGE, "the server %s", s->http ? "listens already" : "has been stopped");
  if (status == HONE_OK) status = hn_http_open(s, address, port, &s->http, error);
  pthread_mutex_unlock(&s->listening);
  return status;
}

void hone_server_stop(hone_server *s) {
  if (!s) return;
  atomic_store(&s->stopping, true);
  pthread_mutex_lock(&s->listening);
  hn_served *m;
  for (uint32_t i = 0; (m = model_at(s, i)); i++)
    if (m->generator) hn_generator_stop(m->generator); /* sequences may have long to go */
  if (s->http) hn_http_close(s->http);
  s->http = NULL;
  for (uint32_t i = 0; (m = model_at(s, i)); i++) hn_served_close(m);
  pthread_mutex_unlock(&s->listening);
}
