#include "optimize/step/conv_attr.h"

#include <string.h>

#include "base/error.h"

/* Spatial lists are padded with `fill` in front up to three values. */
static void list3(const hone_node *node, const char *name, int32_t spatial, int64_t fill, int64_t out[3]) {
  size_t count = 0;
  const int64_t *v = hone_node_ints(node, name, &count);
  for (int i = 0; i < 3; i++) out[i] = fill;
  if (v && count >= (size_t)spatial)
    for (int i = 0; i < spatial; i++) out[3 - spatial + i] = v[i];
}

static bool common(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  memset(a, 0, sizeof *a);
  const hone_tensor_desc *w = &s->input[1].desc;
  if (!hone_desc_known(w)) return hn_refuse(why, "dimensions of the weights are not known");
  if (w->layout != HONE_LAYOUT_ROW_MAJOR || w->rank != s->input[0].desc.rank)
    return hn_refuse(why, "weights are not a row-major tensor of the input's rank");
  if (!hn_pixels_of(&s->input[0].desc, &a->x))
    return hn_refuse(why, "input is not channels-last of rank 3 to 5");
  if (!hn_pixels_of(&s->output[0].desc, &a->y))
    return hn_refuse(why, "output is not channels-last of rank 3 to 5");
  if (!a->x.even) return hn_refuse(why, "input pixels are not evenly spaced");
  int32_t spatial = w->rank - 2;
  a->groups = hone_node_int(s->node, "group", 1);
  for (int i = 0; i < 3; i++) a->kernel[i] = i < 3 - spatial ? 1 : w->dim[2 + i - (3 - spatial)];
  list3(s->node, "strides", spatial, 1, a->stride);
  list3(s->node, "dilations", spatial, 1, a->dilation);
  for (int i = 0; i < 3; i++)
    if (a->stride[i] < 1 || a->dilation[i] < 1 || a->kernel[i] < 1)
      return hn_refuse(why, "stride, dilation or kernel is not positive");
  if (a->groups < 1) return hn_refuse(why, "group is not positive");
  if (s->n_anchor_inputs > 2 && s->input[2].desc.dtype != HONE_DTYPE_NONE &&
      hone_desc_count(&s->input[2].desc) != a->y.channels)
    return hn_refuse(why, "bias has not one value a channel");
  return true;
}

/* auto_pad: total padding that makes the sizes fit; the odd one goes to the end (UPPER) or the begin (LOWER).
 */
static void pads(const hone_step *s, hn_conv_attr *a, const int64_t total[3]) {
  const char *mode = hone_node_string(s->node, "auto_pad", "NOTSET");
  if (!strcmp(mode, "NOTSET")) {
    list3(s->node, "pads", s->input[0].desc.rank - 2, 0, a->pad);
    return;
  }
  for (int i = 0; i < 3; i++) {
    int64_t t = !strcmp(mode, "VALID") || total[i] < 0 ? 0 : total[i];
    a->pad[i] = !strcmp(mode, "SAME_LOWER") ? t - t / 2 : t / 2;
  }
}

static _Thread_local hn_conv_memo *current;

hn_conv_memo *hn_conv_memo_begin(hn_conv_memo *m, const hone_step *s) {
  hn_conv_memo *before = current;
  m->n = 0;
  m->step[m->n++] = s;
  for (uint32_t k = 0; k < s->n_parts && m->n < HN_CONV_MEMO; k++) m->step[m->n++] = s->part[k].step;
  for (uint32_t i = 0; i < m->n; i++) m->known[i] = false;
  return current = m, before;
}

void hn_conv_memo_end(hn_conv_memo *before) { current = before; }

static bool attr_of(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!common(s, a, why)) return false;
  const hone_tensor_desc *w = &s->input[1].desc;
  a->cin = w->dim[1];
  a->cout = w->dim[0] / a->groups;
  if (w->dim[0] % a->groups || a->cin * a->groups != a->x.channels || w->dim[0] != a->y.channels)
    return hn_refuse(why, "channels and groups do not fit the weights");
  int64_t total[3];
  for (int i = 0; i < 3; i++)
    total[i] = (a->y.size[i] - 1) * a->stride[i] + (a->kernel[i] - 1) * a->dilation[i] + 1 - a->x.size[i];
  pads(s, a, total);
  return true;
}

bool hn_conv_attr_of(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  hn_conv_memo *m = current;
  uint32_t i = 0;
  while (m && i < m->n && m->step[i] != s) i++;
  if (!m || i == m->n) return attr_of(s, a, why);
  if (!m->known[i]) {
    if (!attr_of(s, &m->attr[i], why)) return false;
    m->known[i] = true;
  }
  *a = m->attr[i];
  return true;
}

/* Images are one behind the other, so that slices of all of them are as many images. */
static bool dense(const hn_pixels *p) {
  return p->even && (p->batch == 1 || p->view.batch == p->size[0] * p->view.slice);
}

static void take_slices(hn_pixels *p) {
  p->batch *= p->size[0], p->size[0] = 1;
  p->view.batch = p->view.slice;
}

static void take_rows(hn_pixels *p) {
  p->size[2] *= p->size[1], p->size[1] = p->size[0], p->size[0] = 1;
  p->view.row = p->view.slice, p->view.slice = p->size[1] * p->view.row;
}

static bool untouched(const hn_conv_attr *a, int i) {
  return a->kernel[i] == 1 && a->stride[i] == 1 && a->pad[i] == 0 && a->x.size[i] == a->y.size[i];
}

void hn_conv_attr_flatten(hn_conv_attr *a) {
  if (hn_conv_is_picture(a)) return;
  if (!dense(&a->x) || !dense(&a->y)) return;
  if (untouched(a, 0)) {
    take_slices(&a->x), take_slices(&a->y);
    a->dilation[0] = 1;
  } else if (untouched(a, 1) && untouched(a, 2)) {
    take_rows(&a->x), take_rows(&a->y);
    a->kernel[1] = a->kernel[0], a->stride[1] = a->stride[0], a->pad[1] = a->pad[0];
    a->dilation[1] = a->dilation[0], a->dilation[2] = 1;
    a->kernel[0] = a->stride[0] = a->dilation[0] = 1, a->pad[0] = 0;
  }
}

bool hn_conv_transpose_attr_of(const hone_step *s, hn_conv_attr *a, hone_reason *why) {
  if (!common(s, a, why)) return false;
  const hone_tensor_desc *w = &s->input[1].desc;
  a->cin = w->dim[0] / a->groups;
  a->cout = w->dim[1];
  if (w->dim[0] % a->groups || w->dim[0] != a->x.channels || a->cout * a->groups != a->y.channels)
    return hn_refuse(why, "channels and groups do not fit the weights");
  size_t count = 0;
  hone_node_ints(s->node, "output_shape", &count);
  int64_t total[3], extra[3];
  list3(s->node, "output_padding", s->input[0].desc.rank - 2, 0, extra);
  for (int i = 0; i < 3; i++)
    total[i] =
        a->stride[i] * (a->x.size[i] - 1) + extra[i] + (a->kernel[i] - 1) * a->dilation[i] + 1 - a->y.size[i];
  pads(s, a, total);
  /* With output_shape the padding follows from the sizes, as for auto_pad (SAME_UPPER halves it downwards).
   */
  if (count) {
    const char *mode = hone_node_string(s->node, "auto_pad", "NOTSET");
    for (int i = 0; i < 3; i++) {
      const int64_t t =
          total[i] < 0 ? 0 : total[i]; /* below: the output is longer than all that is written */
      a->pad[i] = !strcmp(mode, "SAME_UPPER") ? t / 2 : t - t / 2;
    }
  }
  return true;
}
