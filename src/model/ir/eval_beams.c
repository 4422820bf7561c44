/* BeamSearch and WhisperBeamSearch: of every text a few beams go on, those whose words' logarithms of
 * probability add up to most. What has met its end is kept aside, measured by its length, until nothing that
 * goes on can be better. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/search.h"

enum { BEAMS = 3, RETURNS, LENGTH_PENALTY, TIMES = 11, TEMPERATURE = 14, NO_SPEECH = 4 };
static const uint8_t places[HN_SEARCH_N_IN] = {0, 1, 2, 6, 7, 8, 9, 10};

typedef struct finished {
  float score;
  int64_t length;
  int32_t *text; /* [longest] */
} finished;

typedef struct candidate {
  float score;
  int32_t beam, word;
} candidate;

typedef struct beams {
  hn_search s;
  int64_t returns;
  float length_penalty;
  bool early;
  float *sum;        /* [rows] */
  int32_t *parent;   /* [rows] of the next step */
  int32_t *next;     /* [rows] word */
  hone_tensor spare; /* [rows, longest] of i32: texts are put together from each other */
  hone_tensor ended; /* the same: texts that have ended */
  finished *kept;    /* [batch][beams], best first */
  int64_t *n_kept;   /* [batch] */
  bool *done;        /* [batch] */
  candidate *top;    /* [2 * beams] of one text, best first */
  int64_t n_top;
  hone_tensor *scores;  /* NULL: not wanted */
  hone_tensor *silence; /* NULL: not wanted; else of each text how likely nobody speaks */
} beams;

static hone_status begin(beams *m, hone_error *error) {
  hn_search *s = &m->s;
  const hone_node *n = s->node;
  hone_status status = hn_search_begin(s, error);
  if (!status) status = hn_search_one(s, BEAMS, HONE_DTYPE_I32, error);
  if (!status) status = hn_search_one(s, RETURNS, HONE_DTYPE_I32, error);
  if (!status) status = hn_search_one(s, LENGTH_PENALTY, HONE_DTYPE_F32, error);
  if (!status) status = hn_search_one(s, TIMES, HONE_DTYPE_I32, error);
  if (!status) status = hn_search_one(s, TEMPERATURE, HONE_DTYPE_F32, error);
  if (status) return status;
  enum { MOST = 128 };
  const hone_tensor *t = n->n_in > LENGTH_PENALTY ? s->in[LENGTH_PENALTY] : NULL;
  s->beams = n->n_in > BEAMS && s->in[BEAMS] ? *(const int32_t *)s->in[BEAMS]->data : 1;
  m->returns = n->n_in > RETURNS && s->in[RETURNS] ? *(const int32_t *)s->in[RETURNS]->data : 1;
  m->length_penalty = t ? *(const float *)t->data : 1.0f;
  m->early = hone_node_int(n, "early_stopping", 0) != 0;
  t = n->n_in > TEMPERATURE ? s->in[TEMPERATURE] : NULL;
  if (t && *(const float *)t->data != 1.0f) s->temperature = *(const float *)t->data;
  t = n->n_in > TIMES && s->audio ? s->in[TIMES] : NULL;
  if (t && *(const int32_t *)t->data == 1 && (status = hn_search_times_begin(s, error))) return status;
  if (s->beams < 1 || s->beams > MOST)
    return hn_fail(error, HONE_ERROR_INPUT, "num_beams is %lld, not 1 to %d", (long long)s->beams, MOST);
  if (m->returns < 1 || m->returns > s->beams)
    return hn_fail(error, HONE_ERROR_INPUT, "num_return_sequences is %lld, not 1 to num_beams",
                   (long long)m->returns);
  return HONE_OK;
}

static hone_status prepare(beams *m, hone_tensor *text, hone_error *error) {
  hn_search *s = &m->s;
  hone_status status = hn_search_prepare(s, text, error);
  hone_tensor *more[] = {&m->spare, &m->ended};
  if (m->silence && !status) {
    m->silence->desc = hone_desc(HONE_DTYPE_F32, 1, &s->batch);
    status = hn_budget_alloc(s->budget, hone_desc_bytes(&m->silence->desc), &m->silence->data, error);
  }
  for (size_t i = 0; i < sizeof more / sizeof *more && !status; i++) {
    more[i]->desc = text->desc;
    status = hn_budget_alloc(s->budget, hone_desc_bytes(&text->desc), &more[i]->data, error);
  }
  if (status) return status;
  const size_t batch = (size_t)s->batch, rows = batch * (size_t)s->beams;
  m->sum = hn_calloc(rows + 1, sizeof *m->sum);
  m->parent = hn_calloc(rows + 1, sizeof *m->parent);
  m->next = hn_calloc(rows + 1, sizeof *m->next);
  m->kept = hn_calloc(rows + 1, sizeof *m->kept);
  m->n_kept = hn_calloc(batch + 1, sizeof *m->n_kept);
  m->done = hn_calloc(batch + 1, sizeof *m->done);
  m->top = hn_calloc(2 * (size_t)s->beams, sizeof *m->top);
  if (!m->sum || !m->parent || !m->next || !m->kept || !m->n_kept || !m->done || !m->top)
    return hn_fail_memory(error, rows * sizeof *m->kept, "BeamSearch");
  for (size_t r = 0; r < rows; r++) {
    m->kept[r].text = (int32_t *)m->ended.data + r * (size_t)s->longest;
    m->sum[r] = r % (size_t)s->beams ? -1e9f : 0; /* all begin alike: one of them is enough */
  }
  return HONE_OK;
}

/* A text that ends, of the words that it has now. */
static void keep(beams *m, int64_t row, float sum) {
  const hn_search *s = &m->s;
  const int64_t b = row / s->beams;
  finished *list = m->kept + b * s->beams;
  const float score = sum / powf((float)s->length, m->length_penalty);
  int64_t at = m->n_kept[b];
  if (at == s->beams && !(score > list[at - 1].score)) return;
  at == s->beams ? at-- : m->n_kept[b]++;
  int32_t *text = list[at].text;
  for (; at > 0 && score > list[at - 1].score; at--) list[at] = list[at - 1];
  list[at] = (finished){score, s->length, text};
  memcpy(text, s->text + row * s->longest, (size_t)s->length * sizeof *text);
}

/* Logarithms of the probabilities of a row's words, and what the row had before. */
static void add_up(beams *m, int64_t row) {
  hn_search *s = &m->s;
  float top = -INFINITY;
  double sum = 0;
  hn_search_read(s, row);
  for (int64_t w = 0; w < s->words; w++) top = fmaxf(top, s->score[w]);
  for (int64_t w = 0; w < s->words; w++) sum += expf(s->score[w] - top);
  const float less = top + (float)log(sum);
  for (int64_t w = 0; w < s->words; w++) s->score[w] -= less;
  if (m->silence && s->length == s->prompt && row % s->beams == 0) {
    const int64_t word = hone_node_int(s->node, "no_speech_token_id", -1);
    ((float *)m->silence->data)[row / s->beams] = word >= 0 && word < s->words ? expf(s->score[word]) : 0;
  }
  hn_search_rule(s, row);
  for (int64_t w = 0; w < s->words; w++) s->score[w] += m->sum[row];
}

/* Of equal scores the first stays first. */
static void rank(beams *m, int64_t row) {
  const hn_search *s = &m->s;
  const int64_t most = 2 * s->beams;
  for (int64_t w = 0; w < s->words; w++) {
    const float score = s->score[w];
    if (m->n_top == most && !(score > m->top[most - 1].score)) continue;
    int64_t at = m->n_top < most ? m->n_top++ : most - 1;
    for (; at > 0 && score > m->top[at - 1].score; at--) m->top[at] = m->top[at - 1];
    m->top[at] = (candidate){score, (int32_t)row, (int32_t)w};
  }
}

/* The beams of a text that go on. */
static hone_status choose(beams *m, int64_t b, hone_error *error) {
  hn_search *s = &m->s;
  const int64_t row = b * s->beams;
  int64_t n = 0;
  for (int64_t i = 0; i < m->n_top && n < s->beams; i++) {
    const candidate *c = &m->top[i];
    if (c->word != s->end) {
      m->sum[row + n] = c->score, m->parent[row + n] = c->beam, m->next[row + n] = c->word;
      n++;
    } else if (i < s->beams) {
      keep(m, c->beam, c->score);
    }
  }
  if (n < s->beams)
    return hn_fail(error, HONE_ERROR_INPUT, "%lld words are too few for %lld beams", (long long)s->words,
                   (long long)s->beams);
  if (m->n_kept[b] < s->beams) return HONE_OK;
  const float best = m->top[0].score / powf((float)s->length, m->length_penalty);
  m->done[b] = m->early || !(m->kept[row + s->beams - 1].score < best);
  return HONE_OK;
}

/* The step's scores, [longest - prompt, batch, beams, words]; steps that are not taken have none. */
static hone_status show(beams *m, int64_t row, hone_error *error) {
  const hn_search *s = &m->s;
  const int64_t rows = s->batch * s->beams, step = s->length - s->prompt;
  if (!m->scores->data) {
    m->scores->desc =
        hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){s->longest - s->prompt, s->batch, s->beams, s->words});
    const int64_t bytes = hone_desc_bytes(&m->scores->desc);
    const hone_status status = hn_budget_alloc(s->budget, bytes, &m->scores->data, error);
    if (status) return status;
    memset(m->scores->data, 0, (size_t)bytes);
  }
  memcpy((float *)m->scores->data + (step * rows + row) * s->words, s->score,
         (size_t)s->words * sizeof *s->score);
  return HONE_OK;
}

static hone_status advance(beams *m, bool *all, hone_error *error) {
  hn_search *s = &m->s;
  hone_status status = HONE_OK;
  *all = true;
  for (int64_t b = 0; b < s->batch && !status; b++) {
    m->n_top = 0;
    for (int64_t row = b * s->beams; row < (b + 1) * s->beams && !status; row++) {
      if (m->done[b] && !m->scores) {
        m->parent[row] = (int32_t)row, m->next[row] = (int32_t)s->pad, m->sum[row] = 0;
        continue;
      }
      add_up(m, row);
      if (m->scores) status = show(m, row, error);
      rank(m, row);
    }
    if (m->done[b]) {
      for (int64_t row = b * s->beams; row < (b + 1) * s->beams; row++)
        m->parent[row] = (int32_t)row, m->next[row] = (int32_t)s->pad, m->sum[row] = 0;
      continue;
    }
    if (!status) status = choose(m, b, error);
    *all = *all && m->done[b];
  }
  if (status) return status;
  const int64_t rows = s->batch * s->beams, n = s->length + 1;
  int32_t *to = m->spare.data;
  for (int64_t r = 0; r < rows; r++) {
    memcpy(to + r * n, s->text + m->parent[r] * s->longest, (size_t)(n - 1) * sizeof *s->text);
    to[r * n + n - 1] = m->next[r];
  }
  for (int64_t r = 0; r < rows; r++)
    memcpy(s->text + r * s->longest, to + r * n, (size_t)n * sizeof *s->text);
  return *all ? HONE_OK : hn_search_go_on(s, m->parent, error);
}

static hone_status finish(beams *m, hone_tensor *const *out, hone_error *error) {
  hn_search *s = &m->s;
  hone_status status = HONE_OK;
  for (int64_t r = 0; r < s->batch * s->beams; r++)
    if (!m->done[r / s->beams]) keep(m, r, m->sum[r]);
  if (out[0]) {
    out[0]->desc = hone_desc(HONE_DTYPE_I32, 3, (const int64_t[]){s->batch, m->returns, s->longest});
    status = hn_budget_alloc(s->budget, hone_desc_bytes(&out[0]->desc), &out[0]->data, error);
  }
  hone_tensor *scores = s->node->n_out > 1 ? out[1] : NULL;
  if (scores && !status) {
    scores->desc = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){s->batch, m->returns});
    status = hn_budget_alloc(s->budget, hone_desc_bytes(&scores->desc), &scores->data, error);
  }
  for (int64_t i = 0; i < s->batch * m->returns && !status; i++) {
    const finished *f = &m->kept[i / m->returns * s->beams + i % m->returns];
    int32_t *text = out[0] ? (int32_t *)out[0]->data + i * s->longest : NULL;
    for (int64_t k = 0; k < s->longest && text; k++) text[k] = k < f->length ? f->text[k] : (int32_t)s->pad;
    if (scores) ((float *)scores->data)[i] = f->score;
  }
  if (m->scores && !m->scores->data && !status) { /* no text: no words known */
    m->scores->desc =
        hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){s->longest - s->prompt, s->batch, s->beams, 0});
    status = hn_budget_alloc(s->budget, 0, &m->scores->data, error);
  }
  return status;
}

hone_status hn_eval_beams(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                          hn_scope *scope, hn_arena *keep_strings, hn_budget *budget, hone_error *error) {
  beams m = {
      .s = {.node = n, .in = in, .place = places, .scope = scope, .keep = keep_strings, .budget = budget},
      .scores = n->n_out > 2 ? out[2] : NULL,
      .silence = n->n_out > NO_SPEECH ? out[NO_SPEECH] : NULL};
  hn_search *s = &m.s;
  hone_tensor text = {.desc = {.rank = -1}};
  hone_status status = begin(&m, error);
  if (!status) status = prepare(&m, &text, error);
  for (bool all = s->batch == 0; !status && !all && s->length < s->longest; s->length += !all) {
    status = hn_search_step(s, error);
    if (!status) status = advance(&m, &all, error);
  }
  if (!status) status = finish(&m, out, error);
  hn_search_end(s);
  hn_budget_release(budget, &text);
  hn_budget_release(budget, &m.spare);
  hn_budget_release(budget, &m.ended);
  hn_free(m.sum);
  hn_free(m.parent);
  hn_free(m.next);
  hn_free(m.kept);
  hn_free(m.n_kept);
  hn_free(m.done);
  hn_free(m.top);
  return status;
}
