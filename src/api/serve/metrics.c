/* What a server counts, and Prometheus' text of it. */
#include "api/serve/generate.h"
#include "base/os.h"
#include "base/text.h"

#include <hone/system.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const double hn_served_bucket[HN_SERVED_BUCKETS] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                    0.1,    0.25,  0.5,    1,     2.5,  5,     10};

void hn_observe(hn_histogram *h, double seconds) {
  int i = 0;
  while (i < HN_SERVED_BUCKETS && seconds > hn_served_bucket[i]) i++;
  h->count[i]++;
  h->sum += seconds;
}

void hn_served_count(hn_served *m, uint64_t arrived, uint64_t begun, uint64_t now) {
  const double whole = 1e-9 * (double)(now - arrived);
  hn_observe(&m->whole, whole);
  hn_observe(&m->queue, 1e-9 * (double)(begun - arrived));
  m->times[m->n_times++ % HN_SERVED_TIMES] = whole;
}

void hn_served_counted_run(hn_served *m, int64_t samples, double seconds) {
  pthread_mutex_lock(&m->lock);
  m->runs++;
  m->samples += (uint64_t)samples;
  hn_observe(&m->run, seconds);
  pthread_mutex_unlock(&m->lock);
}

void hn_served_count_answer(hn_served *m, int status) {
  pthread_mutex_lock(&m->lock);
  m->answered += status == 200;
  m->failed[0] += status >= 400 && status < 500;
  m->failed[1] += status >= 500;
  pthread_mutex_unlock(&m->lock);
}

/* ------------------------------------------------------------------ text */

static void head(hn_str *o, const char *name, const char *kind, const char *help) {
  hn_str_printf(o, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind);
}

/* model="...",version="..." */
static void labels(hn_str *o, const hn_served *m) {
  const char *text[] = {m->name, m->version};
  for (int i = 0; i < 2; i++) {
    hn_str_puts(o, i ? ",version=\"" : "model=\"");
    for (const char *c = text[i]; *c; c++) {
      if (*c == '"' || *c == '\\') hn_str_putc(o, '\\');
      hn_str_putc(o, *c);
    }
    hn_str_putc(o, '"');
  }
}

static void number(hn_str *o, const char *name, const hn_served *m, const char *more, double value) {
  hn_str_printf(o, "%s{", name);
  labels(o, m);
  hn_str_printf(o, "%s} %.9g\n", more, value);
}

static void histogram(hn_str *o, const char *name, const hn_served *m, const hn_histogram *h) {
  uint64_t sum = 0;
  char word[64];
  for (int i = 0; i <= HN_SERVED_BUCKETS; i++) {
    sum += h->count[i];
    hn_str_printf(o, "%s_bucket{", name);
    labels(o, m);
    snprintf(word, sizeof word, "%g", i < HN_SERVED_BUCKETS ? hn_served_bucket[i] : INFINITY);
    hn_str_printf(o, ",le=\"%s\"} %llu\n", i < HN_SERVED_BUCKETS ? word : "+Inf", (unsigned long long)sum);
  }
  snprintf(word, sizeof word, "%s_sum", name);
  number(o, word, m, "", h->sum);
  snprintf(word, sizeof word, "%s_count", name);
  number(o, word, m, "", (double)sum);
}

static void of_models(hn_str *o, const hn_served *m, uint32_t n) {
  head(o, "hone_requests_total", "counter",
       "Requests for runs of a model, by the class of their HTTP status.");
  for (uint32_t i = 0; i < n; i++) {
    number(o, "hone_requests_total", &m[i], ",code=\"2xx\"", (double)m[i].answered);
    number(o, "hone_requests_total", &m[i], ",code=\"4xx\"", (double)m[i].failed[0]);
    number(o, "hone_requests_total", &m[i], ",code=\"5xx\"", (double)m[i].failed[1]);
  }
  head(o, "hone_runs_total", "counter", "Runs of a model; one may serve several requests.");
  for (uint32_t i = 0; i < n; i++) number(o, "hone_runs_total", &m[i], "", (double)m[i].runs);
  head(o, "hone_samples_total", "counter", "Samples that were run.");
  for (uint32_t i = 0; i < n; i++) number(o, "hone_samples_total", &m[i], "", (double)m[i].samples);
  head(o, "hone_requests_waiting", "gauge", "Requests that wait for a run.");
  for (uint32_t i = 0; i < n; i++) number(o, "hone_requests_waiting", &m[i], "", m[i].waiting);
  head(o, "hone_request_seconds", "histogram", "From a request's arrival in the row to its answer.");
  for (uint32_t i = 0; i < n; i++) histogram(o, "hone_request_seconds", &m[i], &m[i].whole);
  head(o, "hone_queue_seconds", "histogram",
       "From a request's arrival in the row to the beginning of its run.");
  for (uint32_t i = 0; i < n; i++) histogram(o, "hone_queue_seconds", &m[i], &m[i].queue);
  head(o, "hone_run_seconds", "histogram", "Runs of a model.");
  for (uint32_t i = 0; i < n; i++) histogram(o, "hone_run_seconds", &m[i], &m[i].run);
}

/* Of the models that are served for generation. */
static void of_generation(hn_str *o, const hn_served *m, const hn_generated *g, uint32_t n) {
  static const char *const why[HN_FINISHES] = {NULL, "length", "stop", "cancelled", "gone", "error"};
  bool any = false;
  for (uint32_t i = 0; i < n; i++) any |= m[i].generator != NULL;
  if (!any) return;
#define EACH(name, kind, help, value)                                                                        \
  head(o, name, kind, help);                                                                                 \
  for (uint32_t i = 0; i < n; i++)                                                                           \
    if (m[i].generator) number(o, name, &m[i], "", (double)(value))
  EACH("hone_generated_tokens_total", "counter", "Tokens that were generated.", g[i].tokens);
  EACH("hone_prompt_tokens_total", "counter", "Tokens of prompts that were taken up.", g[i].prompt_tokens);
  EACH("hone_sequences_live", "gauge", "Sequences that are being read or generated.", g[i].live);
  EACH("hone_cache_blocks", "gauge", "Places of the cache for keys and values.", g[i].blocks);
  EACH("hone_cache_blocks_used", "gauge", "Those that are in use.", g[i].blocks_used);
#undef EACH
  head(o, "hone_sequences_total", "counter", "Sequences that have ended, by why.");
  for (uint32_t i = 0; i < n; i++)
    for (int f = HN_FINISH_LENGTH; f < HN_FINISHES && m[i].generator; f++) {
      char label[40];
      snprintf(label, sizeof label, ",reason=\"%s\"", why[f]);
      number(o, "hone_sequences_total", &m[i], label, (double)g[i].ended[f]);
    }
  head(o, "hone_first_token_seconds", "histogram", "From a request's arrival to its first token.");
  for (uint32_t i = 0; i < n; i++)
    if (m[i].generator) histogram(o, "hone_first_token_seconds", &m[i], &g[i].first);
  head(o, "hone_between_tokens_seconds", "histogram", "From a token of a sequence to its next.");
  for (uint32_t i = 0; i < n; i++)
    if (m[i].generator) histogram(o, "hone_between_tokens_seconds", &m[i], &g[i].between);
}

static void of_server(hn_str *o, hone_server *s) {
  hone_system_sample now;
  hone_system_read(&now);
  head(o, "hone_http_responses_total", "counter", "Responses, by the class of their status.");
  for (int i = 2; i < 6; i++)
    hn_str_printf(o, "hone_http_responses_total{code=\"%dxx\"} %llu\n", i,
                  (unsigned long long)atomic_load(&s->responses[i]));
  head(o, "hone_body_bytes", "gauge",
       "Bytes of requests that arrive or wait, and of responses that are being sent.");
  hn_str_printf(o, "hone_body_bytes %llu\n", (unsigned long long)atomic_load(&s->body_bytes));
  head(o, "hone_uptime_seconds", "gauge", "Since the server was made.");
  hn_str_printf(o, "hone_uptime_seconds %.3f\n", 1e-9 * (double)(hn_now_ns() - s->started));
  if (isfinite(now.rss_bytes)) {
    head(o, "process_resident_memory_bytes", "gauge", "Resident memory.");
    hn_str_printf(o, "process_resident_memory_bytes %.0f\n", now.rss_bytes);
  }
  if (isfinite(now.own_seconds)) {
    head(o, "process_cpu_seconds_total", "counter", "Processor time.");
    hn_str_printf(o, "process_cpu_seconds_total %.3f\n", now.own_seconds);
  }
}

bool hn_metrics(hone_server *s, hn_str *o) {
  pthread_mutex_lock(&s->lock);
  const uint32_t n = s->n_models;
  hn_served *m = hn_calloc(n + 1, sizeof *m); /* as they are at one moment each */
  hn_generated *g = hn_calloc(n + 1, sizeof *g);
  const bool good = m && g;
  for (uint32_t i = 0; good && i < n; i++) {
    pthread_mutex_lock(&s->model[i]->lock);
    m[i] = *s->model[i];
    pthread_mutex_unlock(&s->model[i]->lock);
    if (!m[i].generator) continue;
    hn_generator_count(m[i].generator, &g[i]);
    m[i].waiting = g[i].waiting;
  }
  pthread_mutex_unlock(&s->lock);
  if (good) {
    of_models(o, m, n);
    of_generation(o, m, g, n);
    of_server(o, s);
  }
  hn_free(m);
  hn_free(g);
  return good && !o->failed;
}
