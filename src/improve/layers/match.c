/* Pairs of values: by name, through Q and DQ and what tools put behind a name; else by place. */
#include "improve/layers/layers.h"

#include "base/error.h"
#include "improve/values.h"

#include <stdio.h>
#include <stdlib.h>

/* What quantisers put behind the name of the value that a node stands for. */
static const char *const tails[] = {"_QuantizeLinear_Output",
                                    "_DequantizeLinear_Output",
                                    "_QuantizeLinear",
                                    "_DequantizeLinear",
                                    "_output_quantized",
                                    "_quantized",
                                    "_dequantized",
                                    "_quant",
                                    "_dequant",
                                    "_q",
                                    "_dq"};

typedef struct exact_value {
  const hn_value *value;
  const hn_step *step; /* NULL: an input */
} exact_value;

typedef struct matching {
  hn_ly *q;
  hn_map by_name; /* of float values: exact_value */
  HN_VEC(exact_value *) order;
} matching;

/* ---- scales */

static bool constant_scalar(const hn_value *v, double *x) {
  if (!v || !v->constant || !v->constant->data || hone_desc_count(&v->constant->desc) != 1) return false;
  const void *data = v->constant->data;
  switch (v->constant->desc.dtype) {
  case HONE_DTYPE_F32: *x = (double)*(const float *)data; return true;
  case HONE_DTYPE_U8: *x = *(const uint8_t *)data; return true;
  case HONE_DTYPE_I8: *x = *(const int8_t *)data; return true;
  default: return false;
  }
}

static bool scale_from(const hone_node *n, uint32_t at, hn_ly_scale *s) {
  double scale, zero = 0;
  if (at >= n->n_in || !constant_scalar(n->in[at], &scale) || !(scale > 0)) return false;
  if (at + 1 < n->n_in && n->in[at + 1] && !constant_scalar(n->in[at + 1], &zero)) return false;
  s->scale = scale;
  s->zero = (int32_t)zero;
  return s->known = true;
}

static bool is_qlinear(const hone_node *n) { return strncmp(n->op_type, "QLinear", 7) == 0; }

/* Where the scale of what it makes stands: QLinearConv and QLinearMatMul have it behind two operands. */
static uint32_t scale_of_output(const hone_node *n) {
  return n->op && n->op->float_form ? n->op->float_form->y : 6;
}

/* The scale of codes: of the node that makes them, of one that reads them, or of what they are moved from. */
static bool find_scale(const hn_value *v, hn_ly_scale *s, int depth) {
  const hone_node *n = v->producer;
  if (n && strcmp(n->op_type, "QuantizeLinear") == 0) return scale_from(n, 1, s);
  if (n && is_qlinear(n)) return scale_from(n, scale_of_output(n), s);
  for (size_t i = 0; i < v->users.len; i++) {
    const hone_node *u = v->users.ptr[i].node;
    if (u && (strcmp(u->op_type, "DequantizeLinear") == 0 || is_qlinear(u)) &&
        scale_from(u, v->users.ptr[i].index + 1, s))
      return true;
  }
  return n && n->n_in && n->in[0] && depth > 0 && n->in[0]->desc.dtype == v->desc.dtype &&
         find_scale(n->in[0], s, depth - 1);
}

/* Also of what a DequantizeLinear has just made of codes. */
static hn_ly_scale scale_of(const hn_value *v) {
  const bool decoded =
      v->producer && strcmp(v->producer->op_type, "DequantizeLinear") == 0 && v->producer->in[0];
  const hone_dtype dtype = decoded ? v->producer->in[0]->desc.dtype : v->desc.dtype;
  const bool is_signed = dtype == HONE_DTYPE_I8;
  hn_ly_scale s = {.low = is_signed ? -128 : 0, .high = is_signed ? 127 : 255};
  if (!is_signed && dtype != HONE_DTYPE_U8) return s;
  if (decoded)
    scale_from(v->producer, 1, &s);
  else
    find_scale(v, &s, 8);
  return s;
}

/* ---- names */

static exact_value *by_name(const matching *m, const char *name) {
  exact_value *found = hn_map_get(&m->by_name, name);
  char stem[512];
  for (size_t i = 0; !found && i < sizeof tails / sizeof *tails; i++) {
    const size_t n = strlen(name), t = strlen(tails[i]);
    if (n <= t || n >= sizeof stem || strcmp(name + n - t, tails[i]) != 0) continue;
    snprintf(stem, sizeof stem, "%.*s", (int)(n - t), name);
    found = hn_map_get(&m->by_name, stem);
  }
  return found;
}

/* The value before its Q, behind its DQ. */
static exact_value *named_like(const matching *m, const hn_value *v, int depth) {
  exact_value *found = by_name(m, v->name);
  const hone_node *n = v->producer;
  if (found || depth == 0) return found;
  if (n && (strcmp(n->op_type, "QuantizeLinear") == 0 || strcmp(n->op_type, "DequantizeLinear") == 0) &&
      n->in[0])
    found = named_like(m, n->in[0], depth - 1);
  for (size_t i = 0; !found && i < v->users.len; i++) {
    const hone_node *u = v->users.ptr[i].node;
    if (u && strcmp(u->op_type, "DequantizeLinear") == 0) found = by_name(m, u->out[0]->name);
  }
  return found;
}

/* Quantisers drop a Relu whose work the codes do, and fold normalisation, and keep the name from before it.
 */
static exact_value *past_what_is_gone(const matching *m, exact_value *e) {
  while (e && e->value->users.len == 1) {
    const hone_node *u = e->value->users.ptr[0].node;
    if (!u || u->n_out != 1 || e->value->is_output ||
        !(hn_is_op(u, "Relu") || hn_is_op(u, "Clip") || hn_is_op(u, "BatchNormalization")))
      break;
    exact_value *next = hn_map_get(&m->by_name, u->out[0]->name);
    if (!next || hn_map_has(&m->q->file->graph->by_name, next->value->name)) break;
    e = next;
  }
  return e;
}

/* ---- pairs */

static bool pair_up(matching *m, const exact_value *e, const hn_value *v, bool by_place, uint32_t depth) {
  hn_ly *q = m->q;
  if (q->stand_in[v->id].pair) return true;
  const hn_ly_scale scale = scale_of(v);
  hn_ly_pair *p = q->of_exact[e->value->id];
  if (!scale.known && !hone_dtype_is_float(v->desc.dtype)) return true;
  q->stand_in[v->id].scale = scale;
  if (p && (p->scale.known || !scale.known)) { /* another form of the same value */
    q->stand_in[v->id].pair = p;
    return true;
  }
  if (!p) {
    p = HN_NEW(&q->arena, hn_ly_pair);
    if (!p || !hn_vec_push(&q->pairs, p)) return false;
    q->of_exact[e->value->id] = p;
  }
  const int64_t bytes = hone_desc_known(&e->value->desc) ? hone_desc_bytes(&e->value->desc) : 0;
  p->exact = e->value;
  p->step = e->step;
  p->quantized = v;
  p->scale = scale;
  p->by_place = by_place;
  p->depth = depth;
  p->bytes = bytes > 0 ? (uint64_t)bytes : 0;
  q->stand_in[v->id].pair = p;
  return true;
}

static bool add_exact(matching *m, const hn_value *v, const hn_step *s) {
  if (!v || v->desc.dtype != HONE_DTYPE_F32 || hn_map_has(&m->by_name, v->name)) return true;
  exact_value *e = HN_NEW(&m->q->arena, exact_value);
  if (!e) return false;
  *e = (exact_value){v, s};
  return hn_vec_push(&m->order, e) && hn_map_set(&m->by_name, v->name, e);
}

static bool list_exact(matching *m) {
  const hn_plan *p = m->q->exact.plan;
  bool whole = true;
  for (uint32_t i = 0; i < p->n_inputs; i++) whole &= add_exact(m, p->inputs[i], NULL);
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++)
      whole &= add_exact(m, hn_value_of_step(p, &p->steps.ptr[i], k), &p->steps.ptr[i]);
  return whole;
}

static bool match_names(matching *m) {
  const hn_plan *p = m->q->quantized.plan;
  bool whole = true;
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++) {
      const hn_value *v = hn_value_of_step(p, &p->steps.ptr[i], k);
      exact_value *e = v ? named_like(m, v, 4) : NULL;
      if (e && v->desc.dtype != HONE_DTYPE_F32) e = past_what_is_gone(m, e);
      if (e) whole &= pair_up(m, e, v, false, (uint32_t)i);
    }
  return whole;
}

/* ---- places: the longest common subsequence of the two orders of execution */

typedef struct place {
  const char *anchor;
  const hn_value *value;
  exact_value *exact;
  uint32_t depth;
} place;

static const char *plain_anchor(const char *anchor) {
  return strncmp(anchor, "QLinear", 7) == 0 ? anchor + 7 : anchor;
}

static bool is_layer(const hn_step *s) {
  return s->desc.n_outputs == 1 && strstr(s->desc.anchor, "uantizeLinear") == NULL &&
         strcmp(s->desc.anchor, "Reformat") != 0;
}

static bool same_place(const place *a, const place *b) {
  return strcmp(a->anchor, b->anchor) == 0 && hone_desc_same_dims(&a->value->desc, &b->value->desc);
}

static bool align(matching *m, const place *a, size_t na, const place *b, size_t nb) {
  uint16_t *len = hn_calloc((na + 1) * (nb + 1), sizeof *len);
  bool whole = len != NULL;
  for (size_t i = na; whole && i-- > 0;)
    for (size_t k = nb; k-- > 0;) {
      const uint16_t skip_a = len[(i + 1) * (nb + 1) + k], skip_b = len[i * (nb + 1) + k + 1];
      len[i * (nb + 1) + k] = same_place(&a[i], &b[k]) ? (uint16_t)(len[(i + 1) * (nb + 1) + k + 1] + 1)
                              : skip_a > skip_b        ? skip_a
                                                       : skip_b;
    }
  for (size_t i = 0, k = 0; whole && i < na && k < nb;) {
    if (same_place(&a[i], &b[k])) {
      whole &= pair_up(m, a[i].exact, b[k].value, true, b[k].depth);
      i++, k++;
    } else if (len[(i + 1) * (nb + 1) + k] >= len[i * (nb + 1) + k + 1]) {
      i++;
    } else {
      k++;
    }
  }
  hn_free(len);
  return whole;
}

enum { MOST_PLACES = 4000 };

static bool match_places(matching *m) {
  HN_VEC(place) a = {0}, b = {0};
  const hn_plan *p = m->q->quantized.plan;
  bool whole = true;
  for (size_t i = 0; i < m->order.len && a.len < MOST_PLACES; i++) {
    exact_value *e = m->order.ptr[i];
    if (e->step && is_layer(e->step) && !m->q->of_exact[e->value->id])
      whole &= hn_vec_push(&a, (place){plain_anchor(e->step->desc.anchor), e->value, e, 0});
  }
  for (size_t i = 0; i < p->steps.len && b.len < MOST_PLACES; i++) {
    const hn_step *s = &p->steps.ptr[i];
    const hn_value *v = is_layer(s) ? hn_value_of_step(p, s, 0) : NULL;
    if (v && !m->q->stand_in[v->id].pair)
      whole &= hn_vec_push(&b, (place){plain_anchor(s->desc.anchor), v, NULL, (uint32_t)i});
  }
  whole = whole && align(m, a.ptr, a.len, b.ptr, b.len);
  hn_vec_free(&a);
  hn_vec_free(&b);
  return whole;
}

/* The codes of what was paired by its place. */
static bool match_codes(matching *m) {
  const hn_plan *p = m->q->quantized.plan;
  bool whole = true;
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++) {
      const hn_value *v = hn_value_of_step(p, &p->steps.ptr[i], k);
      const hone_node *n = v ? v->producer : NULL;
      if (!n || strcmp(n->op_type, "QuantizeLinear") != 0 || !n->in[0]) continue;
      const hn_ly_pair *from = m->q->stand_in[n->in[0]->id].pair;
      if (from) whole &= pair_up(m, &(exact_value){from->exact, from->step}, v, from->by_place, (uint32_t)i);
    }
  return whole;
}

/* ---- */

static int earlier(const void *a, const void *b) {
  const hn_ly_pair *x = *(hn_ly_pair *const *)a, *y = *(hn_ly_pair *const *)b;
  return (x->depth > y->depth) - (x->depth < y->depth);
}

static void count_unmatched(hn_ly *q) {
  const hn_plan *p = q->quantized.plan;
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++) {
      const hn_value *v = hn_value_of_step(p, &p->steps.ptr[i], k);
      q->unmatched +=
          v && hone_dtype_size(v->desc.dtype) == 1 && !q->stand_in[v->id].pair && scale_of(v).known;
    }
}

hone_status hn_ly_match(hn_ly *q, bool by_place, hone_error *error) {
  matching m = {.q = q};
  q->of_exact = hn_calloc(q->exact.plan->model->next_value_id + 1u, sizeof *q->of_exact);
  q->stand_in = hn_calloc(q->quantized.plan->model->next_value_id + 1u, sizeof *q->stand_in);
  bool whole = q->of_exact && q->stand_in && list_exact(&m) && match_names(&m);
  if (by_place) whole = whole && match_places(&m) && match_codes(&m);
  hn_map_free(&m.by_name);
  hn_vec_free(&m.order);
  if (!whole) return hn_fail_memory(error, 0, "pairs of values");
  if (q->pairs.len) qsort(q->pairs.ptr, q->pairs.len, sizeof(*q->pairs.ptr), earlier);
  count_unmatched(q);
  return HONE_OK;
}

void hn_ly_forget(hn_ly *q) {
  for (size_t i = 0; i < q->pairs.len; i++) hn_free(q->pairs.ptr[i]->channel);
  hn_vec_free(&q->pairs);
  hn_free(q->of_exact);
  hn_free(q->stand_in);
  q->of_exact = NULL;
  q->stand_in = NULL;
  q->unmatched = 0;
}
