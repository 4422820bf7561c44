/* Geometry of sliding windows: convolutions and poolings. */
#ifndef HN_MODEL_OPS_WINDOW_H
#define HN_MODEL_OPS_WINDOW_H

#include "model/ops/common/op.h"

#define HN_MAX_SPATIAL 3

typedef struct hn_window {
  int32_t n; /* spatial dimensions */
  int64_t in[HN_MAX_SPATIAL], kernel[HN_MAX_SPATIAL], stride[HN_MAX_SPATIAL], dilation[HN_MAX_SPATIAL];
  int64_t pad[HN_MAX_SPATIAL],
      pad_end[HN_MAX_SPATIAL]; /* unknown (0) where auto_pad needs an unknown input size */
  int64_t out[HN_MAX_SPATIAL]; /* HONE_DIM_UNKNOWN where in or kernel is unknown */
} hn_window;

/* Reads kernel_shape, strides, dilations, pads and auto_pad; x gives the input's spatial dimensions (rank
 * known, >= 3). kernel: the weights' spatial dimensions (kernel_shape may repeat them), NULL: kernel_shape is
 * required. ceil_mode rounds the output size up, but no window starts beyond the input and its leading
 * padding. */
hone_status hn_window_init(hn_window *w, const hone_node *node, const hone_tensor_desc *x,
                           const int64_t *kernel, bool ceil_mode, hone_error *error);
/* For ConvTranspose: the same attributes, plus output_padding and output_shape; out[] is the larger side, and
 * pad[] the elements cut from it. */
hone_status hn_window_init_transposed(hn_window *w, const hone_node *node, const hone_tensor_desc *x,
                                      const int64_t *kernel, hone_error *error);
/* The same window as three spatial dimensions, with leading ones of size 1. All sizes must be known. */
hn_window hn_window_3d(const hn_window *w);
/* Output positions [*lo, *hi) of dimension d for which kernel element k meets the input. */
void hn_window_range(const hn_window *w, int32_t d, int64_t k, int64_t *lo, int64_t *hi);
/* Kernel elements [*lo, *hi) of dimension d that meet the input for output position o; *first is the input
 * position of element *lo. */
void hn_window_taps(const hn_window *w, int32_t d, int64_t o, int64_t *lo, int64_t *hi, int64_t *first);

#endif
