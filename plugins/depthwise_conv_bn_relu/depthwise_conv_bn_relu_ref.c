/* What DepthwiseConvBnReLU computes, in f64 and without any haste, its shapes, and what kernels take. */
#include "depthwise_conv_bn_relu_op.h"

#include "../depthwise.h"

static hone_status wrong(hone_error *error, const char *what) {
  if (error) {
    error->status = HONE_ERROR_INPUT;
    strncpy(error->what, what, sizeof error->what - 1);
  }
  return HONE_ERROR_INPUT;
}

static bool list_is(const int64_t *list, size_t n, size_t want, int64_t least) {
  for (size_t i = 0; i < n; i++)
    if (list[i] < least || list[i] > 1 << 20) return false;
  return n == 0 || n == want;
}

static void sizes_of(const depthwise_conv_bn_relu_attrs *a, const int64_t *x, const int64_t *w,
                     depthwise_sizes *s) {
  depthwise_sizes_of(x, w, a->n_strides ? a->strides : NULL, a->n_pads ? a->pads : NULL,
                     a->n_dilations ? a->dilations : NULL, s);
}

hone_status depthwise_conv_bn_relu_shape(const depthwise_conv_bn_relu_attrs *attrs, const hone_infer *io,
                                         hone_error *error) {
  const hone_tensor_desc *x = io->input[DEPTHWISE_X], *w = io->input[DEPTHWISE_W];
  hone_tensor_desc *y = io->output[0];
  if (!list_is(attrs->strides, attrs->n_strides, 2, 1) || !list_is(attrs->pads, attrs->n_pads, 4, 0) ||
      !list_is(attrs->dilations, attrs->n_dilations, 2, 1))
    return wrong(error, "strides and dilations are two numbers above 0, pads four");
  if (x->rank < 0 || w->rank < 0) {
    if (y) y->rank = -1;
    return HONE_OK;
  }
  if (x->rank != 4 || w->rank != 4) return wrong(error, "x is not [n, c, h, w], or w not [c, 1, kh, kw]");
  bool known = true;
  for (int i = 0; i < 4; i++) known = known && x->dim[i] >= 0 && w->dim[i] >= 0;
  if (known && (w->dim[0] != x->dim[1] || w->dim[1] != 1 || !w->dim[2] || !w->dim[3]))
    return wrong(error, "w is not [c, 1, kh, kw] of the channels of x");
  for (uint32_t i = DEPTHWISE_B; i < io->n_inputs; i++)
    if (io->input[i] && io->input[i]->rank >= 0 &&
        (io->input[i]->rank != 1 ||
         (x->dim[1] >= 0 && io->input[i]->dim[0] >= 0 && io->input[i]->dim[0] != x->dim[1])))
      return wrong(error, "b, scale, beta, mean and var have a number a channel");
  const uint32_t normal = io->n_inputs > DEPTHWISE_VAR && io->input[DEPTHWISE_VAR];
  for (uint32_t i = DEPTHWISE_SCALE; i < DEPTHWISE_VAR; i++)
    if ((io->n_inputs > i && io->input[i]) != normal)
      return wrong(error, "of scale, beta, mean and var some are missing");
  depthwise_sizes s;
  if (known) sizes_of(attrs, x->dim, w->dim, &s);
  if (y)
    for (int i = 0; i < 2; i++) y->dim[2 + i] = known ? s.out[i] : HONE_DIM_UNKNOWN;
  return HONE_OK;
}

void depthwise_conv_bn_relu_count(const depthwise_conv_bn_relu_attrs *attrs, const hone_infer *io,
                                  hone_cost *cost) {
  depthwise_sizes s;
  sizes_of(attrs, io->input[DEPTHWISE_X]->dim, io->input[DEPTHWISE_W]->dim, &s);
  const double made = (double)(s.n * s.c) * (double)s.out[0] * (double)s.out[1];
  cost->macs = made * (double)s.taps;
  cost->flops = 2 * cost->macs + 4 * made;
  cost->bytes = -1;
}

/* Number c of input i. */
static double number(const hone_array *in, int i, int64_t c, double otherwise) {
  return in[i].data ? in[i].data[c] : otherwise;
}

static double element(const hone_array *in, const depthwise_sizes *s, float epsilon, int64_t plane,
                      int64_t oy, int64_t ox) {
  const int64_t c = plane % s->c;
  const double *x = in[DEPTHWISE_X].data + plane * s->in[0] * s->in[1],
               *w = in[DEPTHWISE_W].data + c * s->taps;
  const double b = number(in, DEPTHWISE_B, c, 0), mean = number(in, DEPTHWISE_MEAN, c, 0),
               beta = number(in, DEPTHWISE_BETA, c, 0);
  double sum = b - mean, size = fabs(b) + fabs(mean);
  for (int64_t i = 0; i < s->kernel[0]; i++)
    for (int64_t j = 0; j < s->kernel[1]; j++) {
      const int64_t iy = oy * s->stride[0] - s->pad[0] + i * s->dilation[0],
                    ix = ox * s->stride[1] - s->pad[1] + j * s->dilation[1];
      if (iy < 0 || iy >= s->in[0] || ix < 0 || ix >= s->in[1]) continue;
      const double term = x[iy * s->in[1] + ix] * w[i * s->kernel[1] + j];
      sum += term, size += fabs(term);
    }
  const double factor = in[DEPTHWISE_SCALE].data
                            ? in[DEPTHWISE_SCALE].data[c] / sqrt(in[DEPTHWISE_VAR].data[c] + (double)epsilon)
                            : 1,
               y = sum * factor + beta;
  if (hone_beyond(in, size) || hone_beyond(in, factor) || hone_beyond(in, fabs(sum * factor) + fabs(beta)))
    return NAN;
  return y > 0 || isnan(y) ? y : 0;
}

void depthwise_conv_bn_relu_ref(const depthwise_conv_bn_relu_attrs *attrs, const hone_array in[7],
                                const hone_array out[1]) {
  depthwise_sizes s;
  sizes_of(attrs, in[DEPTHWISE_X].dim, in[DEPTHWISE_W].dim, &s);
  const int64_t pixels = s.out[0] * s.out[1];
  for (int64_t i = 0; i < out[0].count; i++)
    out[0].data[i] = element(in, &s, attrs->epsilon, i / pixels, i % pixels / s.out[1], i % s.out[1]);
}

/* Of all kernels: steps that they can run exactly as they are. */
bool depthwise_conv_bn_relu_accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {
  const hone_dtype type = s->output[0].desc.dtype;
  const bool gpu = strcmp(m->device, "cuda") == 0;
  if (s->n_epilogue) return hone_refuse(why, "it takes no epilogue");
  if (type != HONE_DTYPE_F32 && (!gpu || type != HONE_DTYPE_F16)) return hone_refuse(why, "not of this type");
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    const hone_tensor_desc *x = &s->input[i].desc;
    if (x->dtype == HONE_DTYPE_NONE) continue;
    if (i == 0 ? x->dtype != type : x->dtype != HONE_DTYPE_F32 && x->dtype != HONE_DTYPE_F16)
      return hone_refuse(why, "operands of other types");
    if (x->layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  }
  if (s->output[0].desc.layout != HONE_LAYOUT_ROW_MAJOR) return hone_refuse(why, "not row-major");
  if (gpu && !depthwise_constant(s)) return hone_refuse(why, "weights that are no constants");
  return true;
}

/* Constants, a channel after the other; a thread's lines, and its channel where they are no constants. */
hone_status depthwise_conv_bn_relu_need(const depthwise_conv_bn_relu_attrs *attrs, const hone_step *s,
                                        const hone_machine *m, hone_tactic_need *need, hone_error *error) {
  depthwise_sizes z;
  (void)error;
  sizes_of(attrs, s->input[DEPTHWISE_X].desc.dim, s->input[DEPTHWISE_W].desc.dim, &z);
  const size_t channel = (size_t)(z.taps + DEPTHWISE_MORE) * sizeof(float);
  if (depthwise_constant(s)) {
    need->blob_bytes = (size_t)z.c * channel;
    need->packed = ((1u << s->n_inputs) - 1) & ~1u;
  }
  if (strcmp(m->device, "cpu") == 0)
    need->workspace_bytes =
        m->threads *
        ((size_t)((depthwise_slots(&z) + 1) * z.stride[1] * depthwise_length(&z)) * sizeof(float) + channel);
  return HONE_OK;
}

hone_status depthwise_conv_bn_relu_prepack(const depthwise_conv_bn_relu_attrs *attrs, const hone_step *s,
                                           const hone_machine *m, void *blob, hone_error *error) {
  const void *data[7] = {0};
  hone_dtype type[7] = {0};
  depthwise_sizes z;
  (void)m, (void)error;
  sizes_of(attrs, s->input[DEPTHWISE_X].desc.dim, s->input[DEPTHWISE_W].desc.dim, &z);
  for (uint32_t i = 1; i < s->n_inputs; i++) data[i] = s->input[i].constant, type[i] = s->input[i].desc.dtype;
  for (int64_t c = 0; blob && depthwise_constant(s) && c < z.c; c++)
    depthwise_channel(data, type, z.taps, attrs->epsilon, c, (float *)blob + c * (z.taps + DEPTHWISE_MORE));
  return HONE_OK;
}

/* Seconds as measured on one core: to bring a line and to begin one, a vector of results, and lines that are
 * cut by their stride. Half of what the memory takes is not hidden behind that. */
double depthwise_conv_bn_relu_cost(const hone_step *s, const hone_machine *m) {
  const hone_tensor_desc *x = &s->input[DEPTHWISE_X].desc, *w = &s->input[DEPTHWISE_W].desc,
                         *y = &s->output[0].desc;
  const double move = hone_memory_seconds(m, hone_step_bytes(s));
  if (strcmp(m->device, "cuda") == 0) return 1.5 * move;
  const int64_t lanes = m->isa & HONE_ISA_AVX512 ? 16 : m->isa & HONE_ISA_AVX2 ? 8 : 4;
  const double planes = (double)(x->dim[0] * x->dim[1]), lines = planes * (double)(x->dim[2] + y->dim[2]),
               vectors = planes * (double)y->dim[2] * (double)((y->dim[3] + lanes - 1) / lanes),
               cut = y->dim[3] < x->dim[3] / 2 + 2 ? planes * (double)(x->dim[2] * x->dim[3]) : 0;
  const double busy = (lines * 9e-9 + vectors * (double)(w->dim[2] * w->dim[3]) * 0.5e-9 + cut * 0.15e-9) /
                      (m->threads ? m->threads : 1);
  return (busy > move ? busy : move) + (busy > move ? move : busy) / 2;
}
