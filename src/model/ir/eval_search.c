/* GreedySearch of com.microsoft, of decoders alone (model_type 0): a decoder's graph is run for a prompt and
 * then for a token at a time, with what it made of keys and values, until every text has met its end or the
 * longest length is reached. The decoder takes input_ids, position_ids and attention_mask (i32) and the pasts
 * [2, batch, heads, length, size], and gives logits [batch, length, words] and the presents. */
#include "model/ir/eval.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "model/ir/items.h"

enum { IDS, LONGEST, SHORTEST, PENALTY, WORDS, FIRST_WORDS, MASK, N_IN };
enum { TOKENS, POSITIONS, SEEN, PASTS }; /* what the decoder takes */

typedef struct search {
  const hone_node *node;
  const hone_tensor *in[N_IN];
  int64_t batch, prompt, longest, shortest, words, length;
  int64_t end, pad, n_gram;
  float penalty;
  uint32_t pasts;
  int32_t *text;      /* [batch][longest], the result */
  int32_t *mask;      /* [batch][prompt] of the prompt */
  int32_t *position;  /* [batch] of the next token */
  bool *ended;        /* [batch] */
  float *score;       /* [words] of one text */
  uint8_t *met;       /* [words] of one text, for the penalty */
  hone_tensor *made;  /* of the decoder */
  hone_tensor *state; /* pasts */
  hone_tensor fed[PASTS];
} search;

static hone_status one_number(const search *s, uint32_t i, hone_dtype dtype, hone_error *error) {
  const hone_tensor *t = s->in[i];
  if (!t || (t->desc.dtype == dtype && hone_desc_count(&t->desc) == 1)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "input %u of GreedySearch must be one %s", i,
                 hone_dtype_name(dtype));
}

/* An input of i32 [batch or nothing, n]. */
static hone_status numbers(const search *s, uint32_t i, bool rows, int64_t n, hone_error *error) {
  const hone_tensor *t = s->in[i];
  if (!t || (t->desc.dtype == HONE_DTYPE_I32 && hone_desc_count(&t->desc) == (rows ? s->batch : 1) * n))
    return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "input %u of GreedySearch does not have %lld numbers of i32%s", i,
                 (long long)n, rows ? " for each text" : "");
}

static hone_status check_body(const search *s, const hn_graph *g, hone_error *error) {
  if (!g || g->inputs.len <= PASTS || g->outputs.len != g->inputs.len - PASTS + 1)
    return hn_fail(error, HONE_ERROR_INPUT, "the decoder of GreedySearch has %zu inputs and %zu outputs",
                   g ? g->inputs.len : 0, g ? g->outputs.len : 0);
  if (s->pasts && g->inputs.len != s->pasts + PASTS)
    return hn_fail(error, HONE_ERROR_INPUT, "init_decoder and decoder differ in what they take");
  for (size_t i = PASTS; i < g->inputs.len; i++) {
    const hone_tensor_desc *d = &g->inputs.ptr[i]->desc;
    if (d->rank != 5 || d->dim[0] != 2 || d->dim[2] < 1 || d->dim[4] < 1 ||
        (d->dtype != HONE_DTYPE_F32 && d->dtype != HONE_DTYPE_F16))
      return hn_fail(error, HONE_ERROR_INPUT,
                     "input %zu of the decoder is not of the form [2, batch, heads, length, size]", i);
  }
  return HONE_OK;
}

static hone_status begin(search *s, const hn_graph *first, const hn_graph *body, hone_error *error) {
  const hone_node *n = s->node;
  if (hone_node_int(n, "model_type", 0) != 0)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "GreedySearch of model_type %lld is not implemented",
                   (long long)hone_node_int(n, "model_type", 0));
  const hone_tensor *ids = s->in[IDS];
  if (!ids || ids->desc.rank != 2 || ids->desc.dtype != HONE_DTYPE_I32 || ids->desc.dim[1] < 1 ||
      !s->in[LONGEST])
    return hn_fail(error, HONE_ERROR_INPUT,
                   "GreedySearch takes input_ids of i32 [batch, length] and max_length");
  hone_status status = one_number(s, LONGEST, HONE_DTYPE_I32, error);
  if (!status) status = one_number(s, SHORTEST, HONE_DTYPE_I32, error);
  if (!status) status = one_number(s, PENALTY, HONE_DTYPE_F32, error);
  if (!status) status = check_body(s, body, error);
  if (status) return status;
  s->pasts = (uint32_t)(body->inputs.len - PASTS);
  if (first != body && (status = check_body(s, first, error))) return status;
  s->batch = ids->desc.dim[0], s->prompt = s->length = ids->desc.dim[1];
  s->longest = *(const int32_t *)s->in[LONGEST]->data;
  s->shortest = s->in[SHORTEST] ? *(const int32_t *)s->in[SHORTEST]->data : 0;
  s->penalty = s->in[PENALTY] ? *(const float *)s->in[PENALTY]->data : 1.0f;
  s->end = hone_node_int(n, "eos_token_id", -1), s->pad = hone_node_int(n, "pad_token_id", -1);
  s->n_gram = hone_node_int(n, "no_repeat_ngram_size", 0);
  if (s->longest <= s->prompt)
    return hn_fail(error, HONE_ERROR_INPUT, "max_length is %lld, and the prompt has %lld tokens",
                   (long long)s->longest, (long long)s->prompt);
  if (!(s->penalty > 0)) return hn_fail(error, HONE_ERROR_INPUT, "repetition_penalty must be above 0");
  return numbers(s, MASK, true, s->prompt, error);
}

/* Memory, the prompt's mask and positions. Padding has none, whatever the mask says, and without a mask is
 * hidden. */
static hone_status prepare(search *s, hone_tensor *out, hn_budget *budget, hone_error *error) {
  out->desc = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){s->batch, s->longest});
  hone_status status = hn_budget_alloc(budget, hone_desc_bytes(&out->desc), &out->data, error);
  if (status) return status;
  s->text = out->data;
  const size_t batch = (size_t)s->batch;
  s->mask = hn_calloc(batch * (size_t)s->prompt + 1, sizeof *s->mask);
  s->position = hn_calloc(batch + 1, sizeof *s->position);
  s->ended = hn_calloc(batch + 1, sizeof *s->ended);
  s->made = hn_calloc(s->pasts + 1, sizeof *s->made);
  s->state = hn_calloc(s->pasts, sizeof *s->state);
  if (!s->mask || !s->position || !s->ended || !s->made || !s->state)
    return hn_fail_memory(error, batch * (size_t)s->prompt, "GreedySearch");
  const int32_t *ids = s->in[IDS]->data, *given = s->in[MASK] ? s->in[MASK]->data : NULL;
  for (int64_t b = 0; b < s->batch; b++)
    for (int64_t i = 0; i < s->longest; i++) {
      int32_t *token = &s->text[b * s->longest + i];
      *token = i < s->prompt ? ids[b * s->prompt + i] : (int32_t)s->pad;
      if (i >= s->prompt) continue;
      s->mask[b * s->prompt + i] = given ? given[b * s->prompt + i] : *token != s->pad;
      s->position[b] += *token != s->pad;
    }
  return HONE_OK;
}

/* Tokens, positions and the mask of the next call: of the whole prompt at first, then of a token. */
static hone_status feed(search *s, bool first, hn_budget *budget, hone_error *error) {
  const int64_t n = first ? s->prompt : 1, size[PASTS] = {n, n, s->length};
  for (int i = 0; i < PASTS; i++) {
    s->fed[i].desc = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){s->batch, size[i]});
    const hone_status status =
        hn_budget_alloc(budget, hone_desc_bytes(&s->fed[i].desc), &s->fed[i].data, error);
    if (status) return status;
  }
  int32_t *token = s->fed[TOKENS].data, *position = s->fed[POSITIONS].data, *seen = s->fed[SEEN].data;
  for (int64_t b = 0; b < s->batch; b++) {
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
      token[b * n + i] = s->text[b * s->longest + s->length - n + i];
      position[b * n + i] = !first ? s->position[b]++ : token[b * n + i] != s->pad ? at++ : 0;
    }
    for (int64_t i = 0; i < s->length; i++)
      seen[b * s->length + i] = i < s->prompt ? s->mask[b * s->prompt + i] : 1;
  }
  return HONE_OK;
}

/* Scores of words that must not come. */
static void forbid(search *s, int64_t b) {
  const int32_t *text = s->text + b * s->longest;
  const int64_t n = s->n_gram;
  for (int64_t i = 0; n > 0 && i + n <= s->length; i++)
    if (!memcmp(text + i, text + s->length - (n - 1), (size_t)(n - 1) * sizeof *text) &&
        text[i + n - 1] >= 0 && text[i + n - 1] < s->words)
      s->score[text[i + n - 1]] = -FLT_MAX;
  const int32_t *allowed = s->in[WORDS] ? s->in[WORDS]->data : NULL,
                *at_first = s->in[FIRST_WORDS] && s->length == s->prompt ? s->in[FIRST_WORDS]->data : NULL;
  for (int64_t w = 0; w < s->words && (allowed || at_first); w++)
    if ((allowed && !allowed[w]) || (at_first && !at_first[b * s->words + w])) s->score[w] = -FLT_MAX;
  if (s->length < s->shortest && s->end >= 0 && s->end < s->words) s->score[s->end] = -FLT_MAX;
}

/* Words of the text lose: a score above 0 is divided by the penalty, another multiplied. */
static void penalise(search *s, int64_t b) {
  memset(s->met, 0, (size_t)s->words);
  for (int64_t i = 0; i < s->length && s->penalty != 1.0f; i++) {
    const int32_t w = s->text[b * s->longest + i];
    if (w < 0 || w >= s->words || s->met[w]) continue;
    s->met[w] = 1;
    s->score[w] = s->score[w] < 0 ? s->score[w] * s->penalty : s->score[w] / s->penalty;
  }
}

static hone_status read_logits(search *s, hone_error *error) {
  const hone_tensor *t = &s->made[0];
  const int64_t size = hone_node_int(s->node, "vocab_size", 0);
  if (t->desc.rank != 3 || t->desc.dim[0] != s->batch || t->desc.dim[1] < 1 || t->desc.dim[2] < 1 ||
      (t->desc.dtype != HONE_DTYPE_F32 && t->desc.dtype != HONE_DTYPE_F16))
    return hn_fail(error, HONE_ERROR_INPUT,
                   "the decoder's logits are not of the form [batch, length, words]");
  if (s->score) return HONE_OK;
  s->words = size > 0 && size < t->desc.dim[2] ? size : t->desc.dim[2];
  s->score = hn_calloc((size_t)s->words, sizeof *s->score);
  s->met = hn_calloc((size_t)s->words, 1);
  if (!s->score || !s->met) return hn_fail_memory(error, (size_t)s->words, "GreedySearch");
  const hone_status status = numbers(s, WORDS, false, s->words, error);
  return status ? status : numbers(s, FIRST_WORDS, true, s->words, error);
}

/* The likeliest word of each text; true in *all: all texts have ended. */
static hone_status choose(search *s, bool *all, hone_error *error) {
  const hone_status status = read_logits(s, error);
  if (status) return status;
  const hone_tensor *t = &s->made[0];
  *all = true;
  for (int64_t b = 0; b < s->batch; b++) {
    const int64_t at = ((b + 1) * t->desc.dim[1] - 1) * t->desc.dim[2];
    for (int64_t w = 0; w < s->words; w++)
      s->score[w] = t->desc.dtype == HONE_DTYPE_F32 ? ((const float *)t->data)[at + w]
                                                    : hn_f16_to_f32(((const uint16_t *)t->data)[at + w]);
    penalise(s, b);
    forbid(s, b);
    int64_t best = 0;
    for (int64_t w = 1; w < s->words; w++)
      if (s->score[w] > s->score[best]) best = w;
    s->ended[b] = s->ended[b] || best == s->end;
    s->text[b * s->longest + s->length] = (int32_t)(s->ended[b] ? s->pad : best);
    *all = *all && s->ended[b];
  }
  return HONE_OK;
}

static hone_status step(search *s, const hn_graph *g, bool first, hn_scope *scope, hn_arena *keep,
                        hn_budget *budget, hone_error *error) {
  const hone_tensor **args = hn_calloc(s->pasts + PASTS, sizeof *args);
  if (!args) return hn_fail_memory(error, s->pasts * sizeof *args, "GreedySearch");
  hone_status status = feed(s, first, budget, error);
  for (uint32_t i = 0; i < s->pasts + PASTS; i++) args[i] = i < PASTS ? &s->fed[i] : &s->state[i - PASTS];
  if (!status) status = hn_budget_check(budget, error);
  if (!status) status = hn_eval_graph(g, args, s->made, scope, keep, budget, NULL, NULL, error);
  for (int i = 0; i < PASTS; i++) hn_budget_release(budget, &s->fed[i]);
  for (uint32_t i = 0; i < s->pasts && !status; i++) {
    hn_budget_release(budget, &s->state[i]);
    s->state[i] = s->made[i + 1];
    s->made[i + 1].data = NULL;
  }
  hn_free((void *)args);
  return status;
}

static const hn_graph *graph_of(const hone_node *n, const char *name) {
  const hn_attr *a = hn_node_attr(n, name);
  return a && a->type == HONE_ATTR_GRAPH ? a->g : NULL;
}

hone_status hn_eval_search(const hone_node *n, const hone_tensor *const *in, hone_tensor *const *out,
                           hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error) {
  const hn_graph *body = graph_of(n, "decoder"), *first = graph_of(n, "init_decoder");
  search s = {.node = n};
  hone_tensor none = {.desc = {.rank = -1}}, *result = out[0] ? out[0] : &none;
  if (!first) first = body;
  for (uint32_t i = 0; i < n->n_in && i < N_IN; i++) s.in[i] = in[i];
  hone_status status = begin(&s, first, body, error);
  if (!status) status = prepare(&s, result, budget, error);
  for (uint32_t i = 0; i < s.pasts && !status; i++) { /* nothing at first */
    const hone_tensor_desc *d = &body->inputs.ptr[PASTS + i]->desc;
    s.state[i].desc = hone_desc(d->dtype, 5, (const int64_t[]){2, s.batch, d->dim[2], 0, d->dim[4]});
    status = hn_budget_alloc(budget, 0, &s.state[i].data, error);
  }
  for (bool all = s.batch == 0; !status && !all && s.length < s.longest; s.length++) {
    const bool start = s.length == s.prompt;
    status = step(&s, start ? first : body, start, scope, keep, budget, error);
    if (!status) status = choose(&s, &all, error);
    if (s.made) hn_budget_release(budget, &s.made[0]);
  }
  for (uint32_t i = 0; i < s.pasts; i++) {
    if (s.state) hn_budget_release(budget, &s.state[i]);
    if (s.made) hn_budget_release(budget, &s.made[i + 1]);
  }
  if (result == &none) hn_budget_release(budget, &none);
  hn_free(s.mask);
  hn_free(s.position);
  hn_free(s.ended);
  hn_free(s.score);
  hn_free(s.met);
  hn_free(s.made);
  hn_free(s.state);
  return status;
}
