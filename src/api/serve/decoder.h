/* What generation asks of a model: which inputs are tokens, lengths and caches, and which output says what
 * comes next. */
#ifndef HN_API_SERVE_DECODER_H
#define HN_API_SERVE_DECODER_H

#include "model/ir/graph.h"

/* How the keys and values of what was read before come and go. */
typedef enum hn_decoder_form {
  HN_DECODER_NONE = 0,
  HN_DECODER_SLOTS, /* a row of each cache is a sequence's, which has its own length: GroupQueryAttention, or
                     * TensorScatter and Attention */
  HN_DECODER_JOINED /* new keys are joined to the end of the cache (Concat, or Attention itself), which is as
                     * long for all: shorter sequences have a hole, of which the mask tells */
} hn_decoder_form;

typedef enum hn_decoder_role {
  HN_DECODER_TOKENS = 0, /* input_ids [batch, tokens] */
  HN_DECODER_MASK,       /* attention_mask [batch, room]: its sum is the length, its width the room; joined:
                          * [batch, past + tokens], which keys there are */
  HN_DECODER_POSITIONS,  /* position_ids [batch, tokens] */
  HN_DECODER_LENGTHS,    /* [batch] the length less one */
  HN_DECODER_TOTAL,      /* one number: the room */
  HN_DECODER_FED,        /* [batch] the length before these tokens */
  HN_DECODER_ENDS,       /* [batch] the length */
  HN_DECODER_REAL,       /* [batch, 1, tokens, 1] which tokens are somebody's: of adapt.c alone */
  HN_DECODER_CACHE,      /* [batch, heads, room, size] */
  HN_DECODER_ROLES
} hn_decoder_role;

typedef struct hn_decoder_input {
  const char *name; /* of the model */
  hn_decoder_role role;
  hone_dtype dtype;
  int32_t rank;
  int64_t dim[HONE_MAX_RANK]; /* as the model says; < 0: open */
  uint32_t output;            /* of a cache: the output that hands it on */
} hn_decoder_input;

typedef struct hn_decoder {
  hn_decoder_form form;
  hn_decoder_input *in; /* [n_in] as plans have them */
  uint32_t n_in, n_out, logits;
  int64_t vocabulary; /* ids are below it; -1: a plan says how many logits there are */
  int64_t positions;  /* that the model knows; -1: any */
} hn_decoder;

/* Looks at the model. form is HN_DECODER_NONE where it is no decoder that can be served for generation, and
 * why says what is missing. Names are the model's. HONE_ERROR_MEMORY alone is an error. */
hone_status hn_decoder_find(const hn_model *model, hn_decoder *out, hone_reason *why, hone_error *error);
void hn_decoder_free(hn_decoder *d);

#endif
