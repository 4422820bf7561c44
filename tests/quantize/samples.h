/* Calibration sets and networks for the tests of hone quantize. Everything asserts. */
#ifndef HN_TESTS_QUANTIZE_SAMPLES_H
#define HN_TESTS_QUANTIZE_SAMPLES_H

#include "net.h"

#include <hone/quantize.h>

/* Numbers that are roughly normal: mean 0, deviation 1. */
float normal(unsigned *seed);
/* Writes seeded normal numbers, `outliers` of a million times as large as `factor` says, as $TMPDIR/NAME. */
const char *write_samples(const char *name, int32_t rank, const int64_t *dims, unsigned seed, int outliers,
                          float factor);

/* x [N,3,12,12] -> Conv 8 -> Relu -> depthwise Conv -> Relu -> Conv 8 -> Add with the first Relu -> Relu ->
 * MaxPool -> GlobalAveragePool -> Flatten -> Gemm 5 -> y. `spread`: the channels of the first two
 * convolutions differ by this factor from one to the next, up and down (1: not), which the following one
 * undoes. */
hn_model *residual_network(int64_t batch, float spread);

typedef struct quantised {
  hone_model *model;
  hone_quantize_report report;
} quantised;
quantised quantise(hone_model *model, const hone_quantize_options *options);
void quantised_free(quantised *q);
const hone_quantize_layer *layer_of(const quantised *q, const char *op_type, int which);

#endif
