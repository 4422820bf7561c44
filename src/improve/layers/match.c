/* Pairs of values: by name, through Q and DQ and what tools put behind a name; else by place. */
#include "improve/layers/layers.h"

#include "base/error.h"
#include "improve/values.h"
#include "optimize/step/slots.h"

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
  const char *name;    /* in the file: passes may have given it to another value */
} exact_value;

/* A node of the float model's file. */
typedef struct file_node {
  const hone_node *node;
  uint32_t place;
} file_node;

typedef struct matching {
  hn_ly *q;
  hn_map by_name;  /* of float values, as the file calls them: exact_value */
  file_node *file; /* by number of the source node */
  HN_VEC(exact_value *) order;
} matching;

/* ---- scales */

/* What the plan says of the codes; also of those that a DequantizeLinear has just read. */
static hn_layers_scale scale_of(const hn_plan *p, const hn_value *v) {
  const bool decoded =
      v->producer && strcmp(v->producer->op_type, "DequantizeLinear") == 0 && v->producer->in[0];
  const hn_value *codes = decoded ? v->producer->in[0] : v;
  const bool is_signed = codes->desc.dtype == HONE_DTYPE_I8;
  const hone_quant q = hn_quant_of(p, codes, &codes->desc);
  hn_layers_scale s = {.low = is_signed ? -128 : 0, .high = is_signed ? 127 : 255};
  if ((!is_signed && codes->desc.dtype != HONE_DTYPE_U8) || q.count != 1 || !(q.scale[0] > 0)) return s;
  s.scale = (double)q.scale[0];
  s.zero = q.zero_point ? q.zero_point[0] : 0;
  s.known = true;
  return s;
}

/* ---- names */

/* A value that the model has: names of what was taken out of a graph in memory stay. */
static const hn_value *value_of(hn_model *file, const char *name) {
  const hn_value *v = hn_map_get(&file->graph->by_name, name);
  return v && (v->producer || v->is_input || v->constant) ? v : NULL;
}

/* The float model's value whose name this is, with what quantisers put behind it or without. */
static const hn_value *in_file(const matching *m, const char *name) {
  const hn_value *found = value_of(m->q->exact_file, name);
  char stem[512];
  for (size_t i = 0; !found && i < sizeof tails / sizeof *tails; i++) {
    const size_t n = strlen(name), t = strlen(tails[i]);
    if (n <= t || n >= sizeof stem || strcmp(name + n - t, tails[i]) != 0) continue;
    snprintf(stem, sizeof stem, "%.*s", (int)(n - t), name);
    found = value_of(m->q->exact_file, stem);
  }
  return found;
}

/* What changes no number. */
static bool changes_nothing(const hone_node *n) {
  return hn_is_op(n, "Identity") || (hn_is_op(n, "Dropout") && n->n_in == 1);
}

/* Quantisers drop a Relu whose work the codes do, and fold normalisation, and keep the name from before it.
 */
static bool may_be_gone(const hone_node *n) {
  return hn_is_op(n, "Relu") || hn_is_op(n, "Clip") || hn_is_op(n, "BatchNormalization");
}

/* The value in the float plan that v of the file is. Steps that were fused hold what their last node makes;
 * as such a value counts v where all between the two changes nothing, or (gone) is no part of the other
 * model. */
static exact_value *held(const matching *m, const hn_value *v, bool gone) {
  exact_value *e = hn_map_get(&m->by_name, v->name);
  while (v->users.len == 1 && !v->is_output) {
    const hone_node *u = v->users.ptr[0].node;
    if (!u || u->graph != v->graph || u->n_out < 1 || !u->out[0]) break;
    const bool same = changes_nothing(u);
    if (!same && (!gone || !may_be_gone(u) || value_of(m->q->file, u->out[0]->name))) break;
    v = u->out[0];
    exact_value *next = hn_map_get(&m->by_name, v->name);
    if (next && (!same || !e)) e = next;
  }
  return e;
}

/* The file's value of that name; the value before its Q, behind its DQ. */
static const hn_value *named_like(const matching *m, const hn_value *v, int depth) {
  const hn_value *found = in_file(m, v->name);
  const hone_node *n = v->producer;
  if (found || depth == 0) return found;
  if (n && (strcmp(n->op_type, "QuantizeLinear") == 0 || strcmp(n->op_type, "DequantizeLinear") == 0) &&
      n->in[0])
    found = named_like(m, n->in[0], depth - 1);
  for (size_t i = 0; !found && i < v->users.len; i++) {
    const hone_node *u = v->users.ptr[i].node;
    if (u && strcmp(u->op_type, "DequantizeLinear") == 0) found = in_file(m, u->out[0]->name);
  }
  return found;
}

/* ---- pairs */

static bool pair_up(matching *m, const exact_value *e, const hn_value *v, bool by_place, uint32_t depth) {
  hn_ly *q = m->q;
  if (q->stand_in[v->id].pair) return true;
  const hn_layers_scale scale = scale_of(q->quantized.plan, v);
  hn_layers_pair *p = q->of_exact[e->value->id];
  if (!scale.known && !hone_dtype_is_float(v->desc.dtype)) return true;
  q->stand_in[v->id].scale = scale;
  if (p && (p->scale.known || !scale.known)) { /* another form of the same value */
    q->stand_in[v->id].pair = p;
    return true;
  }
  if (!p) {
    p = HN_NEW(&q->arena, hn_layers_pair);
    if (!p || !hn_vec_push(&q->pairs, p)) return false;
    q->of_exact[e->value->id] = p;
  }
  const int64_t bytes = hone_desc_known(&e->value->desc) ? hone_desc_bytes(&e->value->desc) : 0;
  p->exact = e->value;
  p->name = e->name;
  p->step = e->step;
  p->quantized = v;
  p->scale = scale;
  p->by_place = by_place;
  p->depth = depth;
  p->bytes = bytes > 0 ? (uint64_t)bytes : 0;
  q->stand_in[v->id].pair = p;
  return true;
}

static bool list_file(matching *m) {
  const hn_model *file = m->q->exact_file;
  uint32_t place = 0;
  m->file = hn_calloc(file->source.len + 1, sizeof *m->file);
  for (const hone_node *n = file->graph->first; n && m->file; n = n->next, place++)
    for (uint32_t i = 0; i < n->n_origin; i++)
      if (n->origin[i] < file->source.len) m->file[n->origin[i]] = (file_node){n, place};
  return m->file != NULL;
}

/* What the file calls v: where passes have made several nodes one, the value of the last of them. */
static const char *name_in_file(const matching *m, const hn_value *v) {
  const hone_node *n = v->producer;
  const file_node *last = NULL;
  for (uint32_t i = 0; n && i < n->n_origin; i++) {
    if (n->origin[i] >= m->q->exact_file->source.len) continue;
    const file_node *f = &m->file[n->origin[i]];
    if (f->node && (!last || f->place > last->place)) last = f;
  }
  if (!last || last->node->n_out <= v->producer_index || !last->node->out[v->producer_index]) return v->name;
  const hn_value *is = last->node->out[v->producer_index];
  const bool other = hone_desc_known(&is->desc) && !hone_desc_same_dims(&is->desc, &v->desc);
  return other ? v->name : is->name;
}

static bool add_exact(matching *m, const hn_value *v, const hn_step *s) {
  if (!v || v->desc.dtype != HONE_DTYPE_F32) return true;
  const char *name = name_in_file(m, v);
  const exact_value *known = hn_map_get(&m->by_name, name);
  /* Of several that come from one node the last one; of several forms of one value the first. */
  if (known && (known->value == v || strcmp(known->value->name, name) == 0)) return true;
  exact_value *e = HN_NEW(&m->q->arena, exact_value);
  if (!e) return false;
  *e = (exact_value){v, s, name};
  return hn_vec_push(&m->order, e) && hn_map_set(&m->by_name, name, e);
}

static bool list_exact(matching *m) {
  const hn_plan *p = m->q->exact.plan;
  bool whole = list_file(m);
  for (uint32_t i = 0; i < p->n_inputs && whole; i++) whole &= add_exact(m, p->inputs[i], NULL);
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs && whole; k++)
      whole &= add_exact(m, hn_value_of_step(p, &p->steps.ptr[i], k), &p->steps.ptr[i]);
  return whole;
}

static bool match_names(matching *m) {
  const hn_plan *p = m->q->quantized.plan;
  bool whole = true;
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++) {
      const hn_value *v = hn_value_of_step(p, &p->steps.ptr[i], k);
      const hn_value *of = v ? named_like(m, v, 4) : NULL;
      const exact_value *e = of ? held(m, of, v->desc.dtype != HONE_DTYPE_F32) : NULL;
      if (of) m->q->stand_in[v->id].named = true;
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
      const hn_layers_pair *from = m->q->stand_in[n->in[0]->id].pair;
      if (from)
        whole &=
            pair_up(m, &(exact_value){from->exact, from->step, from->name}, v, from->by_place, (uint32_t)i);
    }
  return whole;
}

/* ---- */

static int earlier(const void *a, const void *b) {
  const hn_layers_pair *x = *(hn_layers_pair *const *)a, *y = *(hn_layers_pair *const *)b;
  return (x->depth > y->depth) - (x->depth < y->depth);
}

static void count_unmatched(hn_ly *q) {
  const hn_plan *p = q->quantized.plan;
  for (size_t i = 0; i < p->steps.len; i++)
    for (uint32_t k = 0; k < p->steps.ptr[i].desc.n_outputs; k++) {
      const hn_value *v = hn_value_of_step(p, &p->steps.ptr[i], k);
      q->unmatched += v && hone_dtype_size(v->desc.dtype) == 1 && !q->stand_in[v->id].named &&
                      !q->stand_in[v->id].pair && scale_of(p, v).known;
    }
}

hone_status hn_layers_match(hn_ly *q, bool by_place, hone_error *error) {
  matching m = {.q = q};
  q->of_exact = hn_calloc(q->exact.plan->model->next_value_id + 1u, sizeof *q->of_exact);
  q->stand_in = hn_calloc(q->quantized.plan->model->next_value_id + 1u, sizeof *q->stand_in);
  bool whole = q->of_exact && q->stand_in && list_exact(&m) && match_names(&m);
  if (by_place) whole = whole && match_places(&m) && match_codes(&m);
  hn_map_free(&m.by_name);
  hn_free(m.file);
  hn_vec_free(&m.order);
  if (!whole) return hn_fail_memory(error, 0, "pairs of values");
  if (q->pairs.len) qsort(q->pairs.ptr, q->pairs.len, sizeof(*q->pairs.ptr), earlier);
  count_unmatched(q);
  return HONE_OK;
}

void hn_layers_forget(hn_ly *q) {
  for (size_t i = 0; i < q->pairs.len; i++) hn_free(q->pairs.ptr[i]->channel);
  hn_vec_free(&q->pairs);
  hn_free(q->of_exact);
  hn_free(q->stand_in);
  q->of_exact = NULL;
  q->stand_in = NULL;
  q->unmatched = 0;
}
