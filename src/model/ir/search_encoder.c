/* Searches with an encoder: it runs once, for text (T5: ids and a mask) or sound (Whisper), and may begin the
 * decoder's work. Its outputs are the keys and values of cross attention, before which stand, where it takes
 * the words that a text begins with, logits, encoder_hidden_states and the decoder's first keys and values.
 *
 * The decoder takes input_ids, of text the mask, encoder_hidden_states if it likes, and the pasts [rows,
 * heads, length, size]: those of self attention, which presents follow, and those of cross attention, which
 * stay. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "model/ir/search.h"

enum { WORDS, SEEN, STATES }; /* what the decoder takes before pasts; of sound there is no SEEN */

static uint32_t place_of_states(const hn_search *s) { return s->audio ? STATES - 1 : STATES; }

static bool begins(const hn_search *s) { return s->audio || s->encoder->inputs.len > STATES; }

static hone_status graphs(hn_search *s, hone_error *error) {
  const hn_graph *e = s->encoder, *d = s->body;
  const size_t least = place_of_states(s), n_in = d ? d->inputs.len : 0, n_out = d ? d->outputs.len : 0;
  if (n_out < 3 || n_out % 2 == 0 || n_in < 2 * (n_out - 1) + least || n_in > 2 * (n_out - 1) + least + 1)
    return hn_fail(error, HONE_ERROR_INPUT, "the decoder of %s has %zu inputs and %zu outputs",
                   s->node->op_type, n_in, n_out);
  s->grows = (uint32_t)n_out - 1, s->pasts = 2 * s->grows, s->lead = (uint32_t)n_in - s->pasts;
  const size_t takes = e ? e->inputs.len : 0, gives = e ? e->outputs.len : 0;
  if (!e || takes < 2 || takes > (s->audio ? 2 : 3) ||
      gives != (begins(s) ? 2 + s->pasts : s->pasts - s->grows))
    return hn_fail(error, HONE_ERROR_INPUT, "the encoder of %s has %zu inputs and %zu outputs",
                   s->node->op_type, takes, gives);
  if (!begins(s) && s->lead > least)
    return hn_fail(error, HONE_ERROR_INPUT, "the encoder of %s gives no encoder_hidden_states",
                   s->node->op_type);
  for (uint32_t i = s->lead; i < s->lead + s->grows; i++) {
    const hone_tensor_desc *p = &d->inputs.ptr[i]->desc;
    if (p->rank != 4 || p->dim[1] < 1 || p->dim[3] < 1)
      return hn_fail(error, HONE_ERROR_INPUT,
                     "input %u of the decoder is not of the form [batch, heads, length, size]", i);
  }
  const hone_tensor_desc *words = &d->inputs.ptr[WORDS]->desc;
  s->whole = words->rank != 2 || words->dim[1] != 1;
  return HONE_OK;
}

hone_status hn_search_encoder_begin(hn_search *s, hone_error *error) {
  const hone_tensor *ids = hn_search_in(s, HN_SEARCH_IDS), *words = hn_search_in(s, HN_SEARCH_BEGIN),
                    *mask = hn_search_in(s, HN_SEARCH_MASK);
  s->audio = hone_node_int(s->node, "model_type", 0) == HN_SEARCH_WHISPER;
  s->encoder = hn_search_graph(s, "encoder"), s->first = s->body;
  const hone_status status = graphs(s, error);
  if (status) return status;
  if (!ids || ids->desc.rank != (s->audio ? 3 : 2) || (!s->audio && ids->desc.dtype != HONE_DTYPE_I32))
    return hn_fail(error, HONE_ERROR_INPUT, "%s takes input %s", s->node->op_type,
                   s->audio ? "features of [batch, size, length]" : "ids of i32 [batch, length]");
  s->batch = ids->desc.dim[0], s->prompt = 1;
  if (words) {
    if (words->desc.dtype != HONE_DTYPE_I32 || words->desc.rank != 2 || words->desc.dim[0] != s->batch ||
        words->desc.dim[1] < 1)
      return hn_fail(error, HONE_ERROR_INPUT, "decoder_input_ids are not i32 [%lld, length]",
                     (long long)s->batch);
    s->prompt = words->desc.dim[1];
  }
  if (mask && !s->audio &&
      (mask->desc.dtype != HONE_DTYPE_I32 || hone_desc_count(&mask->desc) != hone_desc_count(&ids->desc)))
    return hn_fail(error, HONE_ERROR_INPUT, "attention_mask is not i32 of the form of input_ids");
  return HONE_OK;
}

/* Without a mask the padding before a text is hidden: what follows may end with a word that is padding, too.
 */
static hone_status make_mask(hn_search *s, hone_error *error) {
  const hone_tensor *ids = hn_search_in(s, HN_SEARCH_IDS), *given = hn_search_in(s, HN_SEARCH_MASK);
  hone_tensor *mask = &s->fed[SEEN];
  mask->desc = hone_desc(HONE_DTYPE_I32, 2, ids->desc.dim);
  const int64_t bytes = hone_desc_bytes(&mask->desc), n = ids->desc.dim[1];
  const hone_status status = hn_budget_alloc(s->budget, bytes, &mask->data, error);
  if (status) return status;
  if (given) {
    memcpy(mask->data, given->data, (size_t)bytes);
    return HONE_OK;
  }
  const int32_t *word = ids->data;
  int32_t *seen = mask->data;
  for (int64_t b = 0; b < s->batch; b++) {
    bool text = false;
    for (int64_t i = 0; i < n; i++) {
      text = text || word[b * n + i] != s->pad;
      seen[b * n + i] = text;
    }
  }
  return HONE_OK;
}

/* The words that texts begin with. */
static hone_status make_words(hn_search *s, hone_tensor *words, hone_error *error) {
  words->desc = hone_desc(HONE_DTYPE_I32, 2, (const int64_t[]){s->batch, s->prompt});
  const hone_status status = hn_budget_alloc(s->budget, hone_desc_bytes(&words->desc), &words->data, error);
  for (int64_t b = 0; b < s->batch && !status; b++)
    memcpy((int32_t *)words->data + b * s->prompt, s->text + b * s->beams * s->longest,
           (size_t)s->prompt * sizeof *s->text);
  return status;
}

hone_status hn_search_encode(hn_search *s, hone_error *error) {
  const bool first = begins(s);
  const size_t n = s->encoder->outputs.len;
  hone_tensor words = {.desc = {.rank = -1}}, *made = hn_calloc(n, sizeof *made);
  if (!made) return hn_fail_memory(error, n * sizeof *made, s->node->op_type);
  hone_status status = s->audio ? HONE_OK : make_mask(s, error);
  if (!status && first) status = make_words(s, &words, error);
  const hone_tensor *args[] = {hn_search_in(s, HN_SEARCH_IDS), s->audio ? &words : &s->fed[SEEN], &words};
  if (!status)
    status = hn_eval_graph(s->encoder, args, made, s->scope, s->keep, s->budget, NULL, NULL, error);
  for (size_t i = 0; i < n && !status; i++) {
    const size_t at = first ? i : i + 2 + s->grows; /* among all that an encoder may give */
    hone_tensor *to = at == 0             ? &s->made[0]
                      : at == 1           ? &s->fed[place_of_states(s)]
                      : at < 2 + s->grows ? &s->made[at - 1]
                                          : &s->state[at - 2];
    if (at == 1 && s->lead <= place_of_states(s)) continue; /* nobody asks for the states */
    *to = made[i];
    made[i].data = NULL;
  }
  for (size_t i = 0; i < n; i++) hn_budget_release(s->budget, &made[i]);
  hn_budget_release(s->budget, &words);
  hn_free(made);
  return status;
}

static hone_status spread(const hn_search *s, hone_tensor *t, const char *what, hone_error *error) {
  if (t->desc.rank < 1 || t->desc.dim[0] != s->batch)
    return hn_fail(error, HONE_ERROR_INPUT, "%s of the encoder do not begin with the batch of %lld", what,
                   (long long)s->batch);
  hone_tensor out = {.desc = {.rank = -1}};
  const hone_status status = hn_search_pick(s, t, 1, s->batch, NULL, s->beams, &out, error);
  hn_budget_release(s->budget, t);
  *t = out;
  return status;
}

hone_status hn_search_spread(hn_search *s, hone_error *error) {
  hone_status status = HONE_OK;
  for (uint32_t i = 1; i < s->lead && !status; i++) status = spread(s, &s->fed[i], "states", error);
  for (uint32_t i = s->grows; i < s->pasts && !status; i++)
    status = spread(s, &s->state[i], "keys and values", error);
  return status;
}
