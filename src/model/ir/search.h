/* What GreedySearch, Sampling and BeamSearch of com.microsoft share, of decoders alone (model_type 0): a
 * decoder's graph is run for a prompt and then for a token at a time, with what it made of keys and values.
 * The decoder takes input_ids, position_ids and attention_mask (i32) and the pasts [2, rows, heads, length,
 * size], and gives logits [rows, length, words] and the presents. A row is a text, or of a beam search one of
 * its beams. */
#ifndef HN_MODEL_IR_SEARCH_H
#define HN_MODEL_IR_SEARCH_H

#include "model/ir/eval.h"

/* Inputs that all have, wherever they lie among those of the node, and how many of the decoder are no pasts.
 */
enum {
  HN_SEARCH_IDS,
  HN_SEARCH_LONGEST,
  HN_SEARCH_SHORTEST,
  HN_SEARCH_PENALTY,
  HN_SEARCH_WORDS,
  HN_SEARCH_FIRST_WORDS,
  HN_SEARCH_MASK,
  HN_SEARCH_N_IN,
  HN_SEARCH_PASTS = 3
};

typedef struct hn_search {
  const hone_node *node;
  const hone_tensor *const *in; /* of the node */
  const uint8_t *place;         /* [HN_SEARCH_N_IN] among them */
  hn_scope *scope;
  hn_arena *keep;
  hn_budget *budget;
  const struct hn_graph *first, *body;
  int64_t batch, beams, prompt, longest, shortest, words, length;
  int64_t end, pad, n_gram;
  float penalty;
  uint32_t pasts;
  int32_t *text;      /* [batch * beams][longest] */
  int32_t *mask;      /* [batch][prompt] of the prompt */
  int32_t *position;  /* [batch] of the next token */
  float *score;       /* [words] of one row */
  uint8_t *met;       /* [words] of one row, for the penalty */
  hone_tensor *made;  /* of the decoder: logits, then presents */
  hone_tensor *state; /* pasts */
  hone_tensor fed[HN_SEARCH_PASTS];
} hn_search;

/* Checks what the node was given. s->beams is the caller's. */
hone_status hn_search_begin(hn_search *s, hone_error *error);

/* Memory, among it that of *text (i32 [batch * beams, longest]), which gets the prompts and is the caller's.
 */
hone_status hn_search_prepare(hn_search *s, hone_tensor *text, hone_error *error);

/* Runs the decoder, of the prompt one row for each text, and makes s->score. */
hone_status hn_search_step(hn_search *s, hone_error *error);

/* The scores of words that may follow a row, as the decoder gave them. */
void hn_search_read(hn_search *s, int64_t row);

/* What the node says of words: a penalty for those that the row has, and what must not come. */
void hn_search_rule(hn_search *s, int64_t row);

/* The presents become pasts; parent[row] is the row that a row goes on from, NULL: itself. */
hone_status hn_search_go_on(hn_search *s, const int32_t *parent, hone_error *error);

void hn_search_end(hn_search *s);

static inline const hone_tensor *hn_search_in(const hn_search *s, uint32_t i) {
  return s->place[i] < s->node->n_in ? s->in[s->place[i]] : NULL;
}

/* Input `at` of the node, which must hold one number of a type; HONE_OK where it is left out. */
hone_status hn_search_one(const hn_search *s, uint32_t at, hone_dtype dtype, hone_error *error);

#endif
