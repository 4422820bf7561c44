/* A request for generation while it is answered: as one JSON, or token by token as events
 * (text/event-stream). */
#include "api/serve/generate.h"
#include "base/error.h"
#include "base/os.h"

#include <string.h>

struct hone_server_stream {
  hn_served *m;
  hn_sequence q;
  bool (*gone)(void *arg);
  void *arg;
  uint64_t counted; /* of the server's body_bytes */
  uint32_t told;
  bool over;   /* all events are made */
  bool broken; /* there was no memory for one */
  hn_str made;
  const char *event; /* of which `sent` bytes were read */
  size_t size, sent;
};

/* What a sequence holds until its asker lets go of it counts as his body did, which is gone by then. One
 * alone is always let in. */
static bool count(hone_server_stream *s, size_t body) {
  const hn_sequence *q = &s->q;
  hone_server *server = s->m->server;
  const uint64_t bytes =
      sizeof *s + (q->id ? strlen(q->id) + 1 : 0) + ((uint64_t)q->prompt + q->most) * sizeof *q->ids;
  const uint64_t before = atomic_fetch_add(&server->body_bytes, bytes);
  s->counted = bytes;
  return before + bytes <= server->options.max_bodies || before <= body;
}

static void let_go(hone_server_stream *s) {
  atomic_fetch_sub(&s->m->server->body_bytes, s->counted);
  hn_str_free(&s->made);
  hn_sequence_free(&s->q);
  hn_free(s);
}

hone_status hn_stream_open(hn_served *m, const hone_server_request *request, hone_server_stream **out,
                           hone_error *error) {
  hone_server_stream *s = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "a request");
  s->m = m, s->gone = request->gone, s->arg = request->arg;
  const hn_slots *slots = hn_generator_slots(m->generator);
  const hn_limits limits = {hn_slots_context(slots), hn_slots_vocabulary(slots)};
  hone_status status = hn_sequence_read(&limits, request, &s->q, error);
  if (status == HONE_OK && !count(s, request->size))
    status = hn_fail(error, HONE_ERROR_BUDGET, "the server has no room for more requests or responses now");
  if (status == HONE_OK) status = hn_generator_begin(m->generator, &s->q, error);
  if (status == HONE_OK) {
    *out = s;
    return HONE_OK;
  }
  let_go(s);
  return status;
}

/* ------------------------------------------------------------------ what is told */

static const char *finish_name(hn_finish f) {
  return f == HN_FINISH_LENGTH ? "length" : f == HN_FINISH_STOP ? "stop" : "cancelled";
}

static void member(hn_str *o, const char *before, const char *name, const char *text) {
  hn_str_printf(o, "%s\"%s\":", before, name);
  hn_tell_text(o, text, strlen(text));
}

/* The tokens from number `from` behind the prompt on, `n` of them, and how it ended where `ended`. */
static void tell_tokens(const hn_served *m, const hn_sequence *q, uint32_t from, uint32_t n, bool ended,
                        hn_str *o) {
  member(o, "{", "model_name", m->name);
  member(o, ",", "model_version", m->version);
  if (q->id) member(o, ",", "id", q->id);
  hn_str_puts(o, ",\"output_ids\":[");
  for (uint32_t i = 0; i < n; i++)
    hn_str_printf(o, "%s%lld", i ? "," : "", (long long)q->ids[q->prompt + from + i]);
  hn_str_putc(o, ']');
  if (ended) member(o, ",", "finish_reason", finish_name(q->finish));
  hn_str_putc(o, '}');
}

/* How a sequence ended that has nothing to show for it. */
static hone_status ended(const hn_sequence *q, hone_error *error) {
  if (q->finish == HN_FINISH_ERROR) {
    if (error) *error = q->error;
    return q->status;
  }
  if (q->finish == HN_FINISH_CANCELLED && q->n == q->prompt)
    return hn_fail(error, HONE_ERROR_CANCELLED, "the server is being stopped");
  if (q->finish == HN_FINISH_NONE || q->finish == HN_FINISH_GONE)
    return hn_fail(error, HONE_ERROR_CANCELLED, "nobody waits for the answer");
  return HONE_OK;
}

/* How it ended, where no token says it. */
static void make_last(hone_server_stream *s) {
  hone_error error = {0};
  hn_str_puts(&s->made, "data: ");
  if (ended(&s->q, &error) == HONE_OK) {
    tell_tokens(s->m, &s->q, s->told, 0, true, &s->made);
  } else {
    hn_tell_error(s->m, &error, &s->made);
  }
  hn_str_puts(&s->made, "\n\n");
}

/* The next event: a token, with the last one how it ended. However many tokens there are, only one event is
 * held. */
static void make_event(hone_server_stream *s) {
  static const char no_memory[] = "data: {\"error\":\"out of memory\"}\n\n";
  bool done;
  const uint32_t there = hn_generator_wait(s->m->generator, &s->q, s->told, s->gone, s->arg, &done);
  const bool tells = done && (s->q.finish == HN_FINISH_LENGTH || s->q.finish == HN_FINISH_STOP),
             left = done ? s->q.finish == HN_FINISH_GONE : s->q.gone;
  hn_str_clear(&s->made);
  if (left) {
    s->over = true;
  } else if (s->told < there) {
    s->over = tells && s->told + 1 == there;
    hn_str_puts(&s->made, "data: ");
    tell_tokens(s->m, &s->q, s->told++, 1, s->over, &s->made);
    hn_str_puts(&s->made, "\n\n");
  } else {
    s->over = true;
    make_last(s);
  }
  s->broken = s->made.failed;
  s->over |= s->broken;
  s->event = s->broken ? no_memory : s->made.ptr;
  s->size = s->broken ? sizeof no_memory - 1 : s->made.len;
  s->sent = 0;
}

size_t hone_server_stream_read(hone_server_stream *s, void *to, size_t room) {
  if (!s || !to || !room) return 0;
  while (s->sent == s->size && !s->over) make_event(s);
  const size_t n = s->size - s->sent < room ? s->size - s->sent : room;
  if (n) memcpy(to, s->event + s->sent, n);
  s->sent += n;
  return n;
}

hone_status hn_stream_answer(hone_server_stream *s, bool events, hn_str *o, hone_error *error) {
  bool done;
  /* There are never more than that: until it ends. */
  hn_generator_wait(s->m->generator, &s->q, s->q.most, s->gone, s->arg, &done);
  const hone_status status =
      done ? ended(&s->q, error) : hn_fail(error, HONE_ERROR_CANCELLED, "nobody waits for the answer");
  if (status != HONE_OK) return status;
  if (!events) {
    tell_tokens(s->m, &s->q, 0, s->q.n - s->q.prompt, true, o);
    return o->failed ? hn_fail_memory(error, o->len, "a response") : HONE_OK;
  }
  char part[4096];
  for (size_t n; (n = hone_server_stream_read(s, part, sizeof part)) > 0;) hn_str_append(o, part, n);
  return o->failed || s->broken ? hn_fail_memory(error, o->len, "a response") : HONE_OK;
}

bool hn_stream_left(const hone_server_stream *s) { return s && s->q.gone; }

static int counts_as(const hone_server_stream *s, hone_status status) {
  switch (status) {
  case HONE_OK: return 200;
  case HONE_ERROR_INPUT: return 400;
  case HONE_ERROR_MEMORY:
  case HONE_ERROR_BUDGET: return 503;
  case HONE_ERROR_CANCELLED: return s->q.finish == HN_FINISH_GONE ? HN_STATUS_LEFT : 503;
  default: return 500;
  }
}

void hn_stream_close(hone_server_stream *s, bool counts) {
  if (!s) return;
  hn_served *m = s->m;
  hn_generator_end(m->generator, &s->q);
  const hone_status status = s->broken ? HONE_ERROR_MEMORY : ended(&s->q, NULL);
  const uint64_t now = hn_now_ns();
  if (status == HONE_OK) {
    pthread_mutex_lock(&m->lock);
    hn_served_count(m, s->q.arrived, s->q.begun, now);
    pthread_mutex_unlock(&m->lock);
  }
  if (counts) hn_served_count_answer(m, counts_as(s, status));
  let_go(s);
}

void hone_server_stream_close(hone_server_stream *s) { hn_stream_close(s, true); }
