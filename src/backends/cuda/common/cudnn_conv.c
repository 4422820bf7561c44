/* Conv as a graph of cuDNN, in two forms.
 *   native: what cuDNN has whole kernels for: convolution, residual, bias in the storage type, ReLU, in this
 *           order and each but the convolution optional (residual and ReLU only with a bias);
 *   fused:  any list of epilogues, in f32 and in its own order: cuDNN compiles a kernel for it. */
#include <string.h>

#include "backends/cuda/common/cudnn_step.h"

#include "backends/cuda/common/epilogue.h"
#include "backends/cuda/common/functions.h"
#include "backends/cuda/common/library_step.h"
#include "backends/cuda/common/step.h"
#include "base/error.h"
#include "optimize/lower/conv_attr.h"

/* ---------------------------------------------------------------- tensors */

/* Two spatial dimensions unless there are three. */
static hn_cudnn_tensor image(int32_t rank, const hn_pixels *p, int64_t channels, hone_dtype dtype) {
  hn_cudnn_tensor t = {.dtype = dtype};
  const int64_t dims[5] = {p->batch, channels, p->size[0], p->size[1], p->size[2]};
  const int64_t strides[5] = {p->view.batch, 1, p->view.slice, p->view.row, p->view.pixel};
  const int32_t left_out = 5 - rank;
  for (int32_t i = 0; i < 5; i++) t.dim[i] = t.stride[i] = 1;
  for (int32_t i = 0; i < rank; i++) {
    const int32_t from = i < 2 ? i : i + left_out;
    t.dim[i] = dims[from], t.stride[i] = strides[from];
  }
  return t;
}

static hn_pixels dense(int64_t batch, int64_t channels, const int64_t size[3]) {
  hn_pixels p = {.batch = batch, .channels = channels, .size = {size[0], size[1], size[2]}, .even = true};
  p.view.pixel = channels;
  p.view.row = size[2] * p.view.pixel;
  p.view.slice = size[1] * p.view.row;
  p.view.batch = size[0] * p.view.slice;
  return p;
}

/* ---------------------------------------------------------------- the convolution */

static bool is_depthwise(const hn_conv_attr *a) { return a->groups > 1 && a->cin == 1 && a->cout == 1; }

static bool describe_anchor(const hone_step *s, hn_cudnn_step *c, hn_conv_attr *a, hone_reason *why) {
  const hone_dtype type = s->input[0].desc.dtype;
  memset(c, 0, sizeof *c);
  if (!hn_cuda_stored(s, why) || !hn_conv_attr_of(s, a, why)) return false;
  if (!s->input[1].constant || !hn_cuda_type(s->input[1].desc.dtype))
    return hn_refuse(why, "weights are not constant numbers of a floating type");
  if (hn_cuda_has(s, 2) && (!s->input[2].constant || !hn_cuda_type(s->input[2].desc.dtype)))
    return hn_refuse(why, "the bias is not constant");
  if (s->n_inputs > 32) return hn_refuse(why, "more than 32 inputs");
  const int64_t x = hn_library_padded(a->x.channels, type), y = hn_library_padded(a->y.channels, type);
  const int64_t vector = 16 / (int64_t)hone_dtype_size(type);
  if (a->x.view.pixel < x || a->y.view.pixel < y || a->x.view.pixel % vector || a->y.view.pixel % vector ||
      a->y.view.row % vector || a->y.view.slice % vector || a->y.view.batch % vector)
    return hn_refuse(why, "pixels do not lie at multiples of 16 bytes");
  const bool depthwise = is_depthwise(a);
  if (a->groups > 1 && !depthwise && (x != a->x.channels || y != a->y.channels))
    return hn_refuse(why, "groups of channels with padding");
  if (hone_desc_count(&s->output[0].desc) == 0 || hone_desc_count(&s->input[0].desc) == 0)
    return hn_refuse(why, "an empty tensor");
  const bool flat = a->x.size[0] == 1 && a->kernel[0] == 1 && a->y.size[0] == 1;
  hn_cudnn_spec *p = &c->spec;
  p->rank = flat ? 4 : 5;
  p->math = type == HONE_DTYPE_F32 ? s->math : HONE_MATH_TF32; /* of f32 operands alone */
  p->workspace = hn_library_workspace(s);
  for (int32_t i = flat, k = 0; i < 3; i++, k++) {
    const int64_t reach = (a->kernel[i] - 1) * a->dilation[i] + 1;
    const int64_t least = (a->y.size[i] - 1) * a->stride[i] + reach - a->x.size[i] - a->pad[i];
    /* Any padding behind that gives the output's size will do: as much as before it where that is one. */
    const bool even = a->pad[i] >= least && a->pad[i] < least + a->stride[i];
    if (a->pad[i] < 0) return hn_refuse(why, "negative padding");
    p->pad_before[k] = a->pad[i];
    p->pad_after[k] = even ? a->pad[i] : least > 0 ? least : 0;
    p->stride[k] = a->stride[i], p->dilation[k] = a->dilation[i];
    if (p->pad_after[k] >= least + a->stride[i]) return hn_refuse(why, "the output does not reach the input's end");
  }
  const hn_pixels w = dense(y, depthwise ? 1 : a->groups > 1 ? a->cin : x, a->kernel);
  const int64_t one[3] = {1, 1, 1};
  const hn_pixels v = dense(1, y, one);
  const hn_cudnn_tensor first[] = {image(p->rank, &a->x, x, type), image(p->rank, &w, w.channels, type),
                                   image(p->rank, &a->y, y, type)};
  for (int i = 0; i < 3; i++) hn_cudnn_add_tensor(p, &first[i]);
  c->channels = a->y.channels;
  c->vector = image(p->rank, &v, y, type);
  hn_cudnn_put(c, HN_CUDNN_X, HN_CUDNN_IN, 0);
  hn_cudnn_put(c, HN_CUDNN_W, HN_CUDNN_BLOB, 1);
  hn_cudnn_put(c, HN_CUDNN_Y, HN_CUDNN_OUT, 0);
  return hn_cudnn_epilogue_fits(s, y != a->y.channels, why);
}

/* ---------------------------------------------------------------- the forms */

static bool native_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  hn_conv_attr a;
  int32_t bias = hn_cuda_has(s, 2) ? 2 : -1, residual = -1, at = HN_CUDNN_RESULT;
  bool relu = false;
  if (!describe_anchor(s, c, &a, why)) return false;
  if (is_depthwise(&a) && (s->n_epilogue || bias >= 0))
    return hn_refuse(why, "cuDNN's whole kernels for depthwise convolution with a bias are slow");
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if (relu) return hn_refuse(why, "epilogue %u follows the activation", i);
    if (e->kind == HONE_EPI_BIAS && bias < 0)
      bias = (int32_t)e->input;
    else if (e->kind == HONE_EPI_ADD && residual < 0)
      residual = (int32_t)e->input;
    else if (e->kind == HONE_EPI_ACT && e->act == HONE_PW_RELU)
      relu = true;
    else if (e->kind != HONE_EPI_CAST)
      return hn_refuse(why, "epilogue %u is not part of bias, residual, ReLU", i);
  }
  if (bias < 0 && (residual >= 0 || relu)) return hn_refuse(why, "an epilogue without a bias");
  if (residual >= 0 && s->input[residual].desc.dtype != s->output[0].desc.dtype)
    return hn_refuse(why, "the residual has not the output's type");
  if (residual >= 0) at = hn_cudnn_plus(c, at, hn_cudnn_add_like_output(c, s, (uint32_t)residual));
  if (bias >= 0) at = hn_cudnn_plus(c, at, hn_cudnn_add_vector(c, (uint32_t)bias, s->output[0].desc.dtype));
  if (relu) hn_cudnn_add_act(&c->spec, HONE_PW_RELU, 0, 0, at);
  return true;
}

static bool fused_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  hn_conv_attr a;
  int32_t at = HN_CUDNN_RESULT;
  if (!describe_anchor(s, c, &a, why)) return false;
  if (hn_cuda_has(s, 2)) at = hn_cudnn_plus(c, at, hn_cudnn_add_vector(c, 2, HONE_DTYPE_F32));
  if (!hn_cudnn_add_epilogue(c, s, at, why)) return false;
  return c->spec.n_ops || hn_refuse(why, "no epilogue");
}

/* ---------------------------------------------------------------- the blob */

/* [output channel][tap][input channel of the group], zeros where channels are padding. */
static void pack(const hone_step *s, const hn_cudnn_step *c, void *to) {
  hn_conv_attr a;
  if (!hn_conv_attr_of(s, &a, NULL)) return; /* it was described before */
  const hone_dtype type = c->spec.tensor[HN_CUDNN_W].dtype;
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2], cin = c->spec.tensor[HN_CUDNN_W].dim[1];
  enum { PIECE = 256 };
  float tap[PIECE];
  for (int64_t k = 0; k < a.groups * a.cout; k++) {
    if (taps == 1) {
      hn_library_store(&s->input[1], k * a.cin, a.cin, to, k * cin, type);
      continue;
    }
    for (int64_t ch = 0; ch < a.cin; ch++)
      for (int64_t t = 0; t < taps; t += PIECE) {
        const int64_t count = taps - t < PIECE ? taps - t : PIECE;
        hn_cuda_constant_f32(&s->input[1], (k * a.cin + ch) * taps + t, count, tap);
        for (int64_t i = 0; i < count; i++) hn_library_put(to, (k * taps + t + i) * cin + ch, type, tap[i]);
      }
  }
}

/* ---------------------------------------------------------------- predictions */

static double native_seconds(const hone_step *s, const hone_machine *m) {
  hn_conv_attr a;
  if (!hn_conv_attr_of(s, &a, NULL)) return 1e9;
  const double pixels = (double)(a.y.batch * a.y.size[0] * a.y.size[1] * a.y.size[2]);
  const double taps = (double)(a.kernel[0] * a.kernel[1] * a.kernel[2]);
  const double bytes = hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s);
  if (is_depthwise(&a)) return hn_cuda_seconds(m, s->cost.flops, m->peak_flops, bytes, 0.5) + 4e-6;
  return hn_library_seconds(m, s->input[0].desc.dtype, s->math, pixels, (double)a.y.channels,
                            (double)a.cin * taps, bytes, a.groups > 1 ? 0.25 : 0.6);
}

/* Measured on one H200: over resnet50's layers compiled epilogues take an eighth longer. */
static double fused_seconds(const hone_step *s, const hone_machine *m) { return native_seconds(s, m) * 1.12; }

const hn_cudnn_kind hn_cudnn_conv_native = {native_of, pack, native_seconds};
const hn_cudnn_kind hn_cudnn_conv_fused = {fused_of, pack, fused_seconds};
