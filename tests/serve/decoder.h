/* Small decoders with seeded weights, of the forms that hone serve generates with. Everything asserts. */
#ifndef HN_TESTS_SERVE_DECODER_H
#define HN_TESTS_SERVE_DECODER_H

#include "net.h"

/* How keys and values of earlier tokens come and go. */
typedef enum decoder_form {
  DECODER_GROUPED = 0, /* GroupQueryAttention writes them where they lie */
  DECODER_CONCAT,      /* Concat(past, new), as exporters of PyTorch write it, and attention in many nodes */
  DECODER_ATTENTION,   /* ONNX's Attention joins them */
  DECODER_SCATTER      /* TensorScatter, and Attention of so many keys */
} decoder_form;

/* What joined caches are asked besides. All but the first two are wrong with a hole behind a sequence. */
typedef enum decoder_way {
  DECODER_PLACES_ARE_GIVEN = 0, /* position_ids */
  DECODER_PLACES_OF_MASK,       /* its sums: no position_ids */
  DECODER_PLACES_OF_WIDTH,      /* behind as many as the cache has */
  DECODER_NO_MASK,              /* it says the width alone */
  DECODER_SLOPES_OF_WIDTH,      /* the farther, the less is a key, by its place in the cache */
  DECODER_WINDOW_OF_WIDTH       /* what is farther than some keys is not seen */
} decoder_way;

typedef struct decoder_size {
  int64_t vocabulary, heads, kv_heads, size, layers; /* heads * size numbers a token */
  int64_t positions;                                 /* that the rotary table has */
  bool lengths; /* seqlens_k and total_sequence_length are inputs, no mask */
  bool places;  /* position_ids and a table of positions, nothing is turned */
  bool halves;  /* f16 */
  bool single;  /* the batch is one */
  bool poison;  /* the last id is infinite */
  decoder_form form;
  decoder_way way;
  unsigned seed;
} decoder_size;

enum { DECODER_WINDOW = 12 };

/* input_ids [batch, tokens] -> logits, present.N.key, present.N.value. */
hn_model *decoder_build(const decoder_size *z);

#endif
