/* The scheduler: one thread has all sequences of a model run. Between two runs sequences come, in the order
 * in which they were asked for, and go as they end; nobody waits for another one's end but for a free place
 * in the cache. A round reads a bounded part of the prompts that are new, and then one token of every other
 * sequence, so that long prompts hold up nobody. */
#include "api/serve/generate.h"
#include "base/error.h"
#include "base/os.h"

#include <string.h>
#include <time.h>

enum {
  PROMPT_TOKENS = 128, /* of a round */
  APART_ROUNDS = 64,   /* after a run of several that failed */
  LOOK_NS = 50000000   /* how often it is asked whether the asker is there */
};

struct hn_generator {
  hn_served *m;
  hn_decoder decoder;
  hn_slots *slots;
  hn_sequence **live; /* [slots] in the order in which they came */
  hn_part *part;      /* [slots] */
  hn_candidate *room; /* [vocabulary] */
  hone_run_options options;
  uint32_t apart; /* rounds to come in which sequences run by themselves */

  pthread_mutex_t lock;
  pthread_cond_t work;
  hn_sequence *first, **last;
  bool closing, started;
  uint64_t rounds;     /* that may still be; UINT64_MAX: any number */
  hn_generated counts; /* live and waiting are what there is */
  pthread_mutex_t joining;
  pthread_t thread;
};

/* ------------------------------------------------------------------ the end of a sequence */

/* With the lock. From here on it is the asker's alone. */
static void retire(hn_generator *g, hn_sequence *q, hn_finish why) {
  for (uint32_t i = 0; i < g->counts.live; i++) {
    if (g->live[i] != q) continue;
    g->counts.live--;
    memmove(&g->live[i], &g->live[i + 1], (g->counts.live - i) * sizeof *g->live);
    hn_slots_give_back(g->slots, q);
    break;
  }
  q->finish = why;
  g->counts.ended[why]++;
  pthread_cond_broadcast(&q->news);
}

static void fail(hn_generator *g, hn_sequence *q, hone_status status, const hone_error *error) {
  pthread_mutex_lock(&g->lock);
  q->status = status;
  q->error = *error;
  retire(g, q, HN_FINISH_ERROR);
  pthread_mutex_unlock(&g->lock);
}

/* ------------------------------------------------------------------ tokens */

static void advance(hn_generator *g, hn_sequence *q, const float *logits) {
  const int64_t id =
      hn_sample(logits, (uint32_t)hn_slots_vocabulary(g->slots), &q->how, q->n - q->prompt, g->room);
  if (id < 0) {
    hone_error error = {0};
    hn_fail(&error, HONE_ERROR_INTERNAL, "the model's logits are no numbers, behind %u tokens", q->n);
    fail(g, q, HONE_ERROR_INTERNAL, &error);
    return;
  }
  const uint64_t now = hn_now_ns();
  bool ends = false;
  for (uint32_t i = 0; i < q->n_ends; i++) ends |= q->end[i] == id;
  pthread_mutex_lock(&g->lock);
  const bool first = q->n == q->prompt;
  q->ids[q->n++] = id;
  hn_observe(first ? &g->counts.first : &g->counts.between,
             1e-9 * (double)(now - (first ? q->arrived : q->last)));
  q->last = now;
  g->counts.tokens++;
  if (ends || q->n == q->prompt + q->most)
    retire(g, q, ends ? HN_FINISH_STOP : HN_FINISH_LENGTH);
  else if (q->n - q->prompt > q->known)
    pthread_cond_broadcast(&q->news);
  pthread_mutex_unlock(&g->lock);
}

/* Whoever has read all that there was gets a token. */
static void after_run(hn_generator *g, const hn_part *part, uint32_t i) {
  part->of->fed += part->tokens;
  if (part->of->fed == part->of->n) advance(g, part->of, hn_slots_logits(g->slots, i));
}

static hone_status run_parts(hn_generator *g, const hn_part *part, uint32_t n, hone_error *error) {
  const char *why;
  const uint32_t runs = hn_slots_share(g->slots, &why) ? 1 : n;
  const uint64_t start = hn_now_ns();
  const hone_status status = hn_slots_run(g->slots, part, n, &g->options, error);
  const double seconds = 1e-9 * (double)(hn_now_ns() - start) / runs;
  for (uint32_t i = 0; i < runs && status == HONE_OK; i++) hn_served_counted_run(g->m, n / runs, seconds);
  return status;
}

/* A run of g->part[n]. What goes wrong with one is not to be the others' end: each runs again by itself, and
 * writes the same once more. A run that was too long, or too large, would be so at the next token, too. */
static void run(hn_generator *g, uint32_t n) {
  hone_error error = {0};
  if (n > 1 && g->apart) {
    g->apart--;
  } else if (n > 1) {
    const hone_status status = run_parts(g, g->part, n, &error);
    if (status == HONE_OK) {
      for (uint32_t i = 0; i < n; i++) after_run(g, &g->part[i], i);
      return;
    }
    if (status != HONE_ERROR_INPUT) g->apart = APART_ROUNDS;
  }
  for (uint32_t i = 0; i < n; i++) {
    const hone_status status = run_parts(g, &g->part[i], 1, &error);
    if (status == HONE_OK)
      after_run(g, &g->part[i], 0);
    else
      fail(g, g->part[i].of, status, &error);
  }
}

/* The oldest first; a prompt's last token may be left for the run of all. */
static void read_prompts(hn_generator *g) {
  uint32_t left = PROMPT_TOKENS;
  for (uint32_t i = 0; i < g->counts.live && left;) {
    hn_sequence *q = g->live[i];
    const uint32_t pending = q->n - q->fed;
    if (pending < 2) {
      i++;
      continue;
    }
    g->part[0] = (hn_part){q, hn_slots_chunk(g->slots, q, pending < left ? pending : left)};
    left -= g->part[0].tokens;
    run(g, 1);
  }
}

static void read_tokens(hn_generator *g) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->counts.live; i++)
    if (g->live[i]->n - g->live[i]->fed == 1) g->part[n++] = (hn_part){g->live[i], 1};
  if (n) run(g, n);
}

/* ------------------------------------------------------------------ who runs */

/* With the lock. */
static hn_sequence *leave_row(hn_generator *g, hn_sequence *q) {
  for (hn_sequence **at = &g->first; *at; at = &(*at)->next) {
    if (*at != q) continue;
    *at = q->next;
    if (g->last == &q->next) g->last = at;
    g->counts.waiting--;
    return q;
  }
  return NULL;
}

/* With the lock: those that are gone go, and as many come as there are places. False: it is over. */
static bool change(hn_generator *g) {
  while (!g->closing && (!g->rounds || (!g->first && !g->counts.live))) pthread_cond_wait(&g->work, &g->lock);
  for (uint32_t i = g->counts.live; i-- > 0;)
    if (g->closing || g->live[i]->gone)
      retire(g, g->live[i], g->closing ? HN_FINISH_CANCELLED : HN_FINISH_GONE);
  while (g->closing && g->first) retire(g, leave_row(g, g->first), HN_FINISH_CANCELLED);
  while (g->first && g->counts.live < hn_slots_count(g->slots) && hn_slots_take(g->slots, g->first)) {
    hn_sequence *q = leave_row(g, g->first);
    q->begun = hn_now_ns();
    g->counts.prompt_tokens += q->prompt;
    g->live[g->counts.live++] = q;
  }
  return !g->closing;
}

static void *work(void *arg) {
  hn_generator *g = arg;
  pthread_mutex_lock(&g->lock);
  while (change(g)) {
    pthread_mutex_unlock(&g->lock);
    read_prompts(g);
    read_tokens(g);
    pthread_mutex_lock(&g->lock);
    if (g->rounds == UINT64_MAX || !g->rounds) continue; /* 0: it was told to stand still meanwhile */
    g->rounds--;
    pthread_cond_broadcast(&g->work);
  }
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

/* ------------------------------------------------------------------ who asks */

hone_status hn_generator_begin(hn_generator *g, hn_sequence *q, hone_error *error) {
  hone_status status = HONE_OK;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&q->news, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_lock(&g->lock);
  if (g->closing)
    status = hn_fail(error, HONE_ERROR_CANCELLED, "the server is being stopped");
  else if (g->counts.waiting >= g->m->server->options.max_waiting)
    status = hn_fail(error, HONE_ERROR_BUDGET, "%u requests for '%.80s' wait already", g->counts.waiting,
                     g->m->name);
  if (status == HONE_OK) {
    q->arrived = hn_now_ns();
    q->slot = -1;
    q->n = q->prompt;
    q->next = NULL;
    *g->last = q;
    g->last = &q->next;
    g->counts.waiting++;
    pthread_cond_broadcast(&g->work);
  }
  pthread_mutex_unlock(&g->lock);
  if (status != HONE_OK) pthread_cond_destroy(&q->news);
  return status;
}

uint32_t hn_generator_wait(hn_generator *g, hn_sequence *q, uint32_t known, bool (*gone)(void *arg),
                           void *arg, bool *done) {
  struct timespec at = {0};
  uint64_t look = hn_now_ns() + LOOK_NS;
  pthread_mutex_lock(&g->lock);
  q->known = known;
  while (q->finish == HN_FINISH_NONE && q->n - q->prompt <= known && !q->gone) {
    at.tv_sec = (time_t)(look / 1000000000u), at.tv_nsec = (long)(look % 1000000000u);
    if (!gone)
      pthread_cond_wait(&q->news, &g->lock);
    else if (pthread_cond_timedwait(&q->news, &g->lock, &at) != 0) {
      pthread_mutex_unlock(&g->lock);
      const bool left = gone(arg);
      look = hn_now_ns() + LOOK_NS;
      pthread_mutex_lock(&g->lock);
      q->gone |= left;
    }
  }
  const uint32_t there = q->n - q->prompt;
  *done = q->finish != HN_FINISH_NONE;
  pthread_mutex_unlock(&g->lock);
  return there;
}

void hn_generator_end(hn_generator *g, hn_sequence *q) {
  pthread_mutex_lock(&g->lock);
  q->gone = true;
  if (q->finish == HN_FINISH_NONE && leave_row(g, q)) retire(g, q, HN_FINISH_GONE);
  while (q->finish == HN_FINISH_NONE) pthread_cond_wait(&q->news, &g->lock);
  pthread_mutex_unlock(&g->lock);
  pthread_cond_destroy(&q->news);
}

/* ------------------------------------------------------------------ the beginning, and the end */

void hn_generator_rounds(hn_generator *g, uint64_t n) {
  pthread_mutex_lock(&g->lock);
  g->rounds = n;
  pthread_cond_broadcast(&g->work);
  while (g->rounds && g->rounds != UINT64_MAX && (g->first || g->counts.live))
    pthread_cond_wait(&g->work, &g->lock);
  pthread_mutex_unlock(&g->lock);
}

const hn_slots *hn_generator_slots(const hn_generator *g) { return g->slots; }

void hn_generator_count(hn_generator *g, hn_generated *out) {
  pthread_mutex_lock(&g->lock);
  *out = g->counts;
  out->blocks = hn_slots_count(g->slots);
  out->blocks_used = g->counts.live;
  pthread_mutex_unlock(&g->lock);
}

hone_status hn_generator_create(hn_served *m, hn_decoder *d, const hone_served_options *o, hn_generator **out,
                                hone_error *error) {
  hn_generator *g = hn_calloc(1, sizeof *g);
  if (!g) return hn_fail_memory(error, sizeof *g, "a generator");
  g->m = m;
  g->decoder = *d;
  *d = (hn_decoder){0};
  g->last = &g->first;
  g->rounds = UINT64_MAX;
  g->options.max_seconds = m->server->options.max_seconds;
  pthread_mutex_init(&g->lock, NULL);
  pthread_mutex_init(&g->joining, NULL);
  pthread_cond_init(&g->work, NULL);
  hone_status status = hn_slots_create(m, &g->decoder, o, &g->slots, error);
  if (status == HONE_OK) {
    g->live = hn_calloc(hn_slots_count(g->slots) + 1, sizeof *g->live);
    g->part = hn_calloc(hn_slots_count(g->slots) + 1, sizeof *g->part);
    g->room = hn_calloc((size_t)hn_slots_vocabulary(g->slots), sizeof *g->room);
    if (!g->live || !g->part || !g->room) status = hn_fail_memory(error, sizeof *g, "a generator");
  }
  if (status == HONE_OK && pthread_create(&g->thread, NULL, work, g) != 0)
    status = hn_fail(error, HONE_ERROR_MEMORY, "cannot start a thread for a generator");
  g->started = status == HONE_OK;
  if (status == HONE_OK)
    *out = g;
  else
    hn_generator_destroy(g);
  return status;
}

void hn_generator_stop(hn_generator *g) {
  pthread_mutex_lock(&g->lock);
  g->closing = true;
  pthread_cond_broadcast(&g->work);
  pthread_mutex_unlock(&g->lock);
  pthread_mutex_lock(&g->joining);
  if (g->started) pthread_join(g->thread, NULL);
  g->started = false;
  pthread_mutex_unlock(&g->joining);
}

void hn_generator_destroy(hn_generator *g) {
  if (!g) return;
  hn_generator_stop(g);
  hn_slots_destroy(g->slots);
  hn_decoder_free(&g->decoder);
  pthread_cond_destroy(&g->work);
  pthread_mutex_destroy(&g->joining);
  pthread_mutex_destroy(&g->lock);
  hn_free(g->live);
  hn_free(g->part);
  hn_free(g->room);
  hn_free(g);
}
