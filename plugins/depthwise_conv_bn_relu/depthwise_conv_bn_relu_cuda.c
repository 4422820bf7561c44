/* How the kernels for the GPU are launched: a thread for each four results of a line, or of several
 * lines. */
#include "depthwise_conv_bn_relu_op.h"

#include "../depthwise.h"
#include <hone/cuda.h>
#include <stdio.h>
#include <string.h>

typedef struct depthwise_args { /* the same as in depthwise_conv_bn_relu_cuda.cu */
  const void *x, *w;
  void *y;
  long long channels, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], quads, strips, lines, all,
      aligned;
} depthwise_args;

/* Result lines of a thread: few enough that there are threads for the whole device, and whole groups of six
 * input lines where windows step by 1. */
static long long lines_of(const depthwise_sizes *s, long long quads) {
  enum { ENOUGH = 200000, CHOICES = 4 };
  static const long long lines[2][CHOICES] = {{64, 16, 10, 4}, {16, 8, 5, 2}};
  const long long *of = lines[s->stride[0] == 2];
  int i = 0;
  while (i < CHOICES - 1 && s->n * s->c * ((s->out[0] + of[i] - 1) / of[i]) * quads < ENOUGH) i++;
  return of[i];
}

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
  a.lines = lines_of(&s, a.quads);
  a.strips = (s.out[0] + a.lines - 1) / a.lines;
  const bool half = run->step->output[0].desc.dtype == HONE_DTYPE_F16;
  /* The strips' kernel counts in 32 bits, and reads something for what lies beside the picture. */
  const bool strip = s.kernel[0] == 3 && s.kernel[1] == 3 && s.dilation[0] == 1 && s.dilation[1] == 1 &&
                     s.stride[0] == s.stride[1] && s.stride[0] <= 2 && s.in[0] > 0 && s.in[1] > 0 &&
                     s.in[0] < 1 << 30 && s.in[1] < 1 << 28 && s.n * s.c * a.strips * a.quads < 1ll << 31;
  a.all = s.n * s.c * (strip ? a.strips : s.out[0]) * a.quads;
  if (!a.all) return HONE_OK;
  a.aligned = (uintptr_t)run->in[0] % 16 == 0 && (uintptr_t)run->out[0] % 16 == 0;
  const bool lines = strip && a.aligned && s.stride[0] == 1 && s.pad[1] == 1 && s.out[1] == s.in[1] &&
                     s.in[1] % (32 * 4) == 0;
  char head[160];
  snprintf(head, sizeof head, "#define LOAD hn_load_%s\n#define STORE hn_store_%s\n%s", half ? "f16" : "f32",
           half ? "f16" : "f32", half ? "#define HALF\n" : "");
  if (strip) {
    const size_t n = strlen(head);
    snprintf(head + n, sizeof head - n, "#define STEP %d\n%s", (int)s.stride[0],
             lines ? "#define LINES\n" : "");
  }
  const uint32_t threads = lines ? 128 : 256;
  const hone_cuda_kernel kernel = {HONE_DESC_HEAD(hone_cuda_kernel),
                                   .head = head,
                                   .text = text,
                                   .entry = lines   ? "depthwise_lines"
                                            : strip ? "depthwise_strip"
                                                    : "depthwise",
                                   .grid = {(uint32_t)((a.all + threads - 1) / threads), 1, 1},
                                   .threads = threads};
  return hone_cuda_launch(run, &kernel, &a, sizeof a, error);
}
