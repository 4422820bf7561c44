#include "optimize/plan/numbers.h"

#include "model/ir/bytes.h"

#include <stdarg.h>
#include <stdio.h>

/* Bytes of a constant slot that are compared where they are not those of its value. */
enum { MOST_HASHED = 1 << 20 };
/* Folded nodes behind each other: what was folded of more is taken for what it is. */
enum { MOST_DEEP = 64 };

static void no(hn_numbers *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void no(hn_numbers *w, const char *format, ...) {
  if (w->failed) return;
  w->failed = true;
  va_list args;
  va_start(args, format);
  vsnprintf(w->why.text, sizeof w->why.text, format, args);
  va_end(args);
}

static void word(hn_numbers *w, uint64_t x) {
  w->form[0] = (w->form[0] ^ x) * 0x9e3779b97f4a7c15u;
  w->form[0] ^= w->form[0] >> 29;
  w->form[1] = (w->form[1] + x) * 0xc2b2ae3d27d4eb4fu;
  w->form[1] ^= w->form[1] >> 31;
}

static void bytes_of(hn_numbers *w, const void *data, size_t n) {
  word(w, n);
  if (n) word(w, hn_hash(data, n, 1)), word(w, hn_hash(data, n, 2));
}

static void text(hn_numbers *w, const char *s) {
  if (s)
    bytes_of(w, s, strlen(s));
  else
    word(w, UINT64_MAX);
}

static void exactly(hn_numbers *w, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  word(w, bits);
}

static void real(hn_numbers *w, const float *at) {
  if (!hn_vec_push(&w->reals, (float *)(uintptr_t)at)) w->no_memory = true;
}

static void number(hn_numbers *w, const int64_t *at) {
  if (!hn_vec_push(&w->at, (int64_t *)(uintptr_t)at)) w->no_memory = true;
}

static void cost(hn_numbers *w, const double *at) {
  if (!hn_vec_push(&w->costs, (double *)(uintptr_t)at)) w->no_memory = true;
}

/* ------------------------------------------------------------------ descriptors */

static bool derived(const hone_tensor_desc *d) {
  hone_tensor_desc same = *d;
  if (d->rank < 0 || d->layout == HONE_LAYOUT_STRIDED || !hone_desc_known(d)) return false;
  const bool dense = d->layout == HONE_LAYOUT_CHANNELS_LAST && d->rank >= 3 && d->channel_pitch == d->dim[1];
  hone_desc_set_layout(&same, d->layout, dense ? 0 : d->channel_pitch);
  return same.channel_pitch == d->channel_pitch &&
         memcmp(same.stride, d->stride, (size_t)d->rank * sizeof *d->stride) == 0;
}

static void quant(hn_numbers *w, const hone_quant *q) {
  word(w, q->count);
  if (!q->count) return;
  word(w, (uint64_t)(int64_t)q->axis);
  bytes_of(w, q->scale, q->count * sizeof *q->scale);
  word(w, q->zero_point != NULL);
  if (q->zero_point) bytes_of(w, q->zero_point, q->count * sizeof *q->zero_point);
}

static void described(hn_numbers *w, const hone_tensor_desc *d, hn_slot *slot) {
  word(w, (uint64_t)d->dtype);
  word(w, (uint64_t)d->layout);
  word(w, (uint64_t)(int64_t)d->rank);
  word(w, (uint64_t)(int64_t)d->device);
  quant(w, &d->quant);
  const bool last = d->layout == HONE_LAYOUT_CHANNELS_LAST && d->rank >= 3;
  const hn_described k = {.desc = (hone_tensor_desc *)(uintptr_t)d,
                          .first = (uint32_t)w->at.len,
                          .derived = derived(d),
                          .dense = last && d->channel_pitch == d->dim[1] && derived(d),
                          .slot = slot};
  word(w, (uint64_t)k.derived | (uint64_t)k.dense << 1);
  for (int32_t i = 0; i < d->rank; i++) number(w, &d->dim[i]);
  if (!k.derived)
    for (int32_t i = 0; i < d->rank; i++) number(w, &d->stride[i]);
  if (!k.dense) number(w, &d->channel_pitch);
  if (!hn_vec_push(&w->descs, k)) w->no_memory = true;
}

/* ------------------------------------------------------------------ the graph */

static void graph(hn_numbers *w, const hn_graph *g);
static void node(hn_numbers *w, const hone_node *n);

/* Bytes that this plan made, and that other plans have elsewhere. */
static bool own(const hn_numbers *w, const void *at) {
  return hn_model_owns(w->plan->model, at) || hn_arena_owns(&w->plan->arena, at);
}

static void constant(hn_numbers *w, hn_value *v) {
  const hone_tensor *t = v->constant;
  word(w, t != NULL);
  if (!t) return;
  const uint32_t desc = (uint32_t)w->descs.len;
  described(w, &t->desc, NULL);
  word(w, v->deferred != NULL);
  word(w, t->data != NULL);
  /* Packed: the steps say whether what they packed is the same. */
  if (v->deferred || !t->data) return;
  if (!own(w, t->data)) {
    word(w, (uint64_t)(uintptr_t)t->data);
    return;
  }
  if (hn_dtype_points(t->desc.dtype)) {
    no(w, "constant '%.60s' holds text", v->name);
    return;
  }
  const hone_node *made = w->depth < MOST_DEEP ? v->made : NULL;
  if (v->sized && v->made && !made) no(w, "what '%.60s' follows from is too deep", v->name);
  word(w, v->sized);
  word(w, made != NULL);
  if (made) { /* what it was made of comes first */
    w->depth++;
    node(w, made);
    w->depth--;
  }
  if (!hn_vec_push(&w->contents, (hn_content){v, (hone_tensor *)(uintptr_t)t, desc, made}))
    w->no_memory = true;
}

static void value(hn_numbers *w, const hn_value *v) {
  if (!v) {
    word(w, UINT64_MAX);
    return;
  }
  word(w, w->seen[v->id]);
  if (w->seen[v->id] || w->failed) return;
  w->seen[v->id] = ++w->n_seen;
  word(w, (uint64_t)v->is_input | (uint64_t)v->is_output << 1 | (uint64_t)v->foreign << 2);
  described(w, &v->desc, NULL);
  constant(w, (hn_value *)(uintptr_t)v);
}

static void attribute(hn_numbers *w, const hn_attr *a) {
  text(w, a->name);
  word(w, a->type);
  switch (a->type) {
  case HONE_ATTR_INT:
  case HONE_ATTR_TYPE: number(w, &a->i); return;
  case HONE_ATTR_FLOAT: exactly(w, a->f); return;
  case HONE_ATTR_STRING: bytes_of(w, a->s.ptr, a->s.len); return;
  case HONE_ATTR_GRAPH: graph(w, a->g); return;
  case HONE_ATTR_INTS:
    word(w, a->list.n);
    for (size_t i = 0; i < a->list.n; i++) number(w, (const int64_t *)a->list.ptr + i);
    return;
  case HONE_ATTR_FLOATS: bytes_of(w, a->list.ptr, a->list.n * sizeof(float)); return;
  case HONE_ATTR_STRINGS:
    word(w, a->list.n);
    for (size_t i = 0; i < a->list.n; i++) {
      const hone_string *s = (const hone_string *)a->list.ptr + i;
      bytes_of(w, s->ptr, s->len);
    }
    return;
  case HONE_ATTR_TENSOR: {
    const int64_t bytes = hone_desc_bytes(&a->t->desc);
    word(w, (uint64_t)a->t->desc.dtype);
    word(w, (uint64_t)(int64_t)a->t->desc.rank);
    for (int32_t i = 0; i < a->t->desc.rank; i++) word(w, (uint64_t)a->t->desc.dim[i]);
    if (!own(w, a->t->data))
      word(w, (uint64_t)(uintptr_t)a->t->data);
    else if (bytes < 0 || bytes > MOST_HASHED || hn_dtype_points(a->t->desc.dtype))
      no(w, "a tensor of an attribute is too large to compare");
    else
      bytes_of(w, a->t->data, (size_t)bytes);
    return;
  }
  default: no(w, "an attribute of type %d", (int)a->type);
  }
}

static void node(hn_numbers *w, const hone_node *n) {
  hn_extent numbers = {(uint32_t)w->at.len, 0};
  if (w->failed || w->no_memory) return;
  text(w, n->op_type);
  text(w, n->domain);
  word(w, (uint64_t)(uintptr_t)n->op);
  word(w, (uint64_t)n->opset);
  word(w, (uint64_t)n->n_in << 40 | (uint64_t)n->n_out << 20 | n->n_attr);
  for (uint32_t i = 0; i < n->n_attr; i++) attribute(w, &n->attr[i]);
  numbers.until = (uint32_t)w->at.len;
  ((hone_node *)(uintptr_t)n)->mark = ++w->n_marked;
  if (!hn_vec_push(&w->nodes, (hn_attributes){n, numbers})) w->no_memory = true;
  for (uint32_t i = 0; i < n->n_in; i++) value(w, n->in[i]);
  for (uint32_t i = 0; i < n->n_out; i++) value(w, n->out[i]);
}

static void graph(hn_numbers *w, const hn_graph *g) {
  word(w, g->n_nodes);
  word(w, g->inputs.len);
  word(w, g->outputs.len);
  word(w, g->unfit);
  for (size_t i = 0; i < g->inputs.len; i++) {
    text(w, g->inputs.ptr[i]->name);
    value(w, g->inputs.ptr[i]);
  }
  for (const hone_node *n = g->first; n && !w->failed && !w->no_memory; n = n->next) node(w, n);
  for (size_t i = 0; i < g->outputs.len; i++) {
    text(w, g->outputs.ptr[i]->name);
    value(w, g->outputs.ptr[i]);
  }
}

/* ------------------------------------------------------------------ slots and steps */

static void slot(hn_numbers *w, hn_slot *s) {
  /* A part of something may have kept the size that it had alone. */
  const bool sized = hone_desc_known(&s->desc) && (uint64_t)hone_desc_bytes(&s->desc) == s->bytes;
  described(w, &s->desc, sized ? s : NULL);
  word(w, sized);
  if (!sized) number(w, (const int64_t *)&s->bytes);
  word(w, s->place);
  word(w, s->alias);
  word(w, s->input);
  word(w, s->packed);
  word(w, s->value ? w->seen[s->value->id] : 0);
  /* Of an arena's tensors the place is found anew for each size; a part of another begins at a number. */
  if (s->alias != HN_NO_SLOT) number(w, (const int64_t *)&s->offset);
  if (s->place != HN_PLACE_CONST || s->alias != HN_NO_SLOT || s->packed) return;
  const hone_tensor *t = s->value ? s->value->constant : NULL;
  const bool same = t && t->data && hone_desc_same_dims(&t->desc, &s->desc) &&
                    t->desc.dtype == s->desc.dtype && s->desc.layout == HONE_LAYOUT_ROW_MAJOR &&
                    (t->data == s->constant || memcmp(t->data, s->constant, s->bytes) == 0);
  word(w, same);
  if (same) return;
  if (!own(w, s->constant))
    word(w, (uint64_t)(uintptr_t)s->constant);
  else if (s->bytes > MOST_HASHED || hn_dtype_points(s->desc.dtype))
    no(w, "a constant in another layout is too large to compare");
  else
    bytes_of(w, s->constant, s->bytes);
}

static bool listed(const hn_numbers *w, const hone_node *n) {
  return n->mark && n->mark <= w->nodes.len && w->nodes.ptr[n->mark - 1].of == n;
}

hn_extent hn_numbers_of_node(const hn_numbers *w, const hone_node *n) {
  return n && listed(w, n) ? w->nodes.ptr[n->mark - 1].numbers : (hn_extent){0, 0};
}

/* A node of the graph, or one that lowering made for the step. */
static void of_step(hn_numbers *w, const hone_node *n) {
  if (n && !listed(w, n)) node(w, n);
  word(w, n ? n->mark : 0);
}

static void step_desc(hn_numbers *w, const hone_step *s) {
  of_step(w, s->node);
  text(w, s->anchor);
  word(w, s->n_inputs);
  word(w, s->n_anchor_inputs);
  word(w, s->n_outputs);
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    described(w, &s->input[i].desc, NULL);
    word(w, s->input[i].constant != NULL);
  }
  for (uint32_t i = 0; i < s->n_outputs; i++) described(w, &s->output[i].desc, NULL);
  word(w, s->n_epilogue);
  for (uint32_t i = 0; i < s->n_epilogue; i++) {
    const hone_epilogue *e = &s->epilogue[i];
    word(w, (uint64_t)e->kind << 48 | (uint64_t)e->act << 32 | e->input);
    real(w, &e->alpha);
    real(w, &e->beta);
  }
  word(w, s->program ? s->program->n_instr : UINT64_MAX);
  for (uint32_t i = 0; s->program && i < s->program->n_instr; i++) {
    const hone_pw_instr *k = &s->program->instr[i];
    word(w,
         (uint64_t)k->op << 32 | (uint64_t)k->dst << 24 | (uint64_t)k->a << 16 | (uint64_t)k->b << 8 | k->c);
    real(w, &k->alpha);
    real(w, &k->beta);
  }
  cost(w, &s->cost.flops);
  cost(w, &s->cost.macs);
  cost(w, &s->cost.bytes);
  word(w, s->math);
  word(w, s->n_parts);
  for (uint32_t k = 0; k < s->n_parts; k++) {
    for (uint32_t i = 0; i < s->part[k].step->n_inputs; i++) word(w, s->part[k].input[i]);
    step_desc(w, s->part[k].step);
  }
}

/* What a step packed has to be the same in all plans: it is, where they read it from one place. */
static void packed(hn_numbers *w, const hn_step *s) {
  word(w, s->shared_at);
  if (s->shared_at) {
    word(w, s->shared_key);
    word(w, s->twin);
    word(w, (uint64_t)(uintptr_t)s->shared);
    return;
  }
  for (uint32_t i = 0; i < s->desc.n_inputs && i < 32; i++) {
    if (s->in[i] == HN_NO_SLOT || !(s->need.packed >> i & 1)) continue;
    const hn_slot *r = &w->plan->slots.ptr[hn_slot_root(w->plan, s->in[i])];
    if (r->place == HN_PLACE_CONST && (r->deferred || (r->packed && own(w, r->constant))))
      no(w, "'%.60s' packs weights that other plans cannot read", s->desc.name);
  }
}

static void step(hn_numbers *w, const hn_step *s) {
  hn_step_extent extent = {{(uint32_t)w->descs.len, 0}, {(uint32_t)w->reals.len, 0}};
  word(w, s->kind);
  word(w, s->role);
  word(w, s->n_captured);
  for (uint32_t i = 0; i < s->desc.n_inputs + s->n_captured; i++) word(w, s->in[i]);
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) word(w, s->out[i]);
  of_step(w, s->node);
  word(w, (uint64_t)(uintptr_t)s->tactic);
  word(w, s->need.packed);
  word(w, s->threads);
  word(w, s->lane);
  word(w, (uint64_t)s->tuned | (uint64_t)s->shape_work << 1 | (uint64_t)s->late_last << 2 |
              (uint64_t)s->flush << 3);
  step_desc(w, &s->desc);
  cost(w, &s->predicted_s);
  if (s->kind == HN_STEP_TACTIC) packed(w, s);
  extent.descs.until = (uint32_t)w->descs.len, extent.reals.until = (uint32_t)w->reals.len;
  if (!hn_vec_push(&w->steps, extent)) w->no_memory = true;
}

bool hn_numbers_list(hn_plan *p, hone_tensor_desc *const *more, uint32_t n_more, hn_numbers *w) {
  *w = (hn_numbers){.plan = p, .form = {1, 2}};
  w->seen = hn_calloc(p->model->next_value_id + 1, sizeof *w->seen);
  w->no_memory = !w->seen;
  if (p->backend->asynchronous || p->slices != 1 || p->reference || p->separate || p->preview || p->saved ||
      p->ports)
    no(w, "a plan of this kind has one shape");
  if (w->failed || w->no_memory) return false;
  word(w, (uint64_t)p->level << 8 | (uint64_t)p->precision);
  word(w, (uint64_t)p->math << 16 | (uint64_t)p->storage);
  word(w, p->has_heap);
  graph(w, p->model->graph);
  /* What folding made of sizes, and passes took away: they may have looked at what it was. */
  for (const hn_value *v = p->model->sized; v && !w->failed && !w->no_memory; v = v->next_sized)
    if (!w->seen[v->id]) value(w, v);
  for (size_t i = 0; i < p->slots.len && !w->failed; i++) slot(w, &p->slots.ptr[i]);
  for (size_t i = 0; i < p->steps.len && !w->failed; i++) step(w, &p->steps.ptr[i]);
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    word(w, p->input_slot[i]);
    described(w, &p->input_desc[i], NULL);
  }
  for (uint32_t i = 0; i < p->n_outputs; i++) {
    word(w, p->output_slot[i]);
    described(w, &p->output_desc[i], NULL);
  }
  for (uint32_t i = 0; i < n_more; i++) described(w, more[i], NULL);
  return !w->failed && !w->no_memory;
}

void hn_numbers_free(hn_numbers *w) {
  hn_free(w->seen);
  hn_vec_free(&w->at);
  hn_vec_free(&w->descs);
  hn_vec_free(&w->contents);
  hn_vec_free(&w->costs);
  hn_vec_free(&w->reals);
  hn_vec_free(&w->nodes);
  hn_vec_free(&w->steps);
}
