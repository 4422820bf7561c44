/* Poolings' geometry in any layout, always as three spatial dimensions. */
#ifndef HN_CUDA_POOLING_WINDOW_H
#define HN_CUDA_POOLING_WINDOW_H

#include <hone/plugin.h>

typedef struct hn_cuda_grid { /* a tensor [n][c][3 spatial]; distances in elements */
  int64_t n, c, size[3];
  int64_t n_step, c_step, step[3];
} hn_cuda_grid;

typedef struct hn_cuda_window {
  hn_cuda_grid x, y;
  int64_t kernel[3], stride[3], dilation[3], begin[3], end[3];
} hn_cuda_window;

/* False unless the rank is 3 to 5. */
bool hn_cuda_grid_of(const hone_tensor_desc *d, hn_cuda_grid *g, hone_reason *why);
/* kernel_shape, strides, dilations, pads and auto_pad of a pooling. */
bool hn_cuda_window_of(const hone_step *s, hn_cuda_window *w, hone_reason *why);

#endif
