/* What reference, kernels and launch know of a step: sizes, and the numbers of a channel. */
#ifndef DEPTHWISE_H
#define DEPTHWISE_H

#include <hone/kernel.h>

enum {
  DEPTHWISE_X,
  DEPTHWISE_W,
  DEPTHWISE_B,
  DEPTHWISE_SCALE,
  DEPTHWISE_BETA,
  DEPTHWISE_MEAN,
  DEPTHWISE_VAR
};

typedef struct depthwise_sizes {
  int64_t n, c, in[2], out[2], kernel[2], stride[2], pad[2], dilation[2], taps;
} depthwise_sizes;

/* In the order of lists: strides, pads, dilations; NULL: their defaults. */
static inline void depthwise_sizes_of(const int64_t *x, const int64_t *w, const int64_t *strides,
                                      const int64_t *pads, const int64_t *dilations, depthwise_sizes *s) {
  *s = (depthwise_sizes){.n = x[0], .c = x[1], .taps = w[2] * w[3]};
  for (int i = 0; i < 2; i++) {
    s->in[i] = x[2 + i];
    s->kernel[i] = w[2 + i];
    s->stride[i] = strides ? strides[i] : 1;
    s->dilation[i] = dilations ? dilations[i] : 1;
    s->pad[i] = pads ? pads[i] : 0;
    const int64_t after = pads ? pads[2 + i] : 0, reach = s->dilation[i] * (s->kernel[i] - 1) + 1;
    const int64_t room = s->in[i] + s->pad[i] + after - reach;
    s->out[i] = room < 0 ? 0 : room / s->stride[i] + 1;
  }
}

/* A channel's numbers: taps, then what is added to their sum, its factor, and what is added last. A factor so
 * large that it shows what the sum lost among the denormal numbers, or so small that it is one, has a power
 * of 2 apart: such channels are summed in f64. */
enum { DEPTHWISE_SHIFT, DEPTHWISE_FACTOR, DEPTHWISE_LAST, DEPTHWISE_POWER, DEPTHWISE_MORE };

/* data[i], type[i]: those of input i; NULL where it is left out. */
static inline void depthwise_channel(const void *const *data, const hone_dtype *type, int64_t taps,
                                     float epsilon, int64_t c, float *to) {
#define NUMBER(i, otherwise) (data[i] ? hone_element(data[i], type[i], c) : (otherwise))
  for (int64_t t = 0; t < taps; t++)
    to[t] = (float)hone_element(data[DEPTHWISE_W], type[DEPTHWISE_W], c * taps + t);
  to += taps;
  to[DEPTHWISE_SHIFT] = (float)(NUMBER(DEPTHWISE_B, 0) - NUMBER(DEPTHWISE_MEAN, 0));
  const double factor = data[DEPTHWISE_SCALE]
                            ? NUMBER(DEPTHWISE_SCALE, 1) / sqrt(NUMBER(DEPTHWISE_VAR, 1) + (double)epsilon)
                            : 1;
  const double size = fabs(factor), power = size > 0x1p24 && size < INFINITY ? 0x1p100
                                            : size > 0 && size < 0x1p-100    ? 0x1p-100
                                                                             : 1;
  to[DEPTHWISE_FACTOR] = (float)(factor / power);
  to[DEPTHWISE_LAST] = (float)NUMBER(DEPTHWISE_BETA, 0);
  to[DEPTHWISE_POWER] = (float)power;
#undef NUMBER
}

static inline bool depthwise_constant(const hone_step *s) {
  for (uint32_t i = 1; i < s->n_inputs; i++)
    if (s->input[i].desc.dtype != HONE_DTYPE_NONE && !s->input[i].constant) return false;
  return true;
}

/* Lines of the input that one line of the output needs, cut by their stride so that every tap reads numbers
 * in a row: [slots][stride][length], and one of
 * zeros behind them. Some are brought in advance: what was just written is slow to read. */
static inline int64_t depthwise_length(const depthwise_sizes *s) {
  return s->out[1] + s->dilation[1] * (s->kernel[1] - 1) / s->stride[1] + 32;
}
static inline int64_t depthwise_lines(const depthwise_sizes *s) {
  return s->dilation[0] * (s->kernel[0] - 1) + 1;
}
static inline int64_t depthwise_slots(const depthwise_sizes *s) { return depthwise_lines(s) + 8; }

#endif
