/* Geometry of sliding windows (window.h). */
#include "model/ops/common/window.h"

#include "base/str.h"
#include "model/ops/common/bulk.h"

/* Attributes beyond this are nonsense and would overflow later sums. */
#define MAX_ATTR INT32_MAX
#define MAX_SIZE (INT64_MAX / 8)

typedef enum { PAD_EXPLICIT, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER } pad_mode;

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

/* One list attribute with a value a spatial dimension; fills `otherwise` when absent. */
static hone_status read_list(const hone_node *node, const char *name, int64_t *out, int32_t n, int64_t least,
                             int64_t otherwise, hone_error *error) {
  size_t count = 0;
  const int64_t *v = hone_node_ints(node, name, &count);
  for (int32_t i = 0; i < n; i++) out[i] = otherwise;
  if (!count) return HONE_OK;
  if (count != (size_t)n)
    return hn_op_bad(node, error, "%s has %zu values, expected %d", name, count, (int)n);
  for (int32_t i = 0; i < n; i++) {
    if (v[i] < least || v[i] > MAX_ATTR)
      return hn_op_bad(node, error, "%s holds %lld", name, (long long)v[i]);
    out[i] = v[i];
  }
  return HONE_OK;
}

static hone_status read_pads(hn_window *w, const hone_node *node, pad_mode *mode, hone_error *error) {
  const char *text = hone_node_string(node, "auto_pad", "NOTSET");
  if (hn_same_name(text, "NOTSET") || !*text)
    *mode = PAD_EXPLICIT;
  else if (hn_same_name(text, "VALID"))
    *mode = PAD_VALID;
  else if (hn_same_name(text, "SAME_UPPER"))
    *mode = PAD_SAME_UPPER;
  else if (hn_same_name(text, "SAME_LOWER"))
    *mode = PAD_SAME_LOWER;
  else
    return hn_op_bad(node, error, "auto_pad is \"%s\"", text);
  int64_t pads[2 * HN_MAX_SPATIAL] = {0};
  if (*mode == PAD_EXPLICIT) {
    hone_status s = read_list(node, "pads", pads, 2 * w->n, 0, 0, error);
    if (s) return s;
  }
  for (int32_t i = 0; i < w->n; i++) {
    w->pad[i] = pads[i];
    w->pad_end[i] = pads[w->n + i];
  }
  return HONE_OK;
}

static hone_status read_common(hn_window *w, const hone_node *node, const hone_tensor_desc *x,
                               const int64_t *kernel, pad_mode *mode, hone_error *error) {
  hone_status s = HONE_OK;
  memset(w, 0, sizeof *w);
  if (x->rank < 3) return hn_op_bad(node, error, "the input has rank %d, expected at least 3", (int)x->rank);
  if (x->rank > 2 + HN_MAX_SPATIAL)
    return hn_op_refuse(node, error, "%d spatial dimensions (at most %d)", (int)x->rank - 2, HN_MAX_SPATIAL);
  w->n = x->rank - 2;
  if ((s = read_list(node, "kernel_shape", w->kernel, w->n, 1, HONE_DIM_UNKNOWN, error))) return s;
  if (!kernel && w->kernel[0] < 0) return hn_op_bad(node, error, "kernel_shape is missing or empty");
  if ((s = read_list(node, "strides", w->stride, w->n, 1, 1, error))) return s;
  if ((s = read_list(node, "dilations", w->dilation, w->n, 1, 1, error))) return s;
  if ((s = read_pads(w, node, mode, error))) return s;
  for (int32_t i = 0; i < w->n; i++) {
    w->in[i] = x->dim[2 + i];
    if (w->in[i] > MAX_SIZE) return hn_op_bad(node, error, "input dimension %lld", (long long)w->in[i]);
    if (kernel && kernel[i] >= 0) {
      if (w->kernel[i] >= 0 && w->kernel[i] != kernel[i])
        return hn_op_bad(node, error, "kernel_shape says %lld, the weights have %lld",
                         (long long)w->kernel[i], (long long)kernel[i]);
      if (kernel[i] < 1 || kernel[i] > MAX_ATTR)
        return hn_op_bad(node, error, "kernel dimension %lld", (long long)kernel[i]);
      w->kernel[i] = kernel[i];
    }
    if (w->in[i] < 0) w->in[i] = HONE_DIM_UNKNOWN;
  }
  return HONE_OK;
}

hone_status hn_window_init(hn_window *w, const hone_node *node, const hone_tensor_desc *x,
                           const int64_t *kernel, bool ceil_mode, hone_error *error) {
  pad_mode mode;
  hone_status s = read_common(w, node, x, kernel, &mode, error);
  if (s) return s;
  /* A convolution that is too large for its input is always a mistake. A pooling then has what ONNX's shape
   * inference and other runtimes make of the formula: the quotient is cut towards 0, so that a window which
   * less than one stride is missing for sees what there is, and beyond that there are no elements. */
  const bool counts = hone_node_opset(node) < 19 && hone_node_int(node, "count_include_pad", 0) != 0;
  const int64_t least = kernel || counts ? 1 : 0;
  for (int32_t i = 0; i < w->n; i++) {
    w->out[i] = HONE_DIM_UNKNOWN;
    if (w->in[i] < 0) continue;
    int64_t in = w->in[i], stride = w->stride[i];
    if (mode >= PAD_SAME_UPPER) { /* out = ceil(in / stride), whatever the kernel */
      w->out[i] = in / stride + (in % stride != 0);
      if (w->kernel[i] < 0) continue;
      int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
      int64_t total = hn_max(0, (w->out[i] - 1) * stride + reach - in);
      w->pad[i] = mode == PAD_SAME_UPPER ? total / 2 : total - total / 2;
      w->pad_end[i] = total - w->pad[i];
      if (w->out[i] == 0) return hn_op_bad(node, error, "spatial dimension %d is empty", (int)i);
      continue;
    }
    if (w->kernel[i] < 0) continue;
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t room = in + w->pad[i] + w->pad_end[i] - reach;
    /* Poolings whose window does not fit; but before opset 19 the mean counts other elements from runtime to
     * runtime. */
    const bool cut = !kernel && room < 0 && !counts;
    int64_t out = (ceil_mode || cut ? ceil_div(room, stride) : floor_div(room, stride)) + 1;
    if (ceil_mode && out > 1 && (out - 1) * stride >= in + w->pad[i]) out--;
    if (out < least)
      return hn_op_bad(node, error, "a kernel that spans %lld is larger than the padded input (%lld)",
                       (long long)reach, (long long)(room + reach));
    w->out[i] = out;
  }
  return HONE_OK;
}

hone_status hn_window_init_transposed(hn_window *w, const hone_node *node, const hone_tensor_desc *x,
                                      const int64_t *kernel, hone_error *error) {
  pad_mode mode;
  int64_t extra[HN_MAX_SPATIAL], shape[2 + HN_MAX_SPATIAL];
  size_t n_shape = 0;
  hone_status s = read_common(w, node, x, kernel, &mode, error);
  if (s) return s;
  if ((s = read_list(node, "output_padding", extra, w->n, 0, 0, error))) return s;
  const int64_t *given = hone_node_ints(node, "output_shape", &n_shape);
  if (n_shape) {
    /* Some exporters write the whole shape, N and C included. */
    if (n_shape != (size_t)w->n && n_shape != (size_t)w->n + 2)
      return hn_op_bad(node, error, "output_shape has %zu values, expected %d", n_shape, (int)w->n);
    memcpy(shape, given + (n_shape - (size_t)w->n), (size_t)w->n * sizeof *shape);
  }
  for (int32_t i = 0; i < w->n; i++) {
    w->out[i] = HONE_DIM_UNKNOWN;
    if (extra[i] >= w->stride[i] && extra[i] >= w->dilation[i])
      return hn_op_bad(node, error, "output_padding %lld is not below the stride or dilation",
                       (long long)extra[i]);
    if (n_shape && (shape[i] < 1 || shape[i] > MAX_ATTR))
      return hn_op_bad(node, error, "output_shape holds %lld", (long long)shape[i]);
    if (n_shape) w->out[i] = shape[i];
    if (w->in[i] < 0 || w->kernel[i] < 0) continue;
    if (w->in[i] < 1) return hn_op_bad(node, error, "spatial dimension %d is empty", (int)i);
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, full;
    if (__builtin_mul_overflow(w->in[i] - 1, w->stride[i], &full) || full > MAX_SIZE)
      return hn_op_bad(node, error, "the output is too large");
    full += reach + extra[i];
    bool same = mode >= PAD_SAME_UPPER;
    if (same && !n_shape) w->out[i] = w->in[i] * w->stride[i];
    if (same || n_shape) { /* the padding follows from the output size */
      int64_t total = hn_max(0, full - w->out[i]), half = total / 2;
      /* The odd element goes to the end for SAME_UPPER, to the beginning otherwise. */
      w->pad[i] = mode == PAD_SAME_UPPER ? half : total - half;
      w->pad_end[i] = total - w->pad[i];
    } else {
      w->out[i] = full - w->pad[i] - w->pad_end[i];
    }
    if (w->out[i] < 1) return hn_op_bad(node, error, "pads leave no output in spatial dimension %d", (int)i);
  }
  return HONE_OK;
}

hn_window hn_window_3d(const hn_window *w) {
  hn_window r = {.n = 3};
  int32_t lead = 3 - w->n;
  for (int32_t i = 0; i < 3; i++) {
    int32_t j = i - lead;
    r.in[i] = j < 0 ? 1 : w->in[j];
    r.kernel[i] = j < 0 ? 1 : w->kernel[j];
    r.stride[i] = j < 0 ? 1 : w->stride[j];
    r.dilation[i] = j < 0 ? 1 : w->dilation[j];
    r.pad[i] = j < 0 ? 0 : w->pad[j];
    r.pad_end[i] = j < 0 ? 0 : w->pad_end[j];
    r.out[i] = j < 0 ? 1 : w->out[j];
  }
  return r;
}

void hn_window_range(const hn_window *w, int32_t d, int64_t k, int64_t *lo, int64_t *hi) {
  int64_t shift = k * w->dilation[d] - w->pad[d]; /* in = out * stride + shift */
  *lo = hn_max(0, ceil_div(-shift, w->stride[d]));
  *hi = hn_min(w->out[d], floor_div(w->in[d] - 1 - shift, w->stride[d]) + 1);
  if (*hi < *lo) *hi = *lo;
}

void hn_window_taps(const hn_window *w, int32_t d, int64_t o, int64_t *lo, int64_t *hi, int64_t *first) {
  int64_t start = o * w->stride[d] - w->pad[d], dil = w->dilation[d];
  *lo = hn_max(0, ceil_div(-start, dil));
  *hi = hn_min(w->kernel[d], ceil_div(w->in[d] - start, dil));
  if (*hi < *lo) *hi = *lo;
  *first = start + *lo * dil;
}
