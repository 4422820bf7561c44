/* The canonical name of a step: two steps with the same text are the same work to every tactic. */
#include "optimize/step/tuned.h"

#include "base/map.h"
#include "model/ir/graph.h"

#include <stdlib.h>
#include <string.h>

/* Values of integer constants up to this count are part of the work (pads, axes, starts); larger ones are
 * data. */
enum { FEW = 64 };

static void hash_text(hn_str *out, const void *data, size_t bytes) {
  hn_str_printf(out, "#%016llx", (unsigned long long)hn_hash(data, bytes, 0));
}

static bool same_strides(const hone_tensor_desc *d) {
  hone_tensor_desc dense = *d;
  if (!hone_desc_known(d) || d->layout == HONE_LAYOUT_STRIDED) return false;
  hone_desc_set_layout(&dense, d->layout, d->channel_pitch);
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] != 1 && d->stride[i] != dense.stride[i]) return false;
  return true;
}

/* A number of digits, behind a character or none (0): printf takes three times as long, and this is most of
 * the text. */
static void put_number(hn_str *out, char before, int64_t v) {
  char text[24];
  int at = sizeof text;
  uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
  do text[--at] = (char)('0' + left % 10);
  while (left /= 10);
  if (v < 0) text[--at] = '-';
  if (before) text[--at] = before;
  hn_str_append(out, text + at, sizeof text - (size_t)at);
}

static void put_desc(hn_str *out, const hone_tensor_desc *d) {
  if (d->dtype == HONE_DTYPE_NONE) {
    hn_str_putc(out, '-');
    return;
  }
  hn_str_puts(out, hone_dtype_name(d->dtype));
  hn_str_putc(out, '[');
  for (int32_t i = 0; i < d->rank; i++) put_number(out, i ? 'x' : 0, d->dim[i] < 0 ? -1 : d->dim[i]);
  hn_str_putc(out, ']');
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST) put_number(out, 'p', d->channel_pitch);
  if (!same_strides(d) && hone_desc_known(d)) {
    hn_str_putc(out, '/');
    for (int32_t i = 0; i < d->rank; i++) put_number(out, i ? ',' : 0, d->stride[i]);
  }
  if (d->quant.count)
    hn_str_printf(out, "q%u%s@%d", d->quant.count, d->quant.zero_point ? "z" : "", (int)d->quant.axis);
}

static void put_tensor(hn_str *out, const hone_step_tensor *t) {
  hn_str_putc(out, ' ');
  if (t->constant) hn_str_putc(out, '=');
  put_desc(out, &t->desc);
  const hone_dtype type = t->desc.dtype;
  int64_t n = t->constant && hone_desc_known(&t->desc) ? hone_desc_count(&t->desc) : -1;
  bool whole = type == HONE_DTYPE_I64 || type == HONE_DTYPE_I32 || type == HONE_DTYPE_BOOL;
  if (whole && n >= 0 && n <= FEW) hash_text(out, t->constant, (size_t)n * hone_dtype_size(type));
}

/* Of each string its length and bytes. */
static void hash_strings(hn_str *out, const hone_string *list, size_t n) {
  uint64_t hash = n;
  for (size_t i = 0; i < n; i++) hash = hn_hash(list[i].ptr, list[i].len, hash * 31 + list[i].len);
  hn_str_printf(out, "#%016llx", (unsigned long long)hash);
}

static void put_attr(hn_str *out, const hn_attr *a) {
  hn_str_putc(out, ' ');
  hn_str_puts(out, a->name);
  hn_str_putc(out, '=');
  switch (a->type) {
  case HONE_ATTR_INT: put_number(out, 0, a->i); break;
  case HONE_ATTR_FLOAT: hn_str_printf(out, "%.9g", (double)a->f); break;
  case HONE_ATTR_STRING: hash_text(out, a->s.ptr, a->s.len); break;
  case HONE_ATTR_INTS:
    if (a->list.n > FEW) { /* trees' lists have as many as the model has nodes */
      hash_text(out, a->list.ptr, a->list.n * sizeof(int64_t));
      break;
    }
    for (size_t i = 0; i < a->list.n; i++) put_number(out, i ? ',' : 0, ((const int64_t *)a->list.ptr)[i]);
    break;
  case HONE_ATTR_FLOATS: hash_text(out, a->list.ptr, a->list.n * sizeof(float)); break;
  case HONE_ATTR_STRINGS: hash_strings(out, a->list.ptr, a->list.n); break;
  default: hn_str_printf(out, "?%d", (int)a->type); /* tensors, graphs: no tactic's speed depends on them */
  }
}

static int by_name(const void *a, const void *b) {
  return strcmp((*(const hn_attr *const *)a)->name, (*(const hn_attr *const *)b)->name);
}

static void put_attrs(hn_str *out, const hone_node *n) {
  const hn_attr *list[FEW];
  uint32_t count = n->n_attr < FEW ? n->n_attr : FEW;
  for (uint32_t i = 0; i < count; i++) list[i] = &n->attr[i];
  qsort(list, count, sizeof *list, by_name);
  for (uint32_t i = 0; i < count; i++) put_attr(out, list[i]);
}

/* Type, rank and layout of what has other sizes in another plan. */
static void put_open(hn_str *out, const hone_step_tensor *t) {
  if (t->constant) {
    put_tensor(out, t);
    return;
  }
  hn_str_putc(out, ' ');
  hn_str_puts(out, hone_dtype_name(t->desc.dtype));
  put_number(out, '/', t->desc.rank);
  put_number(out, '.', t->desc.layout);
}

static void put_step(hn_str *out, const hone_step *s, void (*put)(hn_str *, const hone_step_tensor *)) {
  hn_str_puts(out, s->anchor);
  hn_str_puts(out, " math");
  put_number(out, '=', s->math);
  hn_str_puts(out, " |");
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    if (i == s->n_anchor_inputs) hn_str_puts(out, " ;");
    put(out, &s->input[i]);
  }
  hn_str_puts(out, " ->");
  for (uint32_t i = 0; i < s->n_outputs; i++) put(out, &s->output[i]);
  if (s->node) {
    hn_str_puts(out, " |");
    put_attrs(out, s->node);
  }
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    if (!i) hn_str_puts(out, " +");
    put_number(out, ' ', e->kind);
    put_number(out, '.', e->act);
    put_number(out, '.', e->input);
    if (e->alpha != 0 || e->beta != 0) hn_str_printf(out, "(%.9g,%.9g)", (double)e->alpha, (double)e->beta);
  }
  for (uint32_t i = 0; s->program && i < s->program->n_instr; i++) {
    const hone_pw_instr *p = &s->program->instr[i];
    const int words[] = {(int)p->op, p->dst, p->a, p->b, p->c};
    if (!i) hn_str_puts(out, " :");
    for (int k = 0; k < 5; k++) put_number(out, k ? '.' : ' ', words[k]);
    if (p->alpha != 0 || p->beta != 0) hn_str_printf(out, "(%.9g,%.9g)", (double)p->alpha, (double)p->beta);
  }
}

void hn_step_signature(const hone_step *s, hn_str *out) { put_step(out, s, put_tensor); }

void hn_step_signature_of_weights(const hone_step *s, hn_str *out) {
  put_step(out, s, put_open);
  for (uint32_t i = 0; i < s->n_parts; i++) {
    hn_str_puts(out, " & ");
    put_step(out, s->part[i].step, put_open);
  }
}
