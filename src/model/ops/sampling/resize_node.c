/* From a Resize or Upsample node of any opset to hn_resize (resample.h), and its reference. */
#include "model/ops/sampling/resample.h"

/* Output sizes beyond this are refused before they overflow anything. */
#define MAX_OUT ((double)(1LL << 40))

/* Position of `text` in a list of names ended by NULL; -1: not there. */
static int choice(const char *text, const char *const *names) {
  for (int i = 0; names[i]; i++)
    if (!strcmp(text, names[i])) return i;
  return -1;
}

static hone_status read_attributes(hn_resize *r, const hone_node *node, hone_error *error) {
  static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", NULL};
  static const char *const coords[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",   "align_corners",
      "asymmetric", "tf_crop_and_resize",   "tf_half_pixel_for_nn", NULL};
  static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", NULL};
  const char *mode = hone_node_string(node, "mode", "nearest");
  int m = choice(mode, modes);
  if (m < 0) return hn_op_bad(node, error, "mode is \"%s\"", mode);
  r->mode = m == 3 ? HN_RESIZE_LINEAR : (hn_resize_mode)m;
  /* Before opset 11 coordinates are scaled about the corner. */
  bool old = hone_node_opset(node) < 11;
  const char *coord =
      hone_node_string(node, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  const char *nearest = hone_node_string(node, "nearest_mode", "round_prefer_floor");
  int c = choice(coord, coords), n = choice(nearest, nearests);
  if (c < 0) return hn_op_bad(node, error, "coordinate_transformation_mode is \"%s\"", coord);
  if (n < 0) return hn_op_bad(node, error, "nearest_mode is \"%s\"", nearest);
  r->coord = (hn_resize_coord)c;
  r->nearest = old ? HN_NEAREST_UNNAMED : (hn_resize_nearest)n;
  r->cubic_a = hone_node_float(node, "cubic_coeff_a", -0.75f);
  r->extrapolation = hone_node_float(node, "extrapolation_value", 0);
  r->exclude_outside = hone_node_int(node, "exclude_outside", 0) != 0;
  r->antialias = hone_node_int(node, "antialias", 0) != 0 && r->mode != HN_RESIZE_NEAREST;
  return HONE_OK;
}

/* The axes that roi, scales and sizes speak of, in their order. */
static hone_status read_axes(const hone_node *node, int32_t rank, int32_t *axes, int32_t *n,
                             hone_error *error) {
  size_t count = 0;
  const int64_t *list = hone_node_ints(node, "axes", &count);
  bool seen[HONE_MAX_RANK] = {false};
  *n = count ? (int32_t)count : rank;
  if (count > (size_t)rank)
    return hn_op_bad(node, error, "axes has %zu values for rank %d", count, (int)rank);
  for (int32_t i = 0; i < *n; i++) {
    axes[i] = i;
    hone_status s = count ? hn_axis(list[i], rank, &axes[i], error) : HONE_OK;
    if (s) return s;
    if (seen[axes[i]]) return hn_op_bad(node, error, "axes repeats %d", (int)axes[i]);
    seen[axes[i]] = true;
  }
  return HONE_OK;
}

static hone_status apply_scales(hn_resize *r, const hone_node *node, const float *scale, const int32_t *axes,
                                int32_t n, bool *known, hone_error *error) {
  for (int32_t i = 0; i < n; i++) {
    int32_t d = axes[i];
    if (!(scale[i] > 0) || !isfinite(scale[i]))
      return hn_op_bad(node, error, "a scale is %g", (double)scale[i]);
    r->scale[d] = scale[i];
    if (r->in[d] < 0) {
      if (scale[i] == 1) continue; /* an unknown dimension that stays what it is */
      r->out[d] = HONE_DIM_UNKNOWN;
      *known = false;
      continue;
    }
    /* In f32: a double product would round 10 * 0.3f down. */
    float out = floorf((float)r->in[d] * scale[i]);
    if (!(out < MAX_OUT)) return hn_op_bad(node, error, "the output is too large");
    r->out[d] = (int64_t)out;
    r->length[d] = (float)r->in[d] * scale[i];
  }
  return HONE_OK;
}

static hone_status apply_sizes(hn_resize *r, const hone_node *node, const int64_t *size, const int32_t *axes,
                               int32_t n, bool *known, hone_error *error) {
  static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
  const char *text = hone_node_string(node, "keep_aspect_ratio_policy", "stretch");
  int policy = choice(text, policies);
  float common = 0;
  if (policy < 0) return hn_op_bad(node, error, "keep_aspect_ratio_policy is \"%s\"", text);
  for (int32_t i = 0; i < n; i++) {
    int32_t d = axes[i];
    if (size[i] < 0 || (double)size[i] > MAX_OUT)
      return hn_op_bad(node, error, "a size is %lld", (long long)size[i]);
    r->out[d] = size[i];
    r->length[d] = (float)size[i];
    if (r->in[d] < 0) {
      *known = false;
      if (policy) r->out[d] = HONE_DIM_UNKNOWN;
      continue;
    }
    if (r->in[d] == 0 && size[i] > 0) return hn_op_bad(node, error, "dimension %d is empty", (int)d);
    r->scale[d] = r->in[d] ? (float)size[i] / (float)r->in[d] : 1;
    if (i == 0 || (policy == 1 ? r->scale[d] < common : r->scale[d] > common)) common = r->scale[d];
  }
  if (!policy) return HONE_OK;
  for (int32_t i = 0; i < n; i++) {
    if (!*known) {
      r->out[axes[i]] = HONE_DIM_UNKNOWN;
      continue;
    }
    r->scale[axes[i]] = common;
    r->length[axes[i]] = common * (float)r->in[axes[i]];
    r->out[axes[i]] = (int64_t)floorf(r->length[axes[i]] + 0.5f);
  }
  return HONE_OK;
}

/* Present means: there, and not known to be empty (how opsets 11 and 12 leave an input out). */
static bool present(const hone_tensor_desc *const *input, uint32_t n_inputs, uint32_t i) {
  return i < n_inputs && input[i] && !(input[i]->rank == 1 && input[i]->dim[0] == 0);
}

/* Up to HONE_MAX_RANK * 2 values as float; an error unless there are `want`. */
static hone_status read_floats(const hone_node *node, const hone_tensor *t, float *out, int32_t want,
                               const char *what, hone_error *error) {
  if (hn_count(t) != want)
    return hn_op_bad(node, error, "%s has %lld values, expected %d", what, (long long)hn_count(t), (int)want);
  for (int32_t i = 0; i < want; i++) out[i] = (float)hn_get_f64(t, i);
  return HONE_OK;
}

static hone_status read_sizes(const hone_node *node, const hone_tensor *t, int64_t *out, int32_t want,
                              hone_error *error) {
  if (hn_tensor_ints(t, out, HONE_MAX_RANK) != want)
    return hn_op_bad(node, error, "sizes has %lld values, expected %d", (long long)hn_count(t), (int)want);
  return HONE_OK;
}

hone_status hn_resize_init(hn_resize *r, const hone_node *node, const hone_tensor_desc *const *input,
                           const hone_tensor *const *value, uint32_t n_inputs, bool *known,
                           hone_error *error) {
  const hone_tensor_desc *x = input[0];
  int32_t axes[HONE_MAX_RANK], n = 0;
  float f[2 * HONE_MAX_RANK];
  int64_t sizes[HONE_MAX_RANK];
  bool resize11 = hone_node_opset(node) >= 11 && !strcmp(hone_node_op(node), "Resize");
  uint32_t at = resize11 ? 2 : 1;
  *r = (hn_resize){.rank = x->rank};
  *known = true;
  hone_status s = read_attributes(r, node, error);
  if (!s) s = read_axes(node, x->rank, axes, &n, error);
  if (s) return s;
  for (int32_t d = 0; d < x->rank; d++) {
    r->in[d] = r->out[d] = x->dim[d];
    r->scale[d] = r->end[d] = 1;
    r->length[d] = (float)x->dim[d];
    if (x->dim[d] < 0) *known = false;
  }
  if (r->coord == HN_COORD_TF_CROP) {
    if (!present(input, n_inputs, 1)) return hn_op_bad(node, error, "tf_crop_and_resize needs roi");
    if (value[1] && (s = read_floats(node, value[1], f, 2 * n, "roi", error))) return s;
    for (int32_t i = 0; value[1] && i < n; i++) {
      r->start[axes[i]] = f[i];
      r->end[axes[i]] = f[n + i];
    }
  }
  size_t n_attr = 0;
  const float *attr = hone_node_floats(node, "scales", &n_attr); /* Upsample up to opset 8 */
  const float plane[4] = {1, 1, hone_node_float(node, "height_scale", 0),
                          hone_node_float(node, "width_scale", 0)};
  if (hone_node_has(node, "height_scale") && hone_node_opset(node) < 7) {
    if (n != 4) return hn_op_bad(node, error, "the input has rank %d, expected 4", (int)n);
    return apply_scales(r, node, plane, axes, n, known, error);
  }
  if (n_attr) {
    if (n_attr != (size_t)n)
      return hn_op_bad(node, error, "scales has %zu values, expected %d", n_attr, (int)n);
    return apply_scales(r, node, attr, axes, n, known, error);
  }
  bool by_scale = present(input, n_inputs, at), by_size = resize11 && present(input, n_inputs, 3);
  if (by_scale && by_size && value[at] && value[3])
    return hn_op_bad(node, error, "both scales and sizes are given");
  if (!by_scale && !by_size) return hn_op_bad(node, error, "neither scales nor sizes is given");
  if (by_scale && value[at]) {
    if ((s = read_floats(node, value[at], f, n, "scales", error))) return s;
    return apply_scales(r, node, f, axes, n, known, error);
  }
  if (by_size && value[3]) {
    if ((s = read_sizes(node, value[3], sizes, n, error))) return s;
    return apply_sizes(r, node, sizes, axes, n, known, error);
  }
  for (int32_t i = 0; i < n; i++) r->out[axes[i]] = HONE_DIM_UNKNOWN;
  *known = false;
  return HONE_OK;
}

hone_status hn_resize_infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_resize r = {.rank = x->rank};
  bool known;
  for (uint32_t i = 1; i < io->n_inputs; i++) {
    hone_status s = hn_infer_dtype_in(io, i, i == 3 ? HONE_TYPES(HONE_DTYPE_I64) : HN_TYPES_FLOAT, error);
    if (s) return s;
  }
  if (x->rank >= 0) {
    hone_status s = hn_resize_init(&r, io->node, io->input, io->value, io->n_inputs, &known, error);
    if (s) return s;
    if (r.mode != HN_RESIZE_NEAREST && x->dtype == HONE_DTYPE_STRING)
      return hn_op_bad(io->node, error, "strings cannot be interpolated");
  }
  hn_infer_set(io, 0, x->dtype, r.rank, r.out);
  return HONE_OK;
}

void hn_resize_cost(const hone_infer *io, hone_cost *cost) {
  const char *mode = hone_node_string(io->node, "mode", "nearest");
  double taps = !strcmp(mode, "nearest") ? 0 : !strcmp(mode, "cubic") ? 4 : 2, each = 0;
  const hone_tensor_desc *x = io->input[0], *y = io->output[0];
  for (int32_t d = 0; y && d < y->rank && d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) each += 2 * taps;
  hn_cost_flops(cost, y ? each * hn_known_count(y) : 0);
}

/* ------------------------------------------------------------------ reference */

static hone_status make_table(hone_call *call, const hn_resize *r, int32_t d, hn_resample_axis *t,
                              hone_error *error) {
  int64_t n, taps = hn_resample_taps(r, d);
  if (__builtin_mul_overflow(r->out[d], taps, &n))
    return hn_op_bad(call->node, error, "the output is too large");
  t->index = hn_scratch(call, n, sizeof *t->index, error);
  t->weight = t->index ? hn_scratch(call, n, sizeof *t->weight, error) : NULL;
  t->outside = t->weight ? hn_scratch(call, r->out[d], sizeof *t->outside, error) : NULL;
  if (!t->outside) return HONE_ERROR_MEMORY;
  hn_resample_fill(r, d, t);
  return HONE_OK;
}

/* Copies elements of any dtype along the index tables. */
static void gather(const hn_resize *r, const hn_resample_axis *t, const hone_tensor *x, hone_tensor *y) {
  size_t size = hone_dtype_size(x->desc.dtype);
  int64_t at[HONE_MAX_RANK] = {0}, count = hn_count(y);
  int32_t last = r->rank - 1;
  for (int64_t o = 0; o < count;) {
    int64_t base = 0, n = last < 0 ? 1 : r->out[last];
    for (int32_t d = 0; d < r->rank; d++) base = base * r->in[d] + (d < last ? t[d].index[at[d]] : 0);
    for (int64_t i = 0; i < n; i++, o++) {
      int64_t from = base + (last < 0 ? 0 : t[last].index[i]);
      memcpy((char *)y->data + (size_t)o * size, (const char *)x->data + (size_t)from * size, size);
    }
    for (int32_t d = last - 1; d >= 0; d--) {
      if (++at[d] < r->out[d]) break;
      at[d] = 0;
    }
  }
}

/* One axis of the separable interpolation: [outer][in][inner] to [outer][out][inner]. */
static void pass(const hn_resample_axis *t, const double *x, double *y, int64_t outer, int64_t in,
                 int64_t out, int64_t inner) {
  for (int64_t p = 0; p < outer; p++)
    for (int64_t o = 0; o < out; o++) {
      double *to = y + (p * out + o) * inner;
      for (int64_t i = 0; i < inner; i++) to[i] = 0;
      for (int64_t k = o * t->taps; k < (o + 1) * t->taps; k++) {
        const double *from = x + (p * in + t->index[k]) * inner, w = t->weight[k];
        for (int64_t i = 0; i < inner; i++) to[i] += w * from[i];
      }
    }
}

static hone_status interpolate(hone_call *call, const hn_resize *r, const hn_resample_axis *t,
                               const hone_tensor *x, hone_tensor *y, hone_error *error) {
  int64_t dim[HONE_MAX_RANK];
  const double *now = hn_all_f64(call, x, error);
  if (!now) return HONE_ERROR_MEMORY;
  for (int32_t d = 0; d < r->rank; d++) dim[d] = r->in[d];
  for (int32_t d = r->rank - 1; d >= 0; d--) {
    if (t[d].identity) continue;
    int64_t outer = 1, inner = 1, n;
    for (int32_t i = 0; i < d; i++) outer *= dim[i];
    for (int32_t i = d + 1; i < r->rank; i++)
      if (__builtin_mul_overflow(inner, dim[i], &inner))
        return hn_op_bad(call->node, error, "it is too large");
    if (__builtin_mul_overflow(outer, inner, &n) || __builtin_mul_overflow(n, r->out[d], &n))
      return hn_op_bad(call->node, error, "it is too large");
    double *next = hn_scratch(call, n, sizeof *next, error);
    if (!next) return HONE_ERROR_MEMORY;
    if (call->stopped(call)) return HONE_ERROR_CANCELLED;
    pass(&t[d], now, next, outer, dim[d], r->out[d], inner);
    dim[d] = r->out[d];
    now = next;
  }
  if (hone_dtype_is_float(y->desc.dtype)) {
    hn_store_f64(y, 0, now, hn_count(y));
    return HONE_OK;
  }
  /* Integers are truncated, after f32 has rounded away what the weights lack to one: 174.9999999 is 175. With
   * antialiasing they are rounded, as Pillow does and every runtime after it. */
  for (int64_t i = 0, n = hn_count(y); i < n; i++) {
    double v = r->antialias ? floor(now[i] + 0.5) : (double)(float)now[i];
    hn_store_f64(y, i, &v, 1);
  }
  return HONE_OK;
}

/* Elements whose source lies outside the region of interest, for dtypes that can hold the value. */
static void extrapolate(const hn_resize *r, const hn_resample_axis *t, hone_tensor *y) {
  int64_t at[HONE_MAX_RANK] = {0}, count = hn_count(y);
  for (int64_t o = 0; o < count; o++) {
    bool outside = false;
    for (int32_t d = 0; d < r->rank; d++) outside |= t[d].outside[at[d]];
    if (outside) hn_set_f64(y, o, r->extrapolation);
    for (int32_t d = r->rank - 1; d >= 0; d--) {
      if (++at[d] < r->out[d]) break;
      at[d] = 0;
    }
  }
}

hone_status hn_resize_reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *desc[4] = {NULL};
  hn_resample_axis table[HONE_MAX_RANK];
  hn_resize r;
  bool known;
  for (uint32_t i = 0; i < call->n_inputs && i < 4; i++)
    desc[i] = call->input[i] ? &call->input[i]->desc : NULL;
  hone_status s = hn_resize_init(&r, call->node, desc, call->input, call->n_inputs, &known, error);
  if (s || hn_count(y) == 0) return s;
  for (int32_t d = 0; d < r.rank; d++)
    if ((s = make_table(call, &r, d, &table[d], error))) return s;
  if (r.mode == HN_RESIZE_NEAREST)
    gather(&r, table, x, y);
  else if ((s = interpolate(call, &r, table, x, y, error)))
    return s;
  if (r.coord == HN_COORD_TF_CROP && x->desc.dtype != HONE_DTYPE_STRING) extrapolate(&r, table, y);
  return HONE_OK;
}
