/* The anchors that only move elements, read as boxes. */
#include "optimize/step/boxes.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "optimize/step/axes.h"

int32_t hn_box_element(hone_dtype dtype) {
  const size_t size = hone_dtype_size(dtype);
  return dtype != HONE_DTYPE_STRING && hone_dtype_is_tensor(dtype) &&
                 (size == 1 || size == 2 || size == 4 || size == 8)
             ? (int32_t)size
             : 0;
}

hn_box_side hn_box_side_of(uint32_t tensor, const hone_tensor_desc *desc) {
  hn_box_side side = {.tensor = tensor};
  for (int32_t i = 0; i < desc->rank; i++) side.stride[i] = desc->stride[i];
  return side;
}

static void add(hn_boxes *b, int32_t element, int32_t rank, const int64_t *dim, const hn_box_side *dst,
                const hn_box_side *src) {
  hn_box box = {.element = element, .rank = rank, .dst = *dst, .src = *src};
  memcpy(box.dim, dim, (size_t)rank * sizeof *dim);
  b->add(b, &box);
}

static bool has(const hone_step *s, uint32_t i) {
  return i < s->n_inputs && s->input[i].desc.dtype != HONE_DTYPE_NONE;
}

bool hn_boxes_check(const hone_step *step, int32_t *element, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc;
  *element = hn_box_element(x->dtype);
  if (!*element) return hn_refuse(why, "%s elements are not moved as plain bits", hone_dtype_name(x->dtype));
  if (step->n_epilogue) return hn_refuse(why, "a move has no epilogue");
  for (uint32_t i = 0; i < step->n_outputs; i++) {
    const hone_tensor_desc *y = &step->output[i].desc;
    if (y->dtype != x->dtype)
      return hn_refuse(why, "output %u is %s, the input %s", i, hone_dtype_name(y->dtype),
                       hone_dtype_name(x->dtype));
    if (!hone_desc_known(y)) return hn_refuse(why, "dimensions of output %u are not known", i);
  }
  return hone_desc_known(x) ? true : hn_refuse(why, "dimensions of the input are not known");
}

/* Transpose of any permutation and layout: one move. */
bool hn_boxes_transpose(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  size_t n;
  const int64_t *perm = hone_node_ints(step->node, "perm", &n);
  if (perm && (int64_t)n != x->rank)
    return hn_refuse(why, "perm has %zu entries for rank %d", n, (int)x->rank);
  hn_box_side dst = hn_box_side_of(0, y), src = {.tensor = 0};
  for (int32_t i = 0; i < x->rank; i++) {
    const int64_t from = perm ? perm[i] : x->rank - 1 - i;
    if (from < 0 || from >= x->rank || x->dim[from] != y->dim[i])
      return hn_refuse(why, "perm does not give the output");
    src.stride[i] = x->stride[from];
  }
  add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

/* Concat along any axis, inputs and output in any layout: one move an input. */
bool hn_boxes_concat(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *y = &step->output[0].desc;
  int32_t element, axis;
  if (!hn_boxes_check(step, &element, why)) return false;
  int64_t at = 0;
  /* Opset 1 allowed to leave the axis out. */
  if (!hn_step_axis(hone_node_int(step->node, "axis", 1), y->rank, &axis, why)) return false;
  for (uint32_t i = 0; i < step->n_anchor_inputs; i++) {
    const hone_tensor_desc *x = &step->input[i].desc;
    if (x->dtype != y->dtype || !hone_desc_known(x) || x->rank != y->rank)
      return hn_refuse(why, "input %u has another type or rank", i);
    hn_box_side dst = hn_box_side_of(0, y);
    const hn_box_side src = hn_box_side_of(i, x);
    dst.at = at * y->stride[axis];
    at += x->dim[axis];
    if (at > y->dim[axis]) return hn_refuse(why, "the inputs are longer than the output");
    if (hone_desc_count(x) > 0) add(b, element, x->rank, x->dim, &dst, &src);
  }
  return true;
}

/* Split along any axis in any layout: one move an output. The sizes are those of the outputs. */
bool hn_boxes_split(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc;
  int32_t element, axis;
  if (!hn_boxes_check(step, &element, why)) return false;
  int64_t at = 0;
  if (!hn_step_axis(hone_node_int(step->node, "axis", 0), x->rank, &axis, why)) return false;
  for (uint32_t i = 0; i < step->n_outputs; i++) {
    const hone_tensor_desc *y = &step->output[i].desc;
    const hn_box_side dst = hn_box_side_of(i, y);
    hn_box_side src = hn_box_side_of(0, x);
    if (y->rank != x->rank) return hn_refuse(why, "output %u has another rank", i);
    src.at = at * x->stride[axis];
    at += y->dim[axis];
    if (at > x->dim[axis]) return hn_refuse(why, "the outputs are longer than the input");
    if (hone_desc_count(y) > 0) add(b, element, y->rank, y->dim, &dst, &src);
  }
  return true;
}

/* Slice with constant bounds, any steps, any layout: one move. */
bool hn_boxes_slice(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int64_t starts[HONE_MAX_RANK], axes[HONE_MAX_RANK], steps[HONE_MAX_RANK];
  int32_t n, n_axes, n_steps, element, axis;
  if (!hn_boxes_check(step, &element, why)) return false;
  if (!hn_step_ints(step, "starts", 1, starts, &n) || !hn_step_ints(step, "axes", 3, axes, &n_axes) ||
      !hn_step_ints(step, "steps", 4, steps, &n_steps))
    return hn_refuse(why, "starts, axes and steps must be constant");
  const hn_box_side dst = hn_box_side_of(0, y);
  hn_box_side src = hn_box_side_of(0, x);
  for (int32_t i = 0; i < n; i++) {
    const int64_t by = n_steps ? steps[i] : 1;
    if (!hn_step_axis(n_axes ? axes[i] : i, x->rank, &axis, why)) return false;
    if (by == 0) return hn_refuse(why, "the step of axis %d is 0", (int)axis);
    const int64_t dim = x->dim[axis], last = by < 0 ? dim - 1 : dim;
    int64_t from = starts[i] < 0 ? starts[i] + dim : starts[i];
    from = from < 0 ? 0 : from > last ? last : from;
    /* The end is where inference put it: the output's dimension. */
    if (y->dim[axis] > 0 && (from + (y->dim[axis] - 1) * by < 0 || from + (y->dim[axis] - 1) * by >= dim))
      return hn_refuse(why, "axis %d leaves the input", (int)axis);
    src.at += from * x->stride[axis];
    src.stride[axis] = x->stride[axis] * by;
  }
  if (hone_desc_count(y) > 0) add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

/* Expand: the input broadcast to the output's dimensions, one move with strides of 0. */
bool hn_boxes_expand(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  const hn_box_side dst = hn_box_side_of(0, y);
  hn_box_side src = {.tensor = 0};
  const int32_t lead = y->rank - x->rank;
  /* Inference may know the result without the shape, but not whether the input broadcasts with it. */
  if (!step->input[1].constant) return hn_refuse(why, "the shape is known in the run only");
  if (lead < 0) return hn_refuse(why, "the output has fewer dimensions than the input");
  for (int32_t i = 0; i < x->rank; i++) {
    if (x->dim[i] != 1 && x->dim[i] != y->dim[lead + i])
      return hn_refuse(why, "dimension %d does not broadcast", (int)i);
    src.stride[lead + i] = x->dim[i] == 1 ? 0 : x->stride[i];
  }
  add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

/* Tile: every dimension becomes (repeats, size), the repeats with stride 0 in the input; one move. */
bool hn_boxes_tile(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element, rank = 0;
  if (!hn_boxes_check(step, &element, why)) return false;
  int64_t dim[HN_NEST_RANK];
  hn_box_side dst = {.tensor = 0}, src = {.tensor = 0};
  if (y->rank != x->rank) return hn_refuse(why, "input and output differ in rank");
  if (hone_desc_count(x) == 0) return true;
  for (int32_t i = 0; i < x->rank; i++) {
    const int64_t repeats = y->dim[i] / x->dim[i];
    if (rank + 2 > HN_NEST_RANK) return hn_refuse(why, "too many repeated dimensions");
    if (repeats != 1)
      dim[rank] = repeats, dst.stride[rank] = y->stride[i] * x->dim[i], src.stride[rank++] = 0;
    dim[rank] = x->dim[i], dst.stride[rank] = y->stride[i], src.stride[rank++] = x->stride[i];
  }
  add(b, element, rank, dim, &dst, &src);
  return true;
}

/* Where index i of a constant tensor lies in a dimension of `dim`; not within it where there is no such
 * place. */
static int64_t place(const hone_step_tensor *t, int64_t i, int64_t dim) {
  const int64_t v =
      t->desc.dtype == HONE_DTYPE_I64 ? ((const int64_t *)t->constant)[i] : ((const int32_t *)t->constant)[i];
  return v < 0 ? v + dim : v;
}

/* The step of row-major indices along each of their dimensions, where they have one and all lie within
 * `dim`. */
static bool even_steps(const hone_step_tensor *t, int64_t dim, int64_t *step) {
  const hone_tensor_desc *d = &t->desc;
  const int64_t n = hone_desc_count(d), first = place(t, 0, dim);
  for (int32_t k = 0; k < d->rank; k++) step[k] = d->dim[k] > 1 ? place(t, d->stride[k], dim) - first : 0;
  for (int64_t i = 0; i < n; i++) {
    const int64_t at = place(t, i, dim);
    int64_t even = first;
    for (int32_t k = 0; k < d->rank; k++) even += i / d->stride[k] % d->dim[k] * step[k];
    if (at != even || at < 0 || at >= dim) return false;
  }
  return true;
}

/* Gather: the axis becomes the dimensions of the indices, in any layout of the data; one move. */
bool hn_boxes_gather(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc, *i = &step->input[1].desc;
  int64_t by[HONE_MAX_RANK];
  int32_t element, axis;
  if (!hn_boxes_check(step, &element, why)) return false;
  if (!step->input[1].constant) return hn_refuse(why, "indices are known in the run only");
  if ((i->dtype != HONE_DTYPE_I64 && i->dtype != HONE_DTYPE_I32) || i->layout != HONE_LAYOUT_ROW_MAJOR)
    return hn_refuse(why, "indices are %s", hone_dtype_name(i->dtype));
  if (!hn_step_axis(hone_node_int(step->node, "axis", 0), x->rank, &axis, why)) return false;
  if (y->rank != x->rank - 1 + i->rank) return hn_refuse(why, "the output has another rank");
  if (hone_desc_count(i) <= 0) return hn_refuse(why, "no indices");
  if (!even_steps(&step->input[1], x->dim[axis], by)) return hn_refuse(why, "indices do not step evenly");
  const hn_box_side dst = hn_box_side_of(0, y);
  hn_box_side src = {.tensor = 0, .at = place(&step->input[1], 0, x->dim[axis]) * x->stride[axis]};
  for (int32_t k = 0; k < y->rank; k++) {
    const int64_t d = k - axis;
    src.stride[k] = d < 0 ? x->stride[k] : d < i->rank ? by[d] * x->stride[axis] : x->stride[k - i->rank + 1];
  }
  if (hone_desc_count(y) > 0) add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}

/* DepthToSpace, both modes and any layout: the channel is split into (block, block, rest) or (rest, block,
 * block). */
bool hn_boxes_depth_to_space(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  const int64_t k = hone_node_int(step->node, "blocksize", 1);
  const bool crd = !strcmp(hone_node_string(step->node, "mode", "DCR"), "CRD");
  if (x->rank != 4 || y->rank != 4 || k < 1 || x->dim[1] != y->dim[1] * k * k)
    return hn_refuse(why, "not four-dimensional blocks");
  const int64_t rest = y->dim[1];
  /* n, block row, block column, c, h, w */
  const int64_t dim[6] = {x->dim[0], k, k, rest, x->dim[2], x->dim[3]};
  const hn_box_side src = {0,
                           0,
                           {x->stride[0], x->stride[1] * (crd ? k : k * rest),
                            x->stride[1] * (crd ? 1 : rest), x->stride[1] * (crd ? k * k : 1), x->stride[2],
                            x->stride[3]}};
  const hn_box_side dst = {
      0, 0, {y->stride[0], y->stride[2], y->stride[3], y->stride[1], y->stride[2] * k, y->stride[3] * k}};
  add(b, element, 6, dim, &dst, &src);
  return true;
}

/* SpaceToDepth, both modes and any layout: one move. */
bool hn_boxes_space_to_depth(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  const int64_t k = hone_node_int(step->node, "blocksize", 1);
  const bool crd = !strcmp(hone_node_string(step->node, "mode", "DCR"), "CRD");
  if (x->rank != 4 || y->rank != 4 || k < 1 || y->dim[1] != x->dim[1] * k * k)
    return hn_refuse(why, "not four-dimensional blocks");
  const int64_t c = x->dim[1];
  /* n, block row, block column, c, h, w */
  const int64_t dim[6] = {x->dim[0], k, k, c, y->dim[2], y->dim[3]};
  const hn_box_side src = {
      0, 0, {x->stride[0], x->stride[2], x->stride[3], x->stride[1], x->stride[2] * k, x->stride[3] * k}};
  const hn_box_side dst = {0,
                           0,
                           {y->stride[0], y->stride[1] * (crd ? k : k * c), y->stride[1] * (crd ? 1 : c),
                            y->stride[1] * (crd ? k * k : 1), y->stride[2], y->stride[3]}};
  add(b, element, 6, dim, &dst, &src);
  return true;
}

/* Pad with a constant and constant widths (negative widths crop), any layout: the borders are filled, the
 * rest is one move. */
/* Begin and end widths per dimension. */
bool hn_boxes_widths(const hone_step *step, int64_t *begin, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc;
  size_t n = 0;
  const int64_t *pads = hone_node_ints(step->node,
                                       hone_node_has(step->node, "paddings") ? "paddings" : "pads", &n),
                *axes = NULL;
  int64_t n_axes = x->rank;
  memset(begin, 0, HONE_MAX_RANK * sizeof *begin);
  if (!pads && step->n_anchor_inputs > 1 && has(step, 1))
    pads = step->input[1].constant, n = (size_t)hone_desc_count(&step->input[1].desc);
  if (!pads && n) return hn_refuse(why, "the widths are not constant");
  if (step->n_anchor_inputs > 3 && has(step, 3)) {
    if (step->input[3].desc.dtype != HONE_DTYPE_I64 || !step->input[3].constant)
      return hn_refuse(why, "the axes are not constant i64");
    axes = step->input[3].constant, n_axes = hone_desc_count(&step->input[3].desc);
  }
  if ((int64_t)n != 2 * n_axes) return hn_refuse(why, "%zu widths for %lld axes", n, (long long)n_axes);
  for (int64_t i = 0; i < n_axes; i++) {
    const int64_t axis = !axes ? i : axes[i] < 0 ? axes[i] + x->rank : axes[i];
    if (axis < 0 || axis >= x->rank) return hn_refuse(why, "axis outside the rank");
    begin[axis] = pads[i];
  }
  return true;
}

/* Bits of an f32 in the storage type of the data. */
static bool float_bits(float v, hone_dtype dtype, uint64_t *bits, hone_reason *why) {
  switch (dtype) {
  case HONE_DTYPE_F32: *bits = hn_f32_bits(v); return true;
  case HONE_DTYPE_F16: *bits = hn_f32_to_f16(v); return true;
  case HONE_DTYPE_BF16: *bits = hn_f32_to_bf16(v); return true;
  default: return hn_refuse(why, "the value is f32, the data %s", hone_dtype_name(dtype));
  }
}

static bool value_bits(const hone_step *step, int32_t element, uint64_t *bits, hone_reason *why) {
  const hone_dtype dtype = step->input[0].desc.dtype;
  *bits = 0;
  if (step->n_anchor_inputs > 2 && has(step, 2)) {
    const hone_step_tensor *t = &step->input[2];
    float v;
    if (!t->constant) return hn_refuse(why, "the value is not constant");
    if (t->desc.dtype == dtype) {
      memcpy(bits, t->constant, (size_t)element);
      return true;
    }
    if (t->desc.dtype != HONE_DTYPE_F32)
      return hn_refuse(why, "the value is %s", hone_dtype_name(t->desc.dtype));
    memcpy(&v, t->constant, sizeof v);
    return float_bits(v, dtype, bits, why);
  }
  if (hone_node_has(step->node, "value"))
    return float_bits(hone_node_float(step->node, "value", 0), dtype, bits, why);
  return true;
}

bool hn_boxes_pad(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int64_t begin[HONE_MAX_RANK], box_at[HONE_MAX_RANK] = {0}, box[HONE_MAX_RANK] = {0};
  uint64_t bits;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  if (strcmp(hone_node_string(step->node, "mode", "constant"), "constant") != 0)
    return hn_refuse(why, "only constant padding");
  if (x->rank != y->rank || !hn_boxes_widths(step, begin, why) || !value_bits(step, element, &bits, why))
    return false;
  b->fill = bits;
  for (int32_t i = 0; i < y->rank; i++) box[i] = y->dim[i];
  hn_box_side dst = hn_box_side_of(0, y), src = hn_box_side_of(0, x);
  const hn_box_side zero = {.tensor = HN_BOX_FILL};
  /* Peel the borders off the output box, dimension by dimension; what remains is the copy. */
  for (int32_t i = 0; i < y->rank; i++) {
    const int64_t lo = begin[i] > 0 ? begin[i] : 0, crop = begin[i] < 0 ? -begin[i] : 0;
    const int64_t room = y->dim[i] - lo, keep = x->dim[i] - crop < room ? x->dim[i] - crop : room;
    const int64_t copied = keep > 0 ? keep : 0,
                  part[2][2] = {{0, lo < y->dim[i] ? lo : y->dim[i]}, {lo + copied, room - copied}};
    for (int k = 0; k < 2; k++) {
      int64_t dim[HONE_MAX_RANK];
      memcpy(dim, box, sizeof dim);
      dim[i] = part[k][1];
      if (dim[i] <= 0) continue;
      hn_box_side border = dst;
      border.at = part[k][0] * y->stride[i];
      for (int32_t j = 0; j < i; j++) border.at += box_at[j] * y->stride[j];
      add(b, element, y->rank, dim, &border, &zero);
    }
    box_at[i] = lo, box[i] = copied;
    dst.at += lo * y->stride[i], src.at += crop * x->stride[i];
    if (copied == 0) return true;
  }
  add(b, element, y->rank, box, &dst, &src);
  return true;
}

/* Reformat: the same elements in another layout (row-major to channels-last and back, other channel pitches).
 */
bool hn_boxes_reformat(const hone_step *step, hn_boxes *b, hone_reason *why) {
  const hone_tensor_desc *x = &step->input[0].desc, *y = &step->output[0].desc;
  int32_t element;
  if (!hn_boxes_check(step, &element, why)) return false;
  if (!hone_desc_same_dims(x, y)) return hn_refuse(why, "a reformat keeps the dimensions");
  const hn_box_side dst = hn_box_side_of(0, y), src = hn_box_side_of(0, x);
  add(b, element, y->rank, y->dim, &dst, &src);
  return true;
}
