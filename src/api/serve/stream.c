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
  uint32_t told;
  bool over;    /* all events are made */
  hn_str event; /* and `sent` bytes of it were read */
  size_t sent;
};

hone_status hn_stream_open(hn_served *m, const hone_server_request *request, hone_server_stream **out,
                           hone_error *error) {
  hone_server_stream *s = hn_calloc(1, sizeof *s);
  if (!s) return hn_fail_memory(error, sizeof *s, "a request");
  s->m = m, s->gone = request->gone, s->arg = request->arg;
  const hn_slots *slots = hn_generator_slots(m->generator);
  const hn_limits limits = {hn_slots_context(slots), hn_slots_vocabulary(slots)};
  hone_status status = hn_sequence_read(&limits, request, &s->q, error);
  if (status == HONE_OK) status = hn_generator_begin(m->generator, &s->q, error);
  if (status == HONE_OK) {
    *out = s;
    return HONE_OK;
  }
  hn_sequence_free(&s->q);
  hn_free(s);
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

/* The next events into s->event: a token each, in the last one how it ended. */
static void make_events(hone_server_stream *s) {
  hn_generator *g = s->m->generator;
  bool done;
  const uint32_t there = hn_generator_wait(g, &s->q, s->told, s->gone, s->arg, &done);
  const bool bare = done && s->q.finish != HN_FINISH_LENGTH && s->q.finish != HN_FINISH_STOP;
  hn_str_clear(&s->event);
  s->sent = 0;
  for (; s->told < there; s->told++) {
    hn_str_puts(&s->event, "data: ");
    tell_tokens(s->m, &s->q, s->told, 1, done && !bare && s->told + 1 == there, &s->event);
    hn_str_puts(&s->event, "\n\n");
  }
  s->over = done || s->q.gone;
  if (!bare || s->q.finish == HN_FINISH_GONE) return;
  hone_error error = {0};
  hn_str_puts(&s->event, "data: ");
  if (ended(&s->q, &error) == HONE_OK) {
    tell_tokens(s->m, &s->q, s->told, 0, true, &s->event);
  } else {
    char text[1400];
    hone_error_format(&error, text, sizeof text);
    hn_str_puts(&s->event, "{\"error\":");
    hn_tell_text(&s->event, text, strlen(text));
    hn_str_putc(&s->event, '}');
  }
  hn_str_puts(&s->event, "\n\n");
}

size_t hone_server_stream_read(hone_server_stream *s, void *to, size_t room) {
  if (!s || !to || !room) return 0;
  while (s->sent == s->event.len && !s->over) make_events(s);
  if (s->event.failed) return 0;
  const size_t n = s->event.len - s->sent < room ? s->event.len - s->sent : room;
  if (n) memcpy(to, s->event.ptr + s->sent, n);
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
  return o->failed || s->event.failed ? hn_fail_memory(error, o->len, "a response") : HONE_OK;
}

void hn_stream_close(hone_server_stream *s, bool counts) {
  if (!s) return;
  hn_served *m = s->m;
  hn_generator_end(m->generator, &s->q);
  const hone_status status = ended(&s->q, NULL);
  const uint64_t now = hn_now_ns();
  if (status == HONE_OK) {
    pthread_mutex_lock(&m->lock);
    hn_served_count(m, s->q.arrived, s->q.begun, now);
    pthread_mutex_unlock(&m->lock);
  }
  if (counts) hn_served_count_answer(m, status == HONE_OK ? 200 : 503);
  hn_str_free(&s->event);
  hn_sequence_free(&s->q);
  hn_free(s);
}

void hone_server_stream_close(hone_server_stream *s) { hn_stream_close(s, true); }
