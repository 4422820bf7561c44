#include "base/dims.h"
#include "model/padding_rules.h"
#include "model/ops/normalize/training.h"

#include "model/ops/common/op.h"

#include <stdio.h>
#include <string.h>

bool hn_pad_axis(const hone_tensor_desc *small, const hone_tensor_desc *large, int64_t wanted, int64_t size,
                 hn_pad *out) {
  int32_t axis = -1;
  if (!hone_desc_known(small) || !hone_desc_known(large) || small->rank != large->rank) return false;
  for (int32_t k = 0; k < small->rank; k++) {
    if (small->dim[k] == large->dim[k]) continue;
    if (axis >= 0) return false;
    axis = k;
  }
  if (axis < 0 || small->dim[axis] % wanted || large->dim[axis] % size) return false;
  const int64_t each = small->dim[axis] / wanted;
  if (each < 1 || large->dim[axis] / size != each) return false;
  *out = (hn_pad){HN_PAD_ROWS, axis, each};
  return true;
}

/* ------------------------------------------------------------------ what rules ask */

static int32_t rank_of(const hn_pad_node *n, uint32_t i) { return n->small->in[i]->desc.rank; }
static bool there(const hn_pad_node *n, uint32_t i) { return i < n->small->n_in && n->small->in[i]; }
static bool rows(const hn_pad_node *n, uint32_t i) { return there(n, i) && n->in[i].kind == HN_PAD_ROWS; }
static bool same(const hn_pad_node *n, uint32_t i) { return !there(n, i) || n->in[i].kind == HN_PAD_SAME; }

static bool same_from(const hn_pad_node *n, uint32_t first) {
  for (uint32_t i = first; i < n->small->n_in; i++)
    if (!same(n, i)) return false;
  return true;
}

static bool no(hone_reason *why, const char *text) { return hn_refuse(why, "%s", text); }

/* The attribute, from the front. */
static int32_t axis_attr(const hn_pad_node *n, const char *name, int64_t otherwise, int32_t rank) {
  const int64_t a = hone_node_int(n->small, name, otherwise);
  return (int32_t)(a < 0 ? a + rank : a);
}

/* Integers that an attribute (old opsets) or an input says. False: they are not known. side 1: in `large`. */
static bool ints(const hn_pad_node *n, int side, const char *name, uint32_t i, int64_t out[HONE_MAX_RANK * 2],
                 size_t *count) {
  const int64_t *list = name ? hone_node_ints(n->small, name, count) : NULL;
  if (list) {
    if (*count > HONE_MAX_RANK * 2) return false;
    memcpy(out, list, *count * sizeof *out);
    return true;
  }
  *count = 0;
  if (!there(n, i)) return true;
  const hone_tensor *t = side ? n->large_value[i] : n->small_value[i];
  const int64_t got = t && t->data ? hn_tensor_ints(t, out, HONE_MAX_RANK * 2) : -1;
  if (got < 0) return false;
  *count = (size_t)got;
  return true;
}

static bool as_input(const hn_pad_node *n, uint32_t i, hn_pad *out) {
  *out = n->in[i];
  return true;
}

/* ------------------------------------------------------------------ rules */

/* Elements meet those at their own place. */
static bool broadcast(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const int32_t rank = n->small->out[0]->desc.rank;
  bool found = false;
  for (uint32_t i = 0; i < n->small->n_in; i++) {
    if (!there(n, i)) continue;
    if (n->in[i].kind == HN_PAD_SIZE) return no(why, "computes with its size");
    if (n->in[i].kind == HN_PAD_SAME) continue;
    const hn_pad at = {HN_PAD_ROWS, n->in[i].axis + rank - rank_of(n, i), n->in[i].each};
    if (found && (at.axis != out->axis || at.each != out->each))
      return no(why, "joins it with itself along another axis");
    *out = at;
    found = true;
  }
  for (uint32_t i = 0; i < n->small->n_in; i++) {
    if (!there(n, i) || n->in[i].kind != HN_PAD_SAME) continue;
    const int32_t k = out->axis - (rank - rank_of(n, i));
    if (k >= 0 && n->small->in[i]->desc.dim[k] != 1) return no(why, "meets a tensor of fixed length there");
  }
  return found || no(why, "does not follow it");
}

/* The same elements in the same order under other dimensions. */
static bool view(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0)) return no(why, "makes a shape of its size");
  const hone_tensor_desc *from = &n->small->in[0]->desc, *to = &n->small->out[0]->desc;
  if (!hn_pad_axis(to, &n->large->out[0]->desc, n->wanted, n->size, out))
    return no(why, "joins it with a dimension before it, or spreads it");
  return hn_dims(from, 0, n->in[0].axis) == hn_dims(to, 0, out->axis) ||
         no(why, "joins it with a dimension before it");
}

/* Independent along every axis but those from `axis` on (all: true) or `axis` alone. */
static bool off_axis(const hn_pad_node *n, int32_t axis, bool all, const char *verb, hn_pad *out,
                     hone_reason *why) {
  if (!rows(n, 0) || !same_from(n, 1)) return no(why, "computes with its size");
  if (all ? n->in[0].axis >= axis : n->in[0].axis == axis) return no(why, verb);
  return as_input(n, 0, out);
}

static bool softmax(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const bool flat = n->small->opset < 13; /* everything from the axis on is one */
  return off_axis(n, axis_attr(n, "axis", flat ? 1 : -1, rank_of(n, 0)), flat, "normalises over it", out,
                  why);
}

static bool normalize_from(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return off_axis(n, axis_attr(n, "axis", -1, rank_of(n, 0)), true, "normalises over it", out, why);
}

static bool normalize_at(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return off_axis(n, axis_attr(n, "axis", -1, rank_of(n, 0)), false, "normalises over it", out, why);
}

/* Samples (axis 0) are alone; along any other axis neighbours meet. */
static bool samples(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0) || !same_from(n, 1)) return no(why, "does not take it in input 0 alone");
  if (n->in[0].axis) return no(why, "works across that dimension");
  return as_input(n, 0, out);
}

static bool grid_sample(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0) || !rows(n, 1) || n->in[0].axis || n->in[1].axis)
    return no(why, "works across that dimension");
  return as_input(n, 0, out);
}

static bool batch_norm(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (hn_batch_norm_trains(n->small)) return no(why, "is in training mode: it averages over the batch");
  return off_axis(n, 1, false, "has it as channels", out, why);
}

static bool dropout(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const hone_tensor *t = there(n, 2) ? n->small_value[2] : NULL;
  if (there(n, 2) && (!t || !t->data || *(const uint8_t *)t->data)) return no(why, "may be in training mode");
  return rows(n, 0) ? as_input(n, 0, out) : no(why, "does not take it in input 0");
}

static bool reduce(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  int64_t axes[HONE_MAX_RANK * 2];
  size_t count;
  const int32_t rank = rank_of(n, 0);
  if (!rows(n, 0)) return no(why, "computes with its size");
  if (!ints(n, 0, "axes", 1, axes, &count)) return no(why, "has axes that only the run knows");
  *out = n->in[0];
  if (!count && hone_node_int(n->small, "noop_with_empty_axes", 0)) return true;
  if (!count) return no(why, "reduces over all axes");
  const bool keep = hone_node_int(n->small, "keepdims", 1) != 0;
  for (size_t i = 0; i < count; i++) {
    const int32_t a = (int32_t)(axes[i] < 0 ? axes[i] + rank : axes[i]);
    if (a == n->in[0].axis) return no(why, "reduces over it");
    if (!keep && a < n->in[0].axis) out->axis--;
  }
  return true;
}

static bool arg(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const int32_t axis = axis_attr(n, "axis", 0, rank_of(n, 0));
  if (!off_axis(n, axis, false, "searches along it", out, why)) return false;
  if (!hone_node_int(n->small, "keepdims", 1) && axis < out->axis) out->axis--;
  return true;
}

static bool top_k(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return off_axis(n, axis_attr(n, "axis", -1, rank_of(n, 0)), false, "sorts along it", out, why);
}

static bool cumulative(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  int64_t axis[HONE_MAX_RANK * 2];
  size_t count;
  if (!ints(n, 0, NULL, 1, axis, &count) || count != 1) return no(why, "has an axis that only the run knows");
  const int32_t a = (int32_t)(axis[0] < 0 ? axis[0] + rank_of(n, 0) : axis[0]);
  return off_axis(n, a, false, "sums along it", out, why);
}

/* Codes with one scale, or one for each index of an axis that is another. */
static bool scaled(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const bool one = there(n, 1) && hone_desc_count(&n->small->in[1]->desc) == 1;
  const int32_t axis = one ? HONE_MAX_RANK : axis_attr(n, "axis", 1, rank_of(n, 0));
  return off_axis(n, axis, false, "has a scale for each index of it", out, why);
}

/* a x b: rows of a and columns of b are alone, and so are matrices of a batch. */
static bool product_of(const hn_pad_node *n, uint32_t ia, uint32_t ib, hn_pad *out, hone_reason *why) {
  const int32_t rank = n->small->out[0]->desc.rank, ra = rank_of(n, ia), rb = rank_of(n, ib);
  if (ra < 2 || rb < 2) return no(why, "has a vector as an operand");
  const bool a = rows(n, ia), b = rows(n, ib);
  if ((!a && !same(n, ia)) || (!b && !same(n, ib))) return no(why, "computes with its size");
  if ((a && n->in[ia].axis == ra - 1) || (b && n->in[ib].axis == rb - 2)) return no(why, "sums over it");
  const hn_pad pa = {HN_PAD_ROWS, a ? n->in[ia].axis + rank - ra : -1, a ? n->in[ia].each : 0},
               pb = {HN_PAD_ROWS, b ? n->in[ib].axis + rank - rb : -1, b ? n->in[ib].each : 0};
  if (a && b && (pa.axis != pb.axis || pa.each != pb.each)) return no(why, "multiplies it by itself");
  *out = a ? pa : pb;
  if (out->axis >= rank - 2) return !(a && b) || no(why, "multiplies it by itself"); /* a row, or a column */
  /* A batch of matrices: the other operand has the same, or one for all. */
  const uint32_t other = a ? ib : ia;
  const int32_t k = out->axis - (rank - rank_of(n, other));
  if (!(a && b) && k >= 0 && n->small->in[other]->desc.dim[k] != 1)
    return no(why, "meets a tensor of fixed length there");
  return true;
}

static bool matmul(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!same_from(n, 2)) return no(why, "has it in a scale or zero point");
  return product_of(n, 0, 1, out, why);
}

static bool qlinear_matmul(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  for (uint32_t i = 0; i < n->small->n_in; i++)
    if (i != 0 && i != 3 && !same(n, i)) return no(why, "has it in a scale or zero point");
  return product_of(n, 0, 3, out, why);
}

static bool gemm(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const bool ta = hone_node_int(n->small, "transA", 0) != 0, tb = hone_node_int(n->small, "transB", 0) != 0;
  const bool a = rows(n, 0), b = rows(n, 1), c = rows(n, 2);
  if (!(a || same(n, 0)) || !(b || same(n, 1)) || !(c || same(n, 2)))
    return no(why, "computes with its size");
  if ((a && n->in[0].axis == !ta) || (b && n->in[1].axis == tb)) return no(why, "sums over it");
  if (a && b) return no(why, "multiplies it by itself");
  if (!a && !b) return no(why, "has it in the bias alone");
  *out = (hn_pad){HN_PAD_ROWS, a ? 0 : 1, n->in[a ? 0 : 1].each};
  if (!there(n, 2)) return true;
  const int32_t k = out->axis - (2 - rank_of(n, 2));
  if (c)
    return (k == n->in[2].axis && n->in[2].each == out->each) || no(why, "has a bias along another axis");
  return k < 0 || n->small->in[2]->desc.dim[k] == 1 || no(why, "has a bias of fixed length there");
}

static bool transpose(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  size_t count;
  const int64_t *perm = hone_node_ints(n->small, "perm", &count);
  const int32_t rank = rank_of(n, 0);
  (void)why;
  *out = n->in[0];
  if (!perm) out->axis = rank - 1 - n->in[0].axis;
  for (int32_t k = 0; perm && k < rank; k++)
    if (perm[k] == n->in[0].axis) out->axis = k;
  return true;
}

static bool concat(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const int32_t axis = axis_attr(n, "axis", 1, n->small->out[0]->desc.rank);
  for (uint32_t i = 0; i < n->small->n_in; i++) {
    if (!rows(n, i)) return no(why, "puts it beside a tensor of fixed length");
    if (n->in[i].axis == axis) return no(why, "puts something behind it along its own axis");
    if (n->in[i].axis != n->in[0].axis || n->in[i].each != n->in[0].each)
      return no(why, "joins it with itself along another axis");
  }
  return as_input(n, 0, out);
}

static bool split(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return off_axis(n, axis_attr(n, "axis", 0, rank_of(n, 0)), false, "divides it", out, why);
}

/* Starts, ends and steps of other axes are the same in both models; along the axis all is taken. */
static bool slice(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  static const char *const names[] = {"starts", "ends", "axes", "steps"};
  int64_t list[2][4][HONE_MAX_RANK * 2];
  size_t count[2][4];
  if (!rows(n, 0)) return no(why, "takes a part that its size says");
  for (int side = 0; side < 2; side++)
    for (uint32_t k = 0; k < 4; k++)
      if (!ints(n, side, k < 3 ? names[k] : NULL, k + 1, list[side][k], &count[side][k]) ||
          count[side][k] != count[0][k])
        return no(why, "takes a part that only the run knows");
  const int32_t rank = rank_of(n, 0), axis = n->in[0].axis;
  for (size_t i = 0; i < count[0][0]; i++) {
    const int64_t named = i < count[0][2] ? list[0][2][i] : (int64_t)i;
    const int32_t a = (int32_t)(named < 0 ? named + rank : named);
    const int64_t step = i < count[0][3] ? list[0][3][i] : 1;
    if (a == axis) {
      if (step != 1 || n->small->out[0]->desc.dim[a] != n->small->in[0]->desc.dim[a] ||
          n->large->out[0]->desc.dim[a] != n->large->in[0]->desc.dim[a])
        return no(why, "takes a part of it");
      continue;
    }
    for (uint32_t k = 0; k < 4; k++)
      if (i < count[0][k] && list[0][k][i] != list[1][k][i])
        return no(why, "takes a part that its size says");
  }
  return as_input(n, 0, out);
}

static bool gather(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const int32_t axis = axis_attr(n, "axis", 0, rank_of(n, 0));
  const bool data = rows(n, 0), index = rows(n, 1);
  if ((data && index) || (!data && !same(n, 0)) || (!index && !same(n, 1)))
    return no(why, "takes elements that its size says");
  if (index) {
    *out = (hn_pad){HN_PAD_ROWS, axis + n->in[1].axis, n->in[1].each};
    return true;
  }
  if (n->in[0].axis == axis) return no(why, "takes elements of it by their number");
  *out = n->in[0];
  if (out->axis > axis) out->axis += rank_of(n, 1) - 1;
  return true;
}

static bool gather_elements(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const int32_t axis = axis_attr(n, "axis", 0, rank_of(n, 0));
  if (!rows(n, 0) || !rows(n, 1) || n->in[0].axis != n->in[1].axis || n->in[0].each != n->in[1].each ||
      n->in[0].axis == axis)
    return no(why, "takes elements of it by their number");
  return as_input(n, 0, out);
}

/* Copies along the axis: the input has one there, or it is the axis. */
static bool expand(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const hone_tensor_desc *to = &n->small->out[0]->desc;
  if (!hn_pad_axis(to, &n->large->out[0]->desc, n->wanted, n->size, out))
    return no(why, "does not follow it");
  const int32_t k = out->axis - (to->rank - rank_of(n, 0));
  if (rows(n, 0))
    return (n->in[0].axis == k && n->in[0].each == out->each) || no(why, "copies it along another axis");
  if (!same(n, 0)) return no(why, "computes with its size");
  return k < 0 || n->small->in[0]->desc.dim[k] == 1 || no(why, "has a fixed length there");
}

static bool tile(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0) || !same_from(n, 1)) return no(why, "repeats as often as its size says");
  const int32_t a = n->in[0].axis;
  if (n->small->out[0]->desc.dim[a] != n->small->in[0]->desc.dim[a]) return no(why, "repeats it");
  return as_input(n, 0, out);
}

static bool constant_of_shape(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return hn_pad_axis(&n->small->out[0]->desc, &n->large->out[0]->desc, n->wanted, n->size, out) ||
         no(why, "makes a shape that does not follow it");
}

static bool one_hot(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0) || !same_from(n, 1)) return no(why, "is as deep as its size says");
  const int32_t axis = axis_attr(n, "axis", -1, rank_of(n, 0) + 1);
  *out = n->in[0];
  if (axis <= out->axis) out->axis++;
  return true;
}

static bool pad(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  int64_t pads[HONE_MAX_RANK * 2], axes[HONE_MAX_RANK * 2];
  size_t count, named = 0;
  if (!rows(n, 0) || !same_from(n, 1)) return no(why, "pads as far as its size says");
  if (!ints(n, 0, "pads", 1, pads, &count) || !count) return no(why, "pads as far as the run knows");
  if (!ints(n, 0, NULL, 3, axes, &named)) return no(why, "has axes that only the run knows");
  const size_t half = count / 2;
  for (size_t i = 0; i < half; i++) {
    const int64_t a = named ? axes[i] : (int64_t)i;
    if ((a < 0 ? a + rank_of(n, 0) : a) == n->in[0].axis && (pads[i] || pads[i + half]))
      return no(why, "pads along it");
  }
  return as_input(n, 0, out);
}

/* Axes that keep their length are not touched, as sizes and scales say so. */
static bool resize(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const char *how = hone_node_string(n->small, "coordinate_transformation_mode", "half_pixel");
  if (!rows(n, 0)) return no(why, "makes a shape of its size");
  for (uint32_t i = 1; i < n->small->n_in; i++)
    if (n->in[i].kind == HN_PAD_ROWS) return no(why, "computes with it");
  const int32_t a = n->in[0].axis;
  for (uint32_t i = 1; i < n->small->n_in; i++) { /* scales: one an axis; a region has two */
    const hone_tensor *t = n->small_value[i];
    if (t && t->data && t->desc.dtype == HONE_DTYPE_F32 && hone_desc_count(&t->desc) == rank_of(n, 0) &&
        ((const float *)t->data)[a] != 1)
      return no(why, "scales it");
  }
  if (a || strcmp(how, "tf_crop_and_resize") == 0) return no(why, "works across that dimension");
  if (n->small->out[0]->desc.dim[a] != n->small->in[0]->desc.dim[a]) return no(why, "resizes it");
  if (same_from(n, 1)) return as_input(n, 0, out);
  /* Sizes with the batch in them: those of the other axes are the same, for the shapes are. */
  return hone_node_string(n->small, "keep_aspect_ratio_policy", "stretch")[0] == 's' ? as_input(n, 0, out)
                                                                                     : no(why, "resizes it");
}

static bool trilu(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return off_axis(n, rank_of(n, 0) - 2, true, "has it as rows or columns", out, why);
}

static bool recurrent(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const bool first = hone_node_int(n->small, "layout", 0) != 0;
  const int32_t axis = first ? 0 : 1;
  if (!rows(n, 0)) return no(why, "does not take it in input 0");
  if (n->in[0].axis != axis) return no(why, "goes along it step by step");
  for (uint32_t i = 1; i < n->small->n_in; i++) {
    const bool lengths = i == 4, state = i == 5 || i == 6;
    if (!there(n, i)) continue;
    if (lengths || state ? !rows(n, i) || n->in[i].axis != (lengths ? 0 : axis) : !same(n, i))
      return no(why, "has weights or states that do not follow it");
  }
  *out = (hn_pad){HN_PAD_ROWS, first ? 0 : 2, n->in[0].each};
  if (!n->small->out[0]) out->axis = axis;
  return true;
}

/* A label that is not summed over is an axis of independent results. */
static bool einsum(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  char text[128], *term = text;
  size_t at = 0;
  for (const char *c = hone_node_string(n->small, "equation", ""); *c; c++) {
    if (*c == ' ') continue;
    if (*c == '.' || at + 1 >= sizeof text) return no(why, "has an equation that is not followed");
    text[at++] = *c;
  }
  text[at] = 0;
  char *arrow = strstr(text, "->"), label = 0;
  if (!arrow) return no(why, "has an equation that is not followed");
  *arrow = 0;
  const char *result = arrow + 2;
  for (uint32_t i = 0; i < n->small->n_in; i++) {
    char *end = strchr(term, ',');
    if (end) *end = 0;
    if (!rows(n, i) && !same(n, i)) return no(why, "computes with its size");
    if (rows(n, i)) {
      const char here = (size_t)n->in[i].axis < strlen(term) ? term[n->in[i].axis] : 0;
      if (!here || (label && (label != here || out->each != n->in[i].each)))
        return no(why, "joins it with itself along another axis");
      label = here;
      out->each = n->in[i].each;
      if (strchr(term, label) != strrchr(term, label)) return no(why, "takes a diagonal of it");
    } else if (label && strchr(term, label))
      return no(why, "meets a tensor of fixed length there");
    term = end ? end + 1 : term + strlen(term);
  }
  const char *place = label ? strchr(result, label) : NULL;
  if (!place) return no(why, "sums over it");
  *out = (hn_pad){HN_PAD_ROWS, (int32_t)(place - result), out->each};
  return true;
}

/* Rows of input i are those of the batch, each by itself. */
static bool follows_batch(const hn_pad_node *n, uint32_t i) {
  return rows(n, i) && n->in[i].axis == 0 && n->in[i].each == 1;
}

/* Attention of each input of a batch over its own keys. The mask may be one for all. */
static bool attention(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  enum { MASK = 3 };
  if (!follows_batch(n, 0)) return no(why, "has tokens that meet");
  for (uint32_t i = 1; i < n->small->n_in; i++) {
    if (!there(n, i)) continue;
    const bool whole = i == MASK && rank_of(n, i) == 4, follows = follows_batch(n, i);
    if (i != MASK ? !follows : !(whole && follows) && !same(n, i))
      return no(why, "has inputs that do not follow it");
    if (whole && same(n, i) && n->small->in[i]->desc.dim[0] != 1)
      return no(why, "meets a tensor of fixed length there");
  }
  return as_input(n, 0, out);
}

/* A sample's slices go to its own cache. */
static bool tensor_scatter(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  for (uint32_t i = 0; i < n->small->n_in; i++)
    if (there(n, i) && !follows_batch(n, i)) return no(why, "has inputs that do not follow it");
  return as_input(n, 0, out);
}

/* ------------------------------------------------------------------ com.microsoft */

/* Attention of each input of a batch over its own cache: whatever comes with one of them follows the batch.
 */
static bool group_query_attention(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  enum { LENGTHS = 5, POSITIONS = 9, ADDED, QUERY_LENGTHS = 16 };
  if (!n->parts) return no(why, "refuses the lengths that padding has");
  if (!rows(n, 0) || n->in[0].axis != 0 || n->in[0].each != 1) return no(why, "has tokens that meet");
  for (uint32_t i = 0; i < n->small->n_in; i++) {
    if (!there(n, i)) continue;
    const bool mine = i <= LENGTHS || i == QUERY_LENGTHS, any = i == POSITIONS || i == ADDED;
    const bool follows = rows(n, i) && n->in[i].axis == 0 && n->in[i].each == 1;
    if (i > QUERY_LENGTHS) return no(why, "has inputs of which nothing is known");
    if (mine ? !follows : any ? !follows && !same(n, i) : !same(n, i))
      return no(why, "has inputs that do not follow it");
    if (any && same(n, i) && n->small->in[i]->desc.rank > 1 && n->small->in[i]->desc.dim[0] != 1)
      return no(why, "meets a tensor of fixed length there");
  }
  return as_input(n, 0, out);
}

/* A row of the last dimension by itself: x, what is added to it, and weights for all rows. */
static bool last_axis(const hn_pad_node *n, uint32_t added, hn_pad *out, hone_reason *why) {
  if (!rows(n, 0)) return no(why, "does not take it in input 0");
  if (n->in[0].axis == rank_of(n, 0) - 1) return no(why, "works along it");
  for (uint32_t i = 1; i < n->small->n_in; i++)
    if (there(n, i) && (i <= added ? !rows(n, i) || n->in[i].axis != n->in[0].axis ||
                                         n->in[i].each != n->in[0].each || rank_of(n, i) != rank_of(n, 0)
                                   : !same(n, i)))
      return no(why, "computes with its size");
  return as_input(n, 0, out);
}

static bool weighted_rows(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return last_axis(n, 0, out, why);
}
static bool added_rows(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  return last_axis(n, 1, out, why);
}

/* ------------------------------------------------------------------ which rule is whose */

typedef struct rule {
  const char *op;
  bool (*apply)(const hn_pad_node *n, hn_pad *out, hone_reason *why);
} rule;

static const rule rules[] = {
    {"Softmax", softmax},
    {"LogSoftmax", softmax},
    {"Hardmax", softmax},
    {"LayerNormalization", normalize_from},
    {"RMSNormalization", normalize_from},
    {"LpNormalization", normalize_at},
    {"BatchNormalization", batch_norm},
    {"Dropout", dropout},
    {"InstanceNormalization", samples},
    {"GroupNormalization", samples},
    {"LRN", samples},
    {"Conv", samples},
    {"ConvTranspose", samples},
    {"ConvInteger", samples},
    {"QLinearConv", samples},
    {"MaxPool", samples},
    {"AveragePool", samples},
    {"LpPool", samples},
    {"GlobalAveragePool", samples},
    {"GlobalMaxPool", samples},
    {"GlobalLpPool", samples},
    {"DepthToSpace", samples},
    {"SpaceToDepth", samples},
    {"GridSample", grid_sample},
    {"Resize", resize},
    {"Upsample", resize},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"ArgMax", arg},
    {"ArgMin", arg},
    {"TopK", top_k},
    {"CumSum", cumulative},
    {"CumProd", cumulative},
    {"QuantizeLinear", scaled},
    {"DequantizeLinear", scaled},
    {"MatMul", matmul},
    {"MatMulInteger", matmul},
    {"QLinearMatMul", qlinear_matmul},
    {"Gemm", gemm},
    {"Transpose", transpose},
    {"Reshape", view},
    {"Flatten", view},
    {"Squeeze", view},
    {"Unsqueeze", view},
    {"Identity", view},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"Expand", expand},
    {"Tile", tile},
    {"ConstantOfShape", constant_of_shape},
    {"OneHot", one_hot},
    {"Pad", pad},
    {"Trilu", trilu},
    {"RNN", recurrent},
    {"GRU", recurrent},
    {"LSTM", recurrent},
    {"Einsum", einsum},
    {"Attention", attention},
    {"TensorScatter", tensor_scatter},
};

/* Of com.microsoft. SimplifiedLayerNormalization is in ONNX's own domain, too. */
static const rule microsoft[] = {
    {"GroupQueryAttention", group_query_attention},
    {"SkipLayerNormalization", added_rows},
    {"SkipSimplifiedLayerNormalization", added_rows},
    {"SimplifiedLayerNormalization", normalize_from},
    {"MatMulNBits", weighted_rows},
    {"FastGelu", weighted_rows},
    {"BiasGelu", weighted_rows},
    {"QuickGelu", weighted_rows},
    {"Gelu", weighted_rows},
};

/* What is known to mix everything says so in its own words. */
static const struct {
  const char *op, *text;
} against[] = {
    {"DynamicQuantizeLinear", "scales by the least and the most of all elements"},
    {"MeanVarianceNormalization", "normalises over it"},
    {"NonMaxSuppression", "compares all boxes"},
    {"NonZero", "counts elements"},
    {"Unique", "compares all elements"},
};

bool hn_pad_rule(const hn_pad_node *n, hn_pad *out, hone_reason *why) {
  const hone_node *node = n->small;
  const bool other = *node->domain && strcmp(node->domain, "ai.onnx") != 0;
  if (other && strcmp(node->domain, "com.microsoft") != 0)
    return no(why, "is no operator of ONNX's own: nothing is known of its axes");
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] && !hone_desc_known(&node->in[i]->desc))
      return no(why, "reads a shape that only the run knows");
  if (!node->n_out || !node->out[0] || !hone_desc_known(&node->out[0]->desc))
    return no(why, "gives a shape that only the run knows");
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (!other && strcmp(rules[i].op, node->op_type) == 0) return rules[i].apply(n, out, why);
  for (size_t i = 0; i < sizeof microsoft / sizeof *microsoft; i++)
    if (strcmp(microsoft[i].op, node->op_type) == 0 &&
        (other || strcmp(node->op_type, "SimplifiedLayerNormalization") == 0))
      return microsoft[i].apply(n, out, why);
  if (other) return no(why, "is no operator of ONNX's own: nothing is known of its axes");
  for (size_t i = 0; i < sizeof against / sizeof *against; i++)
    if (strcmp(against[i].op, node->op_type) == 0) return no(why, against[i].text);
  if (node->op->flags & HONE_OP_POINTWISE && strcmp(node->op_type, "SwiGLU") != 0)
    return broadcast(n, out, why);
  return no(why, "may let its elements meet: no rule knows this operator");
}
