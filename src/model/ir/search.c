#include "model/ir/search.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/mem.h"
#include "model/ir/items.h"

enum { TOKENS, POSITIONS, SEEN, PASTS = HN_SEARCH_PASTS }; /* what a decoder alone takes */

static const char *name(const hn_search *s) { return s->node->op_type; }

hone_status hn_search_one(const hn_search *s, uint32_t at, hone_dtype dtype, hone_error *error) {
  const hone_tensor *t = at < s->node->n_in ? s->in[at] : NULL;
  if (!t || (t->desc.dtype == dtype && hone_desc_count(&t->desc) == 1)) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "input %u of %s must be one %s", at, name(s),
                 hone_dtype_name(dtype));
}

/* An input of i32 [batch or nothing, n]. */
static hone_status numbers(const hn_search *s, uint32_t i, bool rows, int64_t n, hone_error *error) {
  const hone_tensor *t = hn_search_in(s, i);
  if (!t || (t->desc.dtype == HONE_DTYPE_I32 && hone_desc_count(&t->desc) == (rows ? s->batch : 1) * n))
    return HONE_OK;
  return hn_fail(error, HONE_ERROR_INPUT, "input %u of %s does not have %lld numbers of i32%s", s->place[i],
                 name(s), (long long)n, rows ? " for each text" : "");
}

static hone_status check_body(const hn_search *s, const hn_graph *g, hone_error *error) {
  if (!g || g->inputs.len <= PASTS || g->outputs.len != g->inputs.len - PASTS + 1)
    return hn_fail(error, HONE_ERROR_INPUT, "the decoder of %s has %zu inputs and %zu outputs", name(s),
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

const hn_graph *hn_search_graph(const hn_search *s, const char *attr) {
  const hn_attr *a = hn_node_attr(s->node, attr);
  return a && a->type == HONE_ATTR_GRAPH ? a->g : NULL;
}

static hone_status alone_begin(hn_search *s, hone_error *error) {
  const hone_tensor *ids = hn_search_in(s, HN_SEARCH_IDS);
  s->first = hn_search_graph(s, "init_decoder");
  if (!s->first) s->first = s->body;
  if (!ids || ids->desc.rank != 2 || ids->desc.dtype != HONE_DTYPE_I32 || ids->desc.dim[1] < 1)
    return hn_fail(error, HONE_ERROR_INPUT, "%s takes input_ids of i32 [batch, length]", name(s));
  hone_status status = check_body(s, s->body, error);
  if (status) return status;
  s->lead = PASTS, s->pasts = s->grows = (uint32_t)(s->body->inputs.len - PASTS);
  if (s->first != s->body && (status = check_body(s, s->first, error))) return status;
  s->batch = ids->desc.dim[0], s->prompt = ids->desc.dim[1];
  return numbers(s, HN_SEARCH_MASK, true, s->prompt, error);
}

hone_status hn_search_begin(hn_search *s, hone_error *error) {
  const hone_node *n = s->node;
  const hone_tensor *longest = hn_search_in(s, HN_SEARCH_LONGEST),
                    *shortest = hn_search_in(s, HN_SEARCH_SHORTEST),
                    *penalty = hn_search_in(s, HN_SEARCH_PENALTY);
  s->body = hn_search_graph(s, "decoder");
  if (!longest) return hn_fail(error, HONE_ERROR_INPUT, "%s takes max_length", name(s));
  hone_status status = hn_search_one(s, s->place[HN_SEARCH_LONGEST], HONE_DTYPE_I32, error);
  if (!status) status = hn_search_one(s, s->place[HN_SEARCH_SHORTEST], HONE_DTYPE_I32, error);
  if (!status) status = hn_search_one(s, s->place[HN_SEARCH_PENALTY], HONE_DTYPE_F32, error);
  const bool alone = hone_node_int(n, "model_type", HN_SEARCH_ALONE) == HN_SEARCH_ALONE;
  if (!status) status = alone ? alone_begin(s, error) : hn_search_encoder_begin(s, error);
  if (status) return status;
  s->length = s->prompt;
  s->longest = *(const int32_t *)longest->data;
  s->shortest = shortest ? *(const int32_t *)shortest->data : 0;
  s->penalty = penalty ? *(const float *)penalty->data : 1.0f;
  s->end = hone_node_int(n, "eos_token_id", -1), s->pad = hone_node_int(n, "pad_token_id", -1);
  s->n_gram = hone_node_int(n, "no_repeat_ngram_size", 0);
  if (s->longest <= s->prompt)
    return hn_fail(error, HONE_ERROR_INPUT, "max_length is %lld, and the prompt has %lld tokens",
                   (long long)s->longest, (long long)s->prompt);
  if (!(s->penalty > 0)) return hn_fail(error, HONE_ERROR_INPUT, "repetition_penalty must be above 0");
  return HONE_OK;
}

/* The prompt's mask and positions, too. Padding has none, whatever the mask says, and without a mask is
 * hidden. */
hone_status hn_search_prepare(hn_search *s, hone_tensor *text, hone_error *error) {
  const int64_t rows = s->batch * s->beams;
  text->desc = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){rows, s->longest});
  hone_status status = hn_budget_alloc(s->budget, hone_desc_bytes(&text->desc), &text->data, error);
  if (status) return status;
  s->text = text->data;
  const size_t batch = (size_t)s->batch;
  s->mask = hn_calloc(batch * (size_t)s->prompt + 1, sizeof *s->mask);
  s->position = hn_calloc(batch + 1, sizeof *s->position);
  s->made = hn_calloc(s->pasts + 1, sizeof *s->made);
  s->state = hn_calloc(s->pasts, sizeof *s->state);
  if (!s->mask || !s->position || !s->made || !s->state)
    return hn_fail_memory(error, batch * (size_t)s->prompt, name(s));
  const hone_tensor *mask = hn_search_in(s, HN_SEARCH_MASK);
  const hone_tensor *words = hn_search_in(s, s->encoder ? HN_SEARCH_BEGIN : HN_SEARCH_IDS);
  const int32_t *ids = words ? words->data : NULL, *given = mask && !s->encoder ? mask->data : NULL;
  const int32_t start = (int32_t)hone_node_int(s->node, "decoder_start_token_id", -1);
  for (int64_t r = 0; r < rows && !status; r++) {
    const int64_t b = r / s->beams;
    status = hn_budget_check(s->budget, error);
    for (int64_t i = 0; i < s->longest; i++) {
      int32_t *token = &s->text[r * s->longest + i];
      *token = i >= s->prompt ? (int32_t)s->pad : ids ? ids[b * s->prompt + i] : start;
      if (i >= s->prompt || r % s->beams) continue;
      s->mask[b * s->prompt + i] = given ? given[b * s->prompt + i] : *token != s->pad;
      s->position[b] += *token != s->pad;
    }
  }
  for (uint32_t i = 0; i < s->grows && !status; i++) { /* nothing at first */
    const hone_tensor_desc *d = &s->body->inputs.ptr[s->lead + i]->desc;
    s->state[i].desc = s->encoder
                           ? hone_desc(d->dtype, 4, (const int64_t[]){s->batch, d->dim[1], 0, d->dim[3]})
                           : hone_desc(d->dtype, 5, (const int64_t[]){2, s->batch, d->dim[2], 0, d->dim[4]});
    status = hn_budget_alloc(s->budget, 0, &s->state[i].data, error);
  }
  return status;
}

static bool at_prompt(const hn_search *s) { return s->length == s->prompt; }

/* Beams of a text are one row while they are its prompt alone. */
static int64_t rows_now(const hn_search *s) { return at_prompt(s) ? s->batch : s->batch * s->beams; }

/* Tokens, positions and the mask of the next call: of the whole prompt at first, then of a token. */
static hone_status feed(hn_search *s, hone_error *error) {
  const bool first = at_prompt(s);
  const int64_t n = first || s->whole ? s->length : 1, rows = rows_now(s), size[PASTS] = {n, n, s->length};
  for (int i = 0; i < (s->encoder ? 1 : PASTS); i++) {
    s->fed[i].desc = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){rows, size[i]});
    const hone_status status =
        hn_budget_alloc(s->budget, hone_desc_bytes(&s->fed[i].desc), &s->fed[i].data, error);
    if (status) return status;
  }
  int32_t *token = s->fed[TOKENS].data, *position = s->fed[POSITIONS].data, *seen = s->fed[SEEN].data;
  for (int64_t r = 0; r < rows; r++) {
    const int64_t b = first ? r : r / s->beams, from = first ? r * s->beams : r;
    int32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
      token[r * n + i] = s->text[from * s->longest + s->length - n + i];
      if (s->encoder) continue;
      position[r * n + i] = !first ? s->position[b] : token[r * n + i] != s->pad ? at++ : 0;
    }
    for (int64_t i = 0; i < s->length && !s->encoder; i++)
      seen[r * s->length + i] = i < s->prompt ? s->mask[b * s->prompt + i] : 1;
  }
  for (int64_t b = 0; b < s->batch && !first; b++) s->position[b]++;
  return HONE_OK;
}

static hone_status check_logits(hn_search *s, hone_error *error) {
  const hone_tensor *t = &s->made[0];
  const int64_t size = hone_node_int(s->node, "vocab_size", 0);
  if (t->desc.rank != 3 || t->desc.dim[0] != rows_now(s) || t->desc.dim[1] < 1 || t->desc.dim[2] < 1 ||
      (t->desc.dtype != HONE_DTYPE_F32 && t->desc.dtype != HONE_DTYPE_F16) ||
      (s->words && t->desc.dim[2] < s->words))
    return hn_fail(error, HONE_ERROR_INPUT,
                   "the decoder's logits are not of the form [batch, length, words]");
  if (s->score) return HONE_OK;
  s->words = size > 0 && size < t->desc.dim[2] ? size : t->desc.dim[2];
  s->score = hn_calloc((size_t)s->words, sizeof *s->score);
  s->met = hn_calloc((size_t)s->words, 1);
  if (!s->score || !s->met) return hn_fail_memory(error, (size_t)s->words, name(s));
  const hone_status status = numbers(s, HN_SEARCH_WORDS, false, s->words, error);
  return status ? status : numbers(s, HN_SEARCH_FIRST_WORDS, true, s->words, error);
}

static hone_status decode(hn_search *s, hone_error *error) {
  const hone_tensor **args = hn_calloc(s->pasts + s->lead, sizeof *args);
  if (!args) return hn_fail_memory(error, s->pasts * sizeof *args, name(s));
  hone_status status = feed(s, error);
  for (uint32_t i = 0; i < s->pasts + s->lead; i++)
    args[i] = i < s->lead ? &s->fed[i] : &s->state[i - s->lead];
  if (!status)
    status = hn_eval_graph(at_prompt(s) ? s->first : s->body, args, s->made, s->scope, s->keep, s->budget,
                           NULL, NULL, error);
  for (int i = 0; i < (s->encoder ? 1 : PASTS); i++) hn_budget_release(s->budget, &s->fed[i]);
  hn_free((void *)args);
  return status;
}

hone_status hn_search_step(hn_search *s, hone_error *error) {
  hn_budget_release(s->budget, &s->made[0]);
  hone_status status = hn_budget_check(s->budget, error);
  if (!status && s->encoder && at_prompt(s)) status = hn_search_encode(s, error);
  if (!status && !s->made[0].data) status = decode(s, error);
  return status ? status : check_logits(s, error);
}

void hn_search_read(hn_search *s, int64_t row) {
  const hone_tensor *t = &s->made[0];
  const int64_t r = at_prompt(s) ? row / s->beams : row, at = ((r + 1) * t->desc.dim[1] - 1) * t->desc.dim[2];
  for (int64_t w = 0; w < s->words; w++)
    s->score[w] = t->desc.dtype == HONE_DTYPE_F32 ? ((const float *)t->data)[at + w]
                                                  : hn_f16_to_f32(((const uint16_t *)t->data)[at + w]);
}

/* Scores of words that must not come. */
static void forbid(hn_search *s, int64_t row) {
  const int32_t *text = s->text + row * s->longest;
  const int64_t n = s->n_gram, b = row / s->beams;
  for (int64_t i = 0; n > 0 && i + n <= s->length; i++)
    if (!memcmp(text + i, text + s->length - (n - 1), (size_t)(n - 1) * sizeof *text) &&
        text[i + n - 1] >= 0 && text[i + n - 1] < s->words)
      s->score[text[i + n - 1]] = -FLT_MAX;
  const hone_tensor *words = hn_search_in(s, HN_SEARCH_WORDS),
                    *begin = at_prompt(s) ? hn_search_in(s, HN_SEARCH_FIRST_WORDS) : NULL;
  const int32_t *allowed = words ? words->data : NULL, *at_first = begin ? begin->data : NULL;
  for (int64_t w = 0; w < s->words && (allowed || at_first); w++)
    if ((allowed && !allowed[w]) || (at_first && !at_first[b * s->words + w])) s->score[w] = -FLT_MAX;
  if (s->length < s->shortest && s->end >= 0 && s->end < s->words) s->score[s->end] = -FLT_MAX;
}

/* Words of the text lose: a score above 0 is divided by the penalty, another multiplied. */
static void penalise(hn_search *s, int64_t row) {
  memset(s->met, 0, (size_t)s->words);
  for (int64_t i = 0; i < s->length && s->penalty != 1.0f; i++) {
    const int32_t w = s->text[row * s->longest + i];
    if (w < 0 || w >= s->words || s->met[w]) continue;
    s->met[w] = 1;
    s->score[w] = s->score[w] < 0 ? s->score[w] * s->penalty : s->score[w] / s->penalty;
  }
}

void hn_search_rule(hn_search *s, int64_t row) {
  penalise(s, row);
  forbid(s, row);
  for (int64_t w = 0; w < s->words && s->temperature > 0; w++) s->score[w] /= s->temperature;
  if (s->times.on) hn_search_times_rule(s, row);
}

hone_status hn_search_pick(const hn_search *s, const hone_tensor *t, int64_t halves, int64_t had,
                           const int32_t *parent, int64_t share, hone_tensor *out, hone_error *error) {
  const int64_t rows = s->batch * s->beams;
  out->desc = t->desc;
  out->desc.dim[halves > 1] = rows;
  hone_desc_set_layout(&out->desc, HONE_LAYOUT_ROW_MAJOR, 0);
  const int64_t bytes = hone_desc_bytes(&out->desc);
  const hone_status status = hn_budget_alloc(s->budget, bytes, &out->data, error);
  const size_t row = rows ? (size_t)(bytes / (halves * rows)) : 0;
  for (int64_t half = 0; half < halves && !status && row; half++)
    for (int64_t r = 0; r < rows; r++) {
      const int64_t from = (parent ? parent[r] : r) / share;
      memcpy((char *)out->data + (size_t)(half * rows + r) * row,
             (const char *)t->data + (size_t)(half * had + from) * row, row);
    }
  return status;
}

hone_status hn_search_go_on(hn_search *s, const int32_t *parent, hone_error *error) {
  const int64_t rows = s->batch * s->beams, had = rows_now(s), halves = s->encoder ? 1 : 2;
  const int rank = s->encoder ? 4 : 5;
  bool same = had == rows;
  for (int64_t r = 0; r < rows && same && parent; r++) same = parent[r] == r;
  hone_status status = had == rows || !s->encoder ? HONE_OK : hn_search_spread(s, error);
  for (uint32_t i = 0; i < s->grows && !status; i++) {
    hone_tensor *made = &s->made[i + 1];
    hn_budget_release(s->budget, &s->state[i]);
    if (made->desc.rank != rank || made->desc.dim[halves > 1] != had)
      return hn_fail(error, HONE_ERROR_INPUT,
                     "output %u of the decoder is not of the form [%sbatch, heads, length, size]", i + 1,
                     s->encoder ? "" : "2, ");
    if (same) {
      s->state[i] = *made;
      made->data = NULL;
      continue;
    }
    status = hn_search_pick(s, made, halves, had, parent, had == rows ? 1 : s->beams, &s->state[i], error);
    hn_budget_release(s->budget, made);
  }
  return status;
}

void hn_search_end(hn_search *s) {
  for (uint32_t i = 0; i <= s->pasts; i++) {
    if (s->state && i < s->pasts) hn_budget_release(s->budget, &s->state[i]);
    if (s->made) hn_budget_release(s->budget, &s->made[i]);
  }
  for (int i = 0; i < PASTS; i++) hn_budget_release(s->budget, &s->fed[i]);
  hn_free(s->mask);
  hn_free(s->position);
  hn_free(s->score);
  hn_free(s->met);
  hn_free(s->made);
  hn_free(s->state);
}
