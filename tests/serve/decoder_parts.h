/* What the files that build decoders for tests share. */
#ifndef HN_TESTS_SERVE_DECODER_PARTS_H
#define HN_TESTS_SERVE_DECODER_PARTS_H

#include "decoder.h"

typedef struct decoder_builder {
  hn_model *m;
  const decoder_size *z;
  int64_t d; /* numbers of a token */
  unsigned seed;
  int64_t batch, past; /* symbols */
  hn_value *cos, *sin; /* [positions, half], what is turned; NULL: nothing */
  hn_value **cache;    /* [layers][2] */
  hn_value *lengths,
      *total;            /* GroupQueryAttention's; TensorScatter: where it writes, how many keys there are */
  hn_value *places;      /* [batch, tokens] */
  hn_value *bias, *seen; /* [batch, 1, tokens, keys]; NULL: none */
} decoder_builder;

hn_value *decoder_op(decoder_builder *b, const char *type, hn_value *x, hn_value *y);
hn_value *decoder_to(decoder_builder *b, hn_value *x, hone_dtype type);
hn_value *decoder_linear(decoder_builder *b, hn_value *x, int64_t rows, int64_t columns);
/* An operator with several outputs. */
hone_node *decoder_node(decoder_builder *b, const char *type, const char *domain, hn_value *const *in,
                        uint32_t n, uint32_t n_out);

/* ---- decoder_own.c: attention of ONNX's own operators */
/* What all layers ask of masks and positions. ids [batch, tokens]. */
void decoder_own_begin(decoder_builder *b, hn_value *ids);
/* q, k, v: [batch, tokens, numbers]. Before the last product. */
hn_value *decoder_own_attention(decoder_builder *b, hn_value *q, hn_value *k, hn_value *v,
                                hn_value *const past[2], hn_value *present[2]);

#endif
