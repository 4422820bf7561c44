/* Quantised networks with one thing wrong, for tests of who finds it. Everything asserts. */
#ifndef HN_TESTS_QUANTIZE_BROKEN_H
#define HN_TESTS_QUANTIZE_BROKEN_H

#include "net.h"

enum { BROKEN_CHANNELS = 8 };

/* x [1,3,12,12] -> so many convolutions of 8 channels, each with a Relu -> GlobalAveragePool -> Flatten ->
 * Gemm 5 -> y. The weights of the first channel of the one at `wide` are larger by `factor`, and Clip in
 * place of its Relu keeps its values where the others' are. */
hn_model *chain_network(int convolutions, int wide, float factor);

/* The k-th node of this type. */
hone_node *nth(const hn_model *m, const char *op_type, int k);
/* The QuantizeLinear of what the k-th convolution's layer ends in. */
hone_node *rounding_of(const hn_model *m, int k);
/* The scale of that. */
void scale_by(const hn_model *m, int k, float factor);
/* Codes of all channels of the k-th convolution under their largest scale. */
void share_scale(const hn_model *m, int k);

#endif
