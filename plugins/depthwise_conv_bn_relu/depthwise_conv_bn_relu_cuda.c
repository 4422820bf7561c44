/* How the kernel for the GPU is launched: a thread for each four results of a line. */
#include "depthwise_conv_bn_relu_op.h"

#include "../depthwise.h"
#include <hone/cuda.h>

typedef struct depthwise_args { /* the same as in depthwise_conv_bn_relu_cuda.cu */
  const void *x, *w;
  void *y;
  long long channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], quads, all;
} depthwise_args;

hone_status depthwise_conv_bn_relu_cuda(const depthwise_conv_bn_relu_attrs *attrs, const hone_step_run *run,
                                        const char *text, hone_error *error) {
  depthwise_sizes s;
  depthwise_sizes_of(run->step->input[0].desc.dim, run->step->input[1].desc.dim,
                     attrs->n_strides ? attrs->strides : NULL, attrs->n_pads ? attrs->pads : NULL,
                     attrs->n_dilations ? attrs->dilations : NULL, &s);
  depthwise_args a = {
      .x = run->in[0], .w = run->blob, .y = run->out[0], .channels = s.c, .quads = (s.out[1] + 3) / 4};
  for (int i = 0; i < 2; i++) {
    a.in[i] = s.in[i], a.out[i] = s.out[i], a.kernel[i] = s.kernel[i], a.stride[i] = s.stride[i];
    a.pad[i] = s.pad[i], a.dilation[i] = s.dilation[i];
  }
  a.all = s.n * s.c * s.out[0] * a.quads;
  if (!a.all) return HONE_OK;
  const hone_cuda_kernel kernel = {HONE_DESC_HEAD(hone_cuda_kernel),
                                   .head = run->step->output[0].desc.dtype == HONE_DTYPE_F16
                                               ? "#define LOAD hn_load_f16\n#define STORE hn_store_f16\n"
                                               : "#define LOAD hn_load_f32\n#define STORE hn_store_f32\n",
                                   .text = text,
                                   .entry = "depthwise",
                                   .grid = {(uint32_t)((a.all + 255) / 256), 1, 1},
                                   .threads = 256};
  return hone_cuda_launch(run, &kernel, &a, sizeof a, error);
}
