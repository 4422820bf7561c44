/* What GreedySearch, Sampling, BeamSearch and WhisperBeamSearch of com.microsoft share: a decoder's graph is
 * run for a prompt and then for a token at a time, with what it made of keys and values. A row is a text, or
 * of a beam search one of its beams.
 *
 * A decoder alone takes input_ids, position_ids and attention_mask (i32) and the pasts [2, rows, heads,
 * length, size], and gives logits [rows, length, words] and the presents. Of an encoder's decoder, see
 * search_encoder.c. */
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
  HN_SEARCH_BEGIN, /* words that a text begins with (Whisper) */
  HN_SEARCH_N_IN,
  HN_SEARCH_NOWHERE = 255,
  HN_SEARCH_PASTS = 3
};

/* model_type: a decoder alone, one behind an encoder of text, or of sound. */
enum { HN_SEARCH_ALONE, HN_SEARCH_T5, HN_SEARCH_WHISPER };

/* Words of Whisper: the first of those that are moments, and some that say what follows. */
typedef struct hn_search_times {
  bool on;
  int64_t first, none, model, start, translate, transcribe;
} hn_search_times;

typedef struct hn_search {
  const hone_node *node;
  const hone_tensor *const *in; /* of the node */
  const uint8_t *place;         /* [HN_SEARCH_N_IN] among them */
  hn_scope *scope;
  hn_arena *keep;
  hn_budget *budget;
  const struct hn_graph *first, *body, *encoder; /* encoder NULL: a decoder alone */
  int64_t batch, beams, prompt, longest, shortest, words, length;
  int64_t end, pad, n_gram;
  float penalty, temperature; /* temperature 0: none */
  hn_search_times times;
  uint32_t lead, grows,
      pasts;          /* of the decoder's inputs those before the pasts, and pasts that presents follow */
  bool audio, whole;  /* the encoder takes sound, the decoder a whole text each time */
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

/* ---- search_encoder.c */
/* Checks what an encoder and its decoder take and give. */
hone_status hn_search_encoder_begin(hn_search *s, hone_error *error);
/* Runs the encoder: logits and presents in s->made where it gives them, the rest in s->state and s->fed. */
hone_status hn_search_encode(hn_search *s, hone_error *error);
/* What the encoder made of a text is that of each of its beams. */
hone_status hn_search_spread(hn_search *s, hone_error *error);

/* ---- search_times.c */
hone_status hn_search_times_begin(hn_search *s, hone_error *error);
void hn_search_times_rule(hn_search *s, int64_t row);

static inline const hone_tensor *hn_search_in(const hn_search *s, uint32_t i) {
  return s->place[i] < s->node->n_in ? s->in[s->place[i]] : NULL; /* nowhere: more than any node has */
}

/* A graph of the node; NULL: it has none. */
const struct hn_graph *hn_search_graph(const hn_search *s, const char *attr);

/* Rows of `t`, which has `had` of them behind `halves` halves, put together anew: out's row r is row
 * parent[r] / share. */
hone_status hn_search_pick(const hn_search *s, const hone_tensor *t, int64_t halves, int64_t had,
                           const int32_t *parent, int64_t share, hone_tensor *out, hone_error *error);

/* Input `at` of the node, which must hold one number of a type; HONE_OK where it is left out. */
hone_status hn_search_one(const hn_search *s, uint32_t at, hone_dtype dtype, hone_error *error);

#endif
