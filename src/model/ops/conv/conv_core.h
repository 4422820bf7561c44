/* Convolution by definition, accumulated in double: the arithmetic shared by Conv, ConvInteger, QLinearConv
 * and ConvTranspose. Integer operands are passed as float (exact up to 24 bits) and give exact sums up to
 * 2^53. */
#ifndef HN_MODEL_OPS_CONV_CORE_H
#define HN_MODEL_OPS_CONV_CORE_H

#include "model/ops/common/bulk.h"
#include "model/ops/common/window.h"

typedef struct hn_conv {
  int64_t batch, groups;
  int64_t channels, filters; /* of one group; ConvTranspose: of its input and output */
  hn_window window;          /* three-dimensional (hn_window_3d) */
} hn_conv;

/* Receives sums: acc[0..count) belong to output elements at.. of plane (n, m), m counted over all groups. */
typedef void (*hn_conv_sink)(void *arg, int64_t n, int64_t m, int64_t at, const double *acc, int64_t count);

/* x is [batch][groups * channels][in...], w is [groups * filters][channels][kernel...], both of dtype f32 or
 * f64 (that of `dtype`). Every output element goes to the sink once. */
hone_status hn_conv_forward(hone_call *call, const hn_conv *c, hone_dtype dtype, const void *x, const void *w,
                            hn_conv_sink sink, void *arg, hone_error *error);
/* w is [groups * channels][filters][kernel...]; the window is that of hn_window_init_transposed. */
hone_status hn_conv_transposed(hone_call *call, const hn_conv *c, hone_dtype dtype, const void *x,
                               const void *w, hn_conv_sink sink, void *arg, hone_error *error);

/* Checks and reads what the forward convolutions have in common (group, channels, window); any size may be
 * unknown. w_input is the index of the weights. Sets output 0's shape with the given dtype. */
hone_status hn_conv_infer(const hone_infer *io, uint32_t w_input, hone_dtype out, hone_error *error);
/* The same at run time, where everything is known. */
hone_status hn_conv_init(hn_conv *c, const hone_node *node, const hone_tensor_desc *x,
                         const hone_tensor_desc *w, hone_error *error);
/* MACs of a forward convolution, from the inferred output. */
void hn_conv_cost(const hone_infer *io, uint32_t w_input, hone_cost *cost);

/* Attributes of all forward convolutions, for their tables. */
#define HN_CONV_ATTRS                                                                                        \
  {"auto_pad", HONE_ATTR_STRING, false, 0, 0}, {"dilations", HONE_ATTR_INTS, false, 0, 0},                   \
      {"group", HONE_ATTR_INT, false, 0, 0}, {"kernel_shape", HONE_ATTR_INTS, false, 0, 0},                  \
      {"pads", HONE_ATTR_INTS, false, 0, 0}, {                                                               \
    "strides", HONE_ATTR_INTS, false, 0, 0                                                                   \
  }

#endif
