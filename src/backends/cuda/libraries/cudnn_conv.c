/* Conv as a graph of cuDNN, in two forms.
 *   native: what cuDNN has whole kernels for: convolution, residual, bias in the storage type, ReLU, in this
 *           order and each but the convolution optional (residual and ReLU only with a bias);
 *   fused:  any list of epilogues, in f32 and in its own order: cuDNN compiles a kernel for it.
 * Either can be folded: at stride 2 along rows, pairs of neighbouring pixels are one pixel of twice the
 * channels at stride 1, and the filter's columns are paired alike. Same products (and some with zeros), but
 * half as many taps of twice the length, which is what a first layer of few channels lacks. */
#include "backends/cuda/libraries/cudnn_step.h"

#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/functions.h"
#include "backends/cuda/step/step.h"
#include "backends/cuda/step/weights.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "optimize/step/conv_attr.h"

#include <math.h>
#include <string.h>

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

/* Columns of the filter in front of which a zero one stands, so that the first pair begins at an even pixel.
 */
static int64_t fold_shift(const hn_conv_attr *a) { return a->pad[2] % 2; }

static bool fold(const hn_conv_attr *a, hn_cudnn_spec *p, hn_cudnn_tensor *x, hn_cudnn_tensor *w,
                 hone_reason *why) {
  const int64_t channels = x->dim[1];
  if (p->rank != 4 || a->groups != 1 || a->stride[2] != 2 || a->dilation[2] != 1 || a->kernel[2] < 2)
    return hn_refuse(why, "not a convolution at stride 2 along rows");
  if (a->x.size[2] % 2 || a->x.view.pixel != channels)
    return hn_refuse(why, "pixels do not come in dense pairs");
  if (channels > 32) return hn_refuse(why, "enough channels as they are");
  const int64_t columns = (a->kernel[2] + fold_shift(a) + 1) / 2, before = (a->pad[2] + 1) / 2;
  const int64_t after = a->y.size[2] - 1 + columns - before - a->x.size[2] / 2;
  if (after < 0) return hn_refuse(why, "the output does not reach the input's end");
  p->stride[1] = 1, p->pad_before[1] = before, p->pad_after[1] = after;
  x->dim[1] = 2 * channels, x->dim[3] /= 2, x->stride[3] *= 2;
  w->dim[1] = 2 * channels, w->dim[3] = columns;
  w->stride[3] = w->dim[1], w->stride[2] = columns * w->stride[3], w->stride[0] = w->dim[2] * w->stride[2];
  return true;
}

static bool describe_anchor(const hone_step *s, bool folded, hn_cudnn_step *c, hn_conv_attr *a,
                            hone_reason *why) {
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
  const bool flat = hn_conv_is_picture(a);
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
    if (p->pad_after[k] >= least + a->stride[i])
      return hn_refuse(why, "the output does not reach the input's end");
  }
  const hn_pixels w = dense(y, depthwise ? 1 : a->groups > 1 ? a->cin : x, a->kernel);
  const int64_t one[3] = {1, 1, 1};
  const hn_pixels v = dense(1, y, one);
  hn_cudnn_tensor first[] = {image(p->rank, &a->x, x, type), image(p->rank, &w, w.channels, type),
                             image(p->rank, &a->y, y, type)};
  if (folded && !fold(a, p, &first[HN_CUDNN_X], &first[HN_CUDNN_W], why)) return false;
  for (int i = 0; i < 3; i++) hn_cudnn_add_tensor(p, &first[i]);
  c->channels = a->y.channels;
  c->vector = image(p->rank, &v, y, type);
  hn_cudnn_put(c, HN_CUDNN_X, HN_CUDNN_IN, 0);
  hn_cudnn_put(c, HN_CUDNN_W, HN_CUDNN_BLOB, 1);
  hn_cudnn_put(c, HN_CUDNN_Y, HN_CUDNN_OUT, 0);
  return hn_cudnn_epilogue_fits(s, y != a->y.channels, why);
}

/* ---------------------------------------------------------------- the forms */

static bool native_form(const hone_step *s, bool folded, hn_cudnn_step *c, hone_reason *why) {
  hn_conv_attr a;
  int32_t bias = hn_cuda_has(s, 2) ? 2 : -1, residual = -1, at = HN_CUDNN_RESULT;
  bool relu = false;
  if (!describe_anchor(s, folded, c, &a, why)) return false;
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

static bool fused_form(const hone_step *s, bool folded, hn_cudnn_step *c, hone_reason *why) {
  hn_conv_attr a;
  int32_t at = HN_CUDNN_RESULT;
  if (!describe_anchor(s, folded, c, &a, why)) return false;
  if (hn_cuda_has(s, 2)) at = hn_cudnn_plus(c, at, hn_cudnn_add_vector(c, 2, HONE_DTYPE_F32));
  if (!hn_cudnn_add_epilogue(c, s, at, why)) return false;
  return c->spec.n_ops || hn_refuse(why, "no epilogue");
}

static bool native_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  return native_form(s, false, c, why);
}
static bool fused_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  return fused_form(s, false, c, why);
}
static bool folded_of(const hone_step *s, hn_cudnn_step *c, hone_reason *why) {
  return native_form(s, true, c, NULL) || fused_form(s, true, c, why);
}

/* ---------------------------------------------------------------- the blob */

/* [output channel][tap][input channel of the group], zeros where channels are padding. */
static void pack(const hone_step *s, const hn_cudnn_step *c, void *to) {
  hn_conv_attr a;
  if (!hn_conv_attr_of(s, &a, NULL)) return; /* it was described before */
  const hone_dtype type = c->spec.tensor[HN_CUDNN_W].dtype;
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2], cin = c->spec.tensor[HN_CUDNN_W].dim[1];
  const hn_cuda_weights all = {.from = &s->input[1],
                               .by_column = a.cin * taps,
                               .by_tap = 1,
                               .by_channel = taps,
                               .columns = (uint32_t)(a.groups * a.cout),
                               .taps = (uint32_t)taps,
                               .channels = (uint32_t)a.cin};
  for (hn_cuda_weights_tile t = {.all = all}; hn_cuda_weights_next(&t);)
    for (uint32_t n = 0; n < t.columns; n++)
      for (uint32_t ch = 0; ch < t.channels; ch++)
        hn_library_put(to, ((t.column + n) * taps + t.tap) * cin + t.channel + ch, type, t.w[n][ch]);
}

/* [output channel][row][column, the zero one first][input channel] */
static void pack_folded(const hone_step *s, const hn_cudnn_step *c, void *to) {
  hn_conv_attr a;
  if (!hn_conv_attr_of(s, &a, NULL)) return; /* it was described before */
  const hn_cudnn_tensor *w = &c->spec.tensor[HN_CUDNN_W];
  const int64_t channels = w->dim[1] / 2, rows = a.groups * a.cout * a.cin * a.kernel[1];
  enum { PIECE = 256 };
  float tap[PIECE];
  for (int64_t i = 0; i < rows; i++) {
    const int64_t r = i % a.kernel[1], ch = i / a.kernel[1] % a.cin, k = i / a.kernel[1] / a.cin;
    const int64_t at = k * w->stride[0] + r * w->stride[2] + fold_shift(&a) * channels + ch;
    for (int64_t t = 0; t < a.kernel[2]; t += PIECE) {
      const int64_t count = a.kernel[2] - t < PIECE ? a.kernel[2] - t : PIECE;
      hn_cuda_constant_f32(&s->input[1], i * a.kernel[2] + t, count, tap);
      for (int64_t n = 0; n < count; n++) hn_library_put(to, at + (t + n) * channels, w->dtype, tap[n]);
    }
  }
}

/* ---------------------------------------------------------------- predictions */

/* Three quarters of a wave of tiles reach 0.45 of the peak, more than one 0.6 (ResNet-50 and YOLOv3 on one
 * H200), and a block of 64 along the sum of several taps takes 0.13 us however few tiles there are. */
static double share_of_peak(const hone_machine *m, double pixels, double channels) {
  const double waves = ceil(pixels / 128) * ceil(channels / 128) / (m->processors ? m->processors : 132);
  return 0.45 + 0.15 * fmin(fmax((waves - 0.75) / 0.5, 0), 1);
}

/* Waves that are begun, over those that tiles would fill. */
static double last_wave(const hone_machine *m, const hn_conv_attr *a) {
  const double pixels = (double)(a->y.batch * a->y.size[0] * a->y.size[1] * a->y.size[2]);
  const double waves =
      ceil(pixels / 128) * ceil((double)a->y.channels / 128) / (m->processors ? m->processors : 132);
  return waves > 1 ? ceil(waves) / waves : 1;
}

/* Of few channels, the ends of what a tensor core takes at once are wasted: as if there were 32. In exact f32
 * (one H200, resnet50 and mobilenetv2) tiles have 128 output channels however few there are, and a step along
 * the sum takes 0.15 us for several taps, 0.05 us for one. */
static double conv_seconds(const hone_step *s, const hone_machine *m, double fewest, double added) {
  hn_conv_attr a;
  if (!hn_conv_attr_of(s, &a, NULL)) return HN_REFUSED_SECONDS;
  const double pixels = (double)(a.y.batch * a.y.size[0] * a.y.size[1] * a.y.size[2]);
  const double taps = (double)(a.kernel[0] * a.kernel[1] * a.kernel[2]);
  const double bytes = hn_cuda_bytes(s) + added * hn_cuda_epilogue_bytes(s);
  const double channels = (double)a.cin < fewest ? fewest : (double)a.cin;
  if (is_depthwise(&a)) return hn_cuda_seconds(m, s->cost.flops, m->peak_flops, bytes, 0.5) + 4e-6;
  const hone_dtype type = s->input[0].desc.dtype;
  const bool exact = hn_library_exact(type, s->math);
  double n = (double)a.y.channels, along = 0;
  if (exact) {
    const int64_t blocks = (a.y.channels + 127) / 128;
    n = 128.0 * (double)blocks;
    along = channels * taps * (taps > 1 ? 0.15e-6 : 0.05e-6);
  }
  const double share = a.groups > 1 ? 0.25 : exact ? 0.6 : share_of_peak(m, pixels, n);
  const double whole = hn_library_seconds(m, type, s->math, pixels, n, channels * taps, bytes, share);
  if (!exact && taps > 1) along = channels * taps / 64 * 0.13e-6 + 1.7e-6 + m->launch_s;
  return fmax(whole, along);
}

/* How many times as long as that convolutions take for which cuDNN's 16-bit kernels are not made: medians of
 * 90 layers of 14 networks on one H200, batches 1 and 16. Groups of 24 channels 15 to 20, of 4 to 32 that are
 * powers of two 1.2 to 2.4; 3 input channels 16; 24 to 112 channels 1.3 to 4.1, and 160, 192, 320 1.4 to 2.4,
 * where multiples of 128 take 0.9 to 1.2; kernels that are one pixel wide or deep in a volume 1.2 to 5.5. */
static double uneven(const hn_conv_attr *a) {
  const bool volume = a->x.size[0] > 1, thin = a->kernel[0] == 1 || a->kernel[1] * a->kernel[2] == 1;
  if (is_depthwise(a)) return 1;
  if (a->groups > 1) return a->cin & (a->cin - 1) ? 16 : 1.6;
  if (a->cin < 16) return 16;
  const int64_t least = a->cin < a->cout ? a->cin : a->cout;
  const double narrow = least < 128 ? 2.2 : a->cin % 128 || a->cout % 128 ? 1.6 : 1;
  return volume && thin ? fmax(narrow, 1.7) : narrow;
}

/* A tensor that is added costs twice its bytes. */
static double native_seconds(const hone_step *s, const hone_machine *m, uint32_t candidate) {
  (void)candidate;
  hn_conv_attr a;
  const double whole = conv_seconds(s, m, 32, 2);
  const bool exact = hn_library_exact(s->input[0].desc.dtype, s->math);
  return exact || !hn_conv_attr_of(s, &a, NULL) ? whole : whole * uneven(&a);
}
/* Not measured yet: left to hone tune. */
static double folded_seconds(const hone_step *s, const hone_machine *m, uint32_t candidate) {
  return native_seconds(s, m, candidate) * 1.1;
}

/* Measured on one H200: over resnet50's layers compiled epilogues take an eighth longer, those of 1x1 (which
 * are bound by what they move) 1.6 times as long; over YOLOv3's, 32 and 64 input channels take the time of
 * 128 (1.4 to 3 times that of as much work with 128), and a block of 64 along the sum of several taps 0.2 us.
 * Of several taps the third engine that the heuristics propose is the faster one there: 0.15 us a block where
 * the first takes up to 0.2. A last wave of tiles of 128 x 128 takes as long as a full one (YOLOv3's layers
 * of 52x52 at batch 16, Inception's 1x7 and 7x1 at 32: 1.2 and 1.8 times as long as without). Of tf32, 14
 * layers of ResNet-50 at 32 and YOLOv3 at 16 took 0.53 to 0.8 of all that by themselves, but YOLOv3 with such
 * costs 5.10 ms instead of 4.97. In exact f32
 * none was measured: a network that chose two of them was three times slower than its separate operators, so
 * there they are left to hone tune. */
enum { THIRD = 2 };
static double fused_seconds(const hone_step *s, const hone_machine *m, uint32_t candidate) {
  hn_conv_attr a;
  const bool narrow = s->input[0].desc.dtype != HONE_DTYPE_F32 || s->math >= HONE_MATH_TF32;
  double whole = conv_seconds(s, m, narrow ? 128 : 32, 1);
  if (!hn_conv_attr_of(s, &a, NULL)) return whole;
  if (!narrow) return whole * 8;
  const double taps = (double)(a.kernel[0] * a.kernel[1] * a.kernel[2]),
               functions = hn_library_functions(s, m);
  if (a.groups > 1 || a.cin < 16) return whole * uneven(&a) + functions;
  if (taps == 1) return whole * 1.6 + functions;
  whole *= last_wave(m, &a);
  const double blocks = fmax((double)a.cin, 128) * taps / 64;
  if (a.cin < 32 || a.x.size[0] > 1) whole *= 1.6;
  if (candidate == THIRD && m->arch == 90)
    return fmax(whole, blocks * 0.16e-6 + 1.0e-6 + m->launch_s) + functions;
  return fmax(whole, blocks * 0.2e-6 + 0.3e-6 + m->launch_s) * 1.12 + functions;
}

const hn_cudnn_kind hn_cudnn_conv_native = {native_of, pack, native_seconds};
const hn_cudnn_kind hn_cudnn_conv_fused = {fused_of, pack, fused_seconds};
const hn_cudnn_kind hn_cudnn_conv_folded = {folded_of, pack_folded, folded_seconds};
