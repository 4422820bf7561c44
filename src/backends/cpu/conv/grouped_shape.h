/* What a convolution with groups, of one or two dimensions, over channels-last tensors is. */
#ifndef HN_CPU_CONV_GROUPED_SHAPE_H
#define HN_CPU_CONV_GROUPED_SHAPE_H

#include "backends/cpu/step/step.h"
#include "optimize/step/conv_attr.h"

typedef struct hn_grouped_shape {
  int64_t batch, groups, cin, cout;                                 /* cin, cout: of a group */
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* height, width */
  int64_t in_batch, in_row, in_pixel;                               /* floats from one to the next */
  hn_view y;
} hn_grouped_shape;

/* False with a reason for one group, depthwise convolutions and volumes. */
bool hn_grouped_shape_of(const hn_conv_attr *a, hn_grouped_shape *shape, hone_reason *why);

#endif
