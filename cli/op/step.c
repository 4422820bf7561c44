/* See step.h. */
#include "cli/op/step.h"

#include <stdio.h>
#include <string.h>

/* From here to there or back, an element at a time. */
static void move(const hone_tensor_desc *d, const char *dense_from, char *to, const char *from,
                 char *dense_to) {
  const size_t size = hone_dtype_size(d->dtype);
  const int64_t n = hone_desc_count(d);
  int64_t index[HONE_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < n; i++) {
    if (dense_from)
      memcpy(to + (size_t)at * size, dense_from + (size_t)i * size, size);
    else
      memcpy(dense_to + (size_t)i * size, from + (size_t)at * size, size);
    for (int32_t k = d->rank - 1; k >= 0; k--) {
      at += d->stride[k];
      if (++index[k] < d->dim[k]) break;
      at -= d->stride[k] * d->dim[k];
      index[k] = 0;
    }
  }
}

void op_lay_out(const hone_tensor_desc *d, const void *row_major, void *to) {
  move(d, row_major, to, NULL, NULL);
}
void op_take_out(const hone_tensor_desc *d, const void *from, void *row_major) {
  move(d, NULL, NULL, from, row_major);
}

static hone_tensor_desc laid_out(const hone_tensor_desc *d, hone_layout layout, bool may) {
  hone_tensor_desc out = *d;
  if (may && d->rank >= 3) hone_desc_set_layout(&out, layout, 0);
  return out;
}

bool op_step_make(op_step *s, const op_sample *x, hone_layout layout, hone_math math) {
  *s = (op_step){.n_in = x->n_in, .n_out = x->n_out};
  char name[40];
  op_name(x->op, s->anchor, sizeof s->anchor);
  for (uint32_t i = 0; i < x->n_in; i++) {
    if (!x->in[i].desc.dtype) continue;
    s->in[i].desc = laid_out(&x->in[i].desc, layout, i == 0 || x->op->layouts & HONE_LAST_ALL);
    if (!x->constant[i]) continue;
    const size_t size = hone_dtype_size(x->in[i].desc.dtype);
    snprintf(name, sizeof name, "constant input %u", i);
    if (!op_buffer_make(&s->constant[i], name, (size_t)hone_desc_bytes(&s->in[i].desc), size, OP_AT_END, 1))
      return false;
    op_lay_out(&s->in[i].desc, x->in[i].data, s->constant[i].data);
    op_buffer_lock(&s->constant[i]);
    s->in[i].constant = s->constant[i].data;
  }
  for (uint32_t i = 0; i < x->n_out; i++)
    if (x->out[i].dtype) s->out[i].desc = laid_out(&x->out[i], layout, true);
  s->step = (hone_step){HONE_DESC_HEAD(hone_step),
                        .anchor = s->anchor,
                        .name = hone_node_name(x->node),
                        .node = x->node,
                        .n_inputs = x->n_in,
                        .n_anchor_inputs = x->n_in,
                        .input = s->in,
                        .n_outputs = x->n_out,
                        .output = s->out,
                        .cost = x->cost,
                        .math = math};
  return true;
}

void op_step_free(op_step *s) {
  for (uint32_t i = 0; i < s->n_in; i++)
    if (s->constant[i].map) op_buffer_free(&s->constant[i]);
}
