#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/libraries/cudnn_graph.h"

int32_t hn_cudnn_add_tensor(hn_cudnn_spec *spec, const hn_cudnn_tensor *tensor) {
  if (spec->n_tensors >= HN_CUDNN_TENSORS) return -1;
  spec->tensor[spec->n_tensors] = *tensor;
  return (int32_t)spec->n_tensors++;
}

int32_t hn_cudnn_add_value(hn_cudnn_spec *spec, float value) {
  hn_cudnn_tensor t = {.dtype = HONE_DTYPE_F32, .by_value = true, .value = value};
  for (int32_t i = 0; i < HN_CUDNN_RANK; i++) t.dim[i] = t.stride[i] = 1;
  return hn_cudnn_add_tensor(spec, &t);
}

int32_t hn_cudnn_add_op(hn_cudnn_spec *spec, hn_cudnn_mode mode, int32_t a, int32_t b, float p0, float p1) {
  if (spec->n_ops >= HN_CUDNN_OPS || a < 0) return -1;
  spec->op[spec->n_ops++] = (hn_cudnn_op){.mode = mode, .a = a, .b = b, .p = {p0, p1}};
  return HN_CUDNN_RESULT + (int32_t)spec->n_ops;
}

/* Operations on a result and one number. */
static int32_t with_value(hn_cudnn_spec *spec, hn_cudnn_mode mode, int32_t at, float value) {
  int32_t v = hn_cudnn_add_value(spec, value);
  return v < 0 ? -1 : hn_cudnn_add_op(spec, mode, at, v, 0, 0);
}

static int32_t unary(hn_cudnn_spec *spec, hn_cudnn_mode mode, int32_t at, float p0, float p1) {
  return hn_cudnn_add_op(spec, mode, at, HN_CUDNN_NONE, p0, p1);
}

/* clip(alpha x + beta, 0, 1) */
static int32_t hard_sigmoid(hn_cudnn_spec *spec, int32_t at, float alpha, float beta) {
  int32_t t = with_value(spec, HN_CUDNN_MUL, at, alpha);
  if (t >= 0) t = with_value(spec, HN_CUDNN_ADD, t, beta);
  return t < 0 ? t : unary(spec, HN_CUDNN_RELU, t, 1, 0);
}

static int32_t clip(hn_cudnn_spec *spec, int32_t at, float low, float high) {
  if (low == 0 && high > 0) return unary(spec, HN_CUDNN_RELU, at, high, 0);
  int32_t t = with_value(spec, HN_CUDNN_MAX, at, low);
  return t < 0 ? t : with_value(spec, HN_CUDNN_MIN, t, high);
}

int32_t hn_cudnn_add_act(hn_cudnn_spec *spec, hone_pw_op act, float alpha, float beta, int32_t at) {
  int32_t t;
  switch (act) {
  case HONE_PW_RELU: return unary(spec, HN_CUDNN_RELU, at, INFINITY, 0);
  case HONE_PW_CLIP: return clip(spec, at, alpha, beta);
  case HONE_PW_LEAKYRELU: return unary(spec, HN_CUDNN_RELU, at, INFINITY, alpha);
  case HONE_PW_ELU: return unary(spec, HN_CUDNN_ELU, at, alpha, 0);
  case HONE_PW_SIGMOID: return unary(spec, HN_CUDNN_SIGMOID, at, 0, 0);
  case HONE_PW_SILU: return unary(spec, HN_CUDNN_SWISH, at, alpha, 0);
  case HONE_PW_TANH: return unary(spec, HN_CUDNN_TANH, at, 0, 0);
  case HONE_PW_SOFTPLUS: return unary(spec, HN_CUDNN_SOFTPLUS, at, 1, 0);
  case HONE_PW_GELU_ERF: return unary(spec, HN_CUDNN_GELU_ERF, at, 0, 0);
  case HONE_PW_GELU_TANH: return unary(spec, HN_CUDNN_GELU_TANH, at, 0, 0);
  case HONE_PW_HARDSIGMOID: return hard_sigmoid(spec, at, alpha, beta);
  case HONE_PW_HARDSWISH:
    t = hard_sigmoid(spec, at, alpha, beta);
    return t < 0 ? t : hn_cudnn_add_op(spec, HN_CUDNN_MUL, at, t, 0, 0);
  case HONE_PW_MISH:
    t = unary(spec, HN_CUDNN_SOFTPLUS, at, 1, 0);
    t = t < 0 ? t : unary(spec, HN_CUDNN_TANH, t, 0, 0);
    return t < 0 ? t : hn_cudnn_add_op(spec, HN_CUDNN_MUL, at, t, 0, 0);
  default: return -1;
  }
}

typedef struct text {
  char *at;
  size_t left;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(t->at, t->left, format, ap);
  va_end(ap);
  size_t used = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - 1;
  t->at += used, t->left -= used;
}

static void put_list(text *t, const int64_t *v, int32_t n) {
  for (int32_t i = 0; i < n; i++) put(t, "%s%lld", i ? "," : "", (long long)v[i]);
}

char *hn_cudnn_key(const hn_cudnn_spec *spec, char *buf, size_t size) {
  text t = {buf, size};
  put(&t, "cudnn:%s:m%d:w%zu", spec->matmul ? "matmul" : "conv", (int)spec->math, spec->workspace);
  if (!spec->matmul) {
    const int64_t *lists[] = {spec->pad_before, spec->pad_after, spec->stride, spec->dilation};
    for (int32_t i = 0; i < 4; i++) put(&t, ":"), put_list(&t, lists[i], spec->rank - 2);
  }
  for (uint32_t i = 0; i < spec->n_tensors; i++) {
    const hn_cudnn_tensor *x = &spec->tensor[i];
    put(&t, ":t%d", (int)x->dtype);
    if (x->by_value) {
      put(&t, "=%a", (double)x->value);
      continue;
    }
    put(&t, "["), put_list(&t, x->dim, spec->rank);
    put(&t, "/"), put_list(&t, x->stride, spec->rank);
    put(&t, "]");
  }
  for (uint32_t i = 0; i < spec->n_ops; i++) {
    const hn_cudnn_op *o = &spec->op[i];
    put(&t, ":o%d(%d,%d,%a,%a)", (int)o->mode, o->a, o->b, (double)o->p[0], (double)o->p[1]);
  }
  return buf;
}
