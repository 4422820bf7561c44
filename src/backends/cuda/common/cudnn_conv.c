#include "backends/cuda/common/cudnn_conv.h"

#include <string.h>

#include "backends/cuda/common/epilogue.h"
#include "backends/cuda/common/functions.h"
#include "backends/cuda/common/library_step.h"
#include "backends/cuda/common/step.h"
#include "base/error.h"
#include "base/mem.h"

enum { BLOB_ALIGN = 256 };

/* ---------------------------------------------------------------- tensors */

/* Two spatial dimensions unless there are three. */
static hn_cudnn_tensor image(const hn_cudnn_conv *c, const hn_pixels *p, int64_t channels, hone_dtype dtype) {
  hn_cudnn_tensor t = {.dtype = dtype};
  const int64_t dims[5] = {p->batch, channels, p->size[0], p->size[1], p->size[2]};
  const int64_t strides[5] = {p->view.batch, 1, p->view.slice, p->view.row, p->view.pixel};
  const int32_t left_out = 5 - c->spec.rank;
  for (int32_t i = 0; i < 5; i++) t.dim[i] = t.stride[i] = 1;
  for (int32_t i = 0; i < c->spec.rank; i++) {
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

static size_t tensor_bytes(const hn_cudnn_tensor *t) {
  size_t n = hone_dtype_size(t->dtype);
  for (int32_t i = 0; i < HN_CUDNN_RANK; i++) n *= (size_t)t->dim[i];
  return n;
}

/* Names the place of the tensor that was added last. */
static void place(hn_cudnn_conv *c, int32_t tensor, hn_cudnn_place where, uint32_t input) {
  hn_cudnn_source *s = &c->source[tensor];
  *s = (hn_cudnn_source){.place = where, .input = input};
  if (where != HN_CUDNN_BLOB) return;
  s->at = c->blob_bytes;
  c->blob_bytes += hn_round_up(tensor_bytes(&c->spec.tensor[tensor]), BLOB_ALIGN);
  c->packed |= 1u << input;
}

/* ---------------------------------------------------------------- the convolution */

static bool describe_anchor(const hone_step *s, hn_cudnn_conv *c, hone_reason *why) {
  const hone_dtype type = s->input[0].desc.dtype;
  hn_conv_attr *a = &c->attr;
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
  c->depthwise = a->groups > 1 && a->cin == 1 && a->cout == 1;
  if (a->groups > 1 && !c->depthwise && (x != a->x.channels || y != a->y.channels))
    return hn_refuse(why, "groups of channels with padding");
  if (hone_desc_count(&s->output[0].desc) == 0 || hone_desc_count(&s->input[0].desc) == 0)
    return hn_refuse(why, "an empty tensor");
  const bool flat = a->x.size[0] == 1 && a->kernel[0] == 1 && a->y.size[0] == 1;
  hn_cudnn_spec *p = &c->spec;
  p->rank = flat ? 4 : 5;
  p->math = type == HONE_DTYPE_F32 ? s->math : HONE_MATH_TF32; /* of f32 operands alone */
  p->workspace = HN_LIBRARY_WORKSPACE;
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
  const hn_pixels w = dense(y, c->depthwise ? 1 : a->groups > 1 ? a->cin : x, a->kernel);
  const hn_cudnn_tensor first[] = {image(c, &a->x, x, type), image(c, &w, w.channels, type),
                                   image(c, &a->y, y, type)};
  for (int i = 0; i < 3; i++) hn_cudnn_add_tensor(p, &first[i]);
  place(c, HN_CUDNN_X, HN_CUDNN_IN, 0);
  place(c, HN_CUDNN_W, HN_CUDNN_BLOB, 1);
  place(c, HN_CUDNN_Y, HN_CUDNN_OUT, 0);
  return true;
}

/* ---------------------------------------------------------------- the epilogue */

/* A vector of one value a channel, with zeros in the channels' padding. */
static int32_t add_vector(hn_cudnn_conv *c, const hone_step *s, uint32_t input, hone_dtype dtype) {
  static const int64_t one[3] = {1, 1, 1};
  const hn_pixels p = dense(1, hn_library_padded(c->attr.y.channels, s->output[0].desc.dtype), one);
  const hn_cudnn_tensor t = image(c, &p, p.channels, dtype);
  const int32_t at = hn_cudnn_add_tensor(&c->spec, &t);
  if (at >= 0) place(c, at, HN_CUDNN_BLOB, input);
  return at;
}

/* A tensor like the output. */
static int32_t add_like_output(hn_cudnn_conv *c, const hone_step *s, uint32_t input) {
  hn_cudnn_tensor t = c->spec.tensor[HN_CUDNN_Y];
  t.dtype = s->input[input].desc.dtype;
  const int32_t at = hn_cudnn_add_tensor(&c->spec, &t);
  if (at >= 0) place(c, at, HN_CUDNN_IN, input);
  return at;
}

static bool too_long(hone_reason *why) { return hn_refuse(why, "the epilogue is too long"); }

static bool describe_native(const hone_step *s, hn_cudnn_conv *c, hone_reason *why) {
  int32_t bias = hn_cuda_has(s, 2) ? 2 : -1, residual = -1, at = HN_CUDNN_RESULT;
  bool relu = false;
  if (c->depthwise && (s->n_epilogue || bias >= 0))
    return hn_refuse(why, "cuDNN's fused kernels for depthwise convolution are slow");
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
  if (residual >= 0)
    at = hn_cudnn_add_op(&c->spec, HN_CUDNN_ADD, at, add_like_output(c, s, (uint32_t)residual), 0, 0);
  if (bias >= 0)
    at = hn_cudnn_add_op(&c->spec, HN_CUDNN_ADD, at,
                         add_vector(c, s, (uint32_t)bias, s->output[0].desc.dtype), 0, 0);
  if (relu) at = hn_cudnn_add_act(&c->spec, HONE_PW_RELU, 0, 0, at);
  return at >= 0 || too_long(why);
}

static bool describe_fused(const hone_step *s, hn_cudnn_conv *c, hone_reason *why) {
  int32_t at = HN_CUDNN_RESULT;
  if (hn_cuda_has(s, 2))
    at = hn_cudnn_add_op(&c->spec, HN_CUDNN_ADD, at, add_vector(c, s, 2, HONE_DTYPE_F32), 0, 0);
  for (uint32_t i = 0; i < s->n_epilogue && at >= 0; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    int32_t operand;
    switch (e->kind) {
    case HONE_EPI_BIAS:
    case HONE_EPI_SCALE:
      operand = add_vector(c, s, e->input, HONE_DTYPE_F32);
      if (operand < 0) return too_long(why);
      at = hn_cudnn_add_op(&c->spec, e->kind == HONE_EPI_BIAS ? HN_CUDNN_ADD : HN_CUDNN_MUL, at, operand, 0, 0);
      break;
    case HONE_EPI_ADD:
    case HONE_EPI_MUL:
      operand = add_like_output(c, s, e->input);
      if (operand < 0) return too_long(why);
      at = hn_cudnn_add_op(&c->spec, e->kind == HONE_EPI_ADD ? HN_CUDNN_ADD : HN_CUDNN_MUL, at, operand, 0, 0);
      break;
    case HONE_EPI_ACT:
      at = hn_cudnn_add_act(&c->spec, e->act, e->alpha, e->beta, at);
      if (at < 0) return hn_refuse(why, "epilogue %u: cuDNN has no activation %d", i, (int)e->act);
      break;
    default: break; /* a cast to the type that the output has */
    }
  }
  if (at < 0) return too_long(why);
  return c->spec.n_ops || hn_refuse(why, "no epilogue");
}

bool hn_cudnn_conv_of(const hone_step *s, hn_cudnn_form form, hn_cudnn_conv *c, hone_reason *why) {
  memset(c, 0, sizeof *c);
  if (!describe_anchor(s, c, why) || !hn_cuda_epilogue_accepts(s, why)) return false;
  const bool padded = hn_library_padded(c->attr.y.channels, s->output[0].desc.dtype) != c->attr.y.channels;
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if ((e->kind == HONE_EPI_BIAS || e->kind == HONE_EPI_SCALE) && !s->input[e->input].constant)
      return hn_refuse(why, "epilogue %u: the vector is not constant", i);
    if (e->kind == HONE_EPI_ACT && padded && !hn_keeps_zero(e->act, e->alpha, e->beta))
      return hn_refuse(why, "epilogue %u: the activation of padding is not zero", i);
  }
  return form == HN_CUDNN_NATIVE ? describe_native(s, c, why) : describe_fused(s, c, why);
}

/* ---------------------------------------------------------------- the blob */

/* [output channel][tap][input channel of the group], zeros where channels are padding. */
static void pack_weights(const hone_step *s, const hn_cudnn_conv *c, void *to) {
  const hn_conv_attr *a = &c->attr;
  const hone_dtype type = c->spec.tensor[HN_CUDNN_W].dtype;
  const int64_t taps = a->kernel[0] * a->kernel[1] * a->kernel[2], cin = c->spec.tensor[HN_CUDNN_W].dim[1];
  memset(to, 0, tensor_bytes(&c->spec.tensor[HN_CUDNN_W]));
  enum { PIECE = 256 };
  float tap[PIECE];
  for (int64_t k = 0; k < a->groups * a->cout; k++) {
    if (taps == 1) {
      hn_library_store(&s->input[1], k * a->cin, a->cin, to, k * cin, type);
      continue;
    }
    for (int64_t ch = 0; ch < a->cin; ch++)
      for (int64_t t = 0; t < taps; t += PIECE) {
        const int64_t count = taps - t < PIECE ? taps - t : PIECE;
        hn_cuda_constant_f32(&s->input[1], (k * a->cin + ch) * taps + t, count, tap);
        for (int64_t i = 0; i < count; i++) hn_library_put(to, (k * taps + t + i) * cin + ch, type, tap[i]);
      }
  }
}

void hn_cudnn_conv_pack(const hone_step *s, const hn_cudnn_conv *c, void *blob) {
  memset(blob, 0, c->blob_bytes);
  for (uint32_t i = 0; i < c->spec.n_tensors; i++) {
    const hn_cudnn_source *f = &c->source[i];
    if (c->spec.tensor[i].by_value || f->place != HN_CUDNN_BLOB) continue;
    void *to = (unsigned char *)blob + f->at;
    if (i == HN_CUDNN_W)
      pack_weights(s, c, to);
    else
      hn_library_store(&s->input[f->input], 0, c->attr.y.channels, to, 0, c->spec.tensor[i].dtype);
  }
}
