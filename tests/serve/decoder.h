/* Small decoders with seeded weights, of the forms that hone serve generates with. Everything asserts. */
#ifndef HN_TESTS_SERVE_DECODER_H
#define HN_TESTS_SERVE_DECODER_H

#include "net.h"

typedef struct decoder_size {
  int64_t vocabulary, heads, kv_heads, size, layers; /* heads * size numbers a token */
  int64_t positions;                                 /* that the rotary table has */
  bool lengths; /* seqlens_k and total_sequence_length are inputs, no mask */
  bool places;  /* position_ids and a table of positions, nothing is turned */
  bool halves;  /* f16 */
  bool single;  /* the batch is one */
  unsigned seed;
} decoder_size;

/* input_ids [batch, tokens] -> logits, present.N.key, present.N.value; GroupQueryAttention. */
hn_model *decoder_build(const decoder_size *z);

#endif
