/* Steps as the depthwise kernels see them. */
#ifndef HN_CUDA_PRODUCT_DEPTHWISE_H
#define HN_CUDA_PRODUCT_DEPTHWISE_H

#include "backends/tactic.h"
#include "optimize/step/conv_attr.h"

/* One filter a channel, of one or two dimensions, channels-last, with constant weights and an epilogue that
 * can be generated. */
bool hn_cuda_depthwise_of(const hone_step *s, hn_conv_attr *a, hone_reason *why);

/* A constant bias is where the sums begin; any other is the epilogue's. Which input that one is, or
 * HN_CUDA_NO_BIAS. */
int hn_cuda_depthwise_bias(const hone_step *s);

/* f32 [channels in blocks of `block`][taps + 1][block]: the weights by taps, zeros behind the channels; the
 * last row is the bias that sums begin with. */
hone_status hn_cuda_depthwise_weights(const hone_step *s, const hn_conv_attr *a, int64_t block, float *to,
                                      hone_error *error);

#endif
