/* Concat without copies: what a Concat would gather is written in its place at once.
 *
 * An input of such a Concat becomes a part of its output: the same bytes at an offset, with the output's
 * distances. The steps that make and read the input get tactics for that (they may be slower: rows of a part
 * do not follow each other), and when what they lose together is less than the copy, the copy is left out.
 * Such inputs are made by a step on the device, each by its own. On an accelerator they begin at a whole
 * vector, as tactics plan with that. Inputs for which no tactic is found are still copied, by a Concat of
 * them alone.
 *
 * A Concat whose inputs are parts of one output already, one behind the other, makes nothing: its output is
 * their place there, however many Concats gather them (DenseNet gives every layer all maps of its block so
 * far). What reads it gets tactics for that. */
#include "optimize/plan/plan.h"

#include "base/error.h"
#include "optimize/step/choose.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 64, VECTOR = 16 };

typedef struct change {
  uint32_t step;
  hone_step desc;
  const hone_tactic_desc *tactic;
  double predicted;
} change;

/* Who reads or makes a slot, listed once for all Concats. Steps that are left out keep their numbers until
 * all Concats are done. A Concat of which a rest stays remains listed for inputs that it no longer reads, so
 * whoever asks looks at the step itself, too. */
typedef struct users {
  size_t *first, *end; /* of slot i: step[first[i]] to step[end[i] - 1], in their order */
  uint32_t *step;
  bool *shared;   /* slot i: another name shares its memory */
  bool *part;     /* slot i: it was made a part of a Concat's output here */
  bool *left_out; /* step i */
} users;

typedef struct elision {
  hn_plan *p;
  users *u;
  uint32_t concat, n_parts;
  int64_t axis;
  int64_t at[MOST_PARTS + 1]; /* where along the axis each input begins */
  bool chosen[MOST_PARTS];    /* written in place */
  uint32_t view;              /* the output, where it is a part of another one; else HN_NO_SLOT */
  hone_tensor_desc view_desc;
  HN_VEC(change) changes;
  HN_VEC(uint32_t) near; /* steps that touch a chosen input */
} elision;

static uint32_t tensors_in(const hn_step *s) { return s->desc.n_inputs + s->n_captured; }

static void add_user(users *u, uint32_t slot, uint32_t step) {
  if (slot == HN_NO_SLOT) return;
  size_t *end = &u->end[slot];
  if (*end == u->first[slot] || u->step[*end - 1] != step) u->step[(*end)++] = step;
}

static void users_free(users *u) {
  hn_free(u->first);
  hn_free(u->end);
  hn_free(u->step);
  hn_free(u->shared);
  hn_free(u->part);
  hn_free(u->left_out);
}

static bool users_list(const hn_plan *p, users *u) {
  const size_t n = p->slots.len, steps = p->steps.len;
  u->first = hn_calloc(n + 1, sizeof *u->first);
  u->end = hn_calloc(n + 1, sizeof *u->end);
  u->shared = hn_calloc(n + 1, sizeof *u->shared);
  u->part = hn_calloc(n + 1, sizeof *u->part);
  u->left_out = hn_calloc(steps + 1, sizeof *u->left_out);
  if (!u->first || !u->end || !u->shared || !u->part || !u->left_out) return false;
  for (size_t i = 0; i < n; i++)
    if (p->slots.ptr[i].alias != HN_NO_SLOT) u->shared[p->slots.ptr[i].alias] = true;
  for (size_t k = 0; k < steps; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t i = 0; i < tensors_in(s); i++)
      if (s->in[i] != HN_NO_SLOT) u->first[s->in[i] + 1]++;
    for (uint32_t i = 0; i < s->desc.n_outputs; i++)
      if (s->out[i] != HN_NO_SLOT) u->first[s->out[i] + 1]++;
  }
  for (size_t i = 0; i < n; i++) u->first[i + 1] += u->first[i];
  u->step = hn_calloc(u->first[n] + 1, sizeof *u->step);
  if (!u->step) return false;
  memcpy(u->end, u->first, n * sizeof *u->end);
  for (uint32_t k = 0; k < steps; k++) {
    const hn_step *s = &p->steps.ptr[k];
    for (uint32_t i = 0; i < tensors_in(s); i++) add_user(u, s->in[i], k);
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) add_user(u, s->out[i], k);
  }
  return true;
}

static bool is_output(const hn_plan *p, uint32_t slot) {
  for (uint32_t i = 0; i < p->n_outputs; i++)
    if (p->output_slot[i] == slot) return true;
  return false;
}

/* In the memory in which steps work. */
static bool there(const hn_plan *p, const hone_tensor_desc *d) {
  return d->device || !p->backend->asynchronous;
}

/* Memory of its own, which no other name shares. */
static bool alone(const elision *e, uint32_t slot) {
  const hn_slot *s = &e->p->slots.ptr[slot];
  return s->place == HN_PLACE_ARENA && s->alias == HN_NO_SLOT && there(e->p, &s->desc) && !e->u->shared[slot];
}

static bool made_before(const elision *e, uint32_t slot) {
  uint32_t makers = 0;
  for (size_t j = e->u->first[slot]; j < e->u->end[slot] && e->u->step[j] < e->concat; j++) {
    const hn_step *s = &e->p->steps.ptr[e->u->step[j]];
    for (uint32_t i = 0; i < s->desc.n_outputs; i++) makers += s->out[i] == slot;
  }
  return makers == 1;
}

static const hone_tensor_desc *whole_of(const elision *e) {
  return &e->p->slots.ptr[e->p->steps.ptr[e->concat].out[0]].desc;
}

/* Inputs i to j - 1 as a part of the output. */
static hone_tensor_desc part_of(const elision *e, uint32_t i, uint32_t j, uint64_t *offset) {
  hone_tensor_desc d = *whole_of(e);
  d.dim[e->axis] = e->at[j] - e->at[i];
  /* On a processor tactics see by the pitch that pixels do not follow each other. */
  if (d.layout == HONE_LAYOUT_CHANNELS_LAST && (e->p->backend->asynchronous || e->axis != 1))
    d.channel_pitch = d.dim[1];
  *offset = (uint64_t)(e->at[i] * d.stride[e->axis]) * hone_dtype_size(d.dtype);
  return d;
}

/* Does the output lie so that its inputs can be parts of it? */
static bool lay_out(elision *e) {
  const hn_plan *p = e->p;
  const hn_step *c = &p->steps.ptr[e->concat];
  const hn_slot *whole = &p->slots.ptr[c->out[0]];
  const hone_tensor_desc *y = &whole->desc;
  const bool own = whole->alias == HN_NO_SLOT || (e->u->part[c->out[0]] && !p->backend->asynchronous);
  if (whole->place != HN_PLACE_ARENA || !own || !there(p, y) || hone_desc_count(y) <= 0 ||
      c->desc.n_inputs < 2 || c->desc.n_inputs > MOST_PARTS || c->desc.n_outputs != 1)
    return false;
  const bool last = y->layout == HONE_LAYOUT_CHANNELS_LAST;
  int64_t outer = 1;
  e->axis = hone_node_int(c->node, "axis", 1);
  if (e->axis < 0) e->axis += y->rank;
  if (e->axis < 0 || e->axis >= y->rank) return false;
  if (last && y->channel_pitch != y->dim[1] && (p->backend->asynchronous || e->axis != 1)) return false;
  for (int32_t i = 0; i < e->axis; i++) outer *= last && i == 1 ? 1 : y->dim[i];
  /* Only whole pieces of memory, of which no tactic sees a difference, or channels. */
  if (outer != 1 && !(last && (e->axis == 1 || p->backend->asynchronous))) return false;
  e->n_parts = c->desc.n_inputs;
  for (uint32_t i = 0; i < e->n_parts; i++) {
    if (c->in[i] == HN_NO_SLOT) return false;
    const hone_tensor_desc *x = &p->slots.ptr[c->in[i]].desc;
    if (x->dtype != y->dtype || x->layout != y->layout || x->rank != y->rank || hone_desc_count(x) <= 0)
      return false;
    e->at[i + 1] = e->at[i] + x->dim[e->axis];
  }
  return true;
}

/* Can input i be written in its place, as far as memory goes? */
static bool may_move(const elision *e, uint32_t i) {
  const hn_plan *p = e->p;
  const hn_step *c = &p->steps.ptr[e->concat];
  uint64_t offset;
  const hone_tensor_desc d = part_of(e, i, i + 1, &offset);
  if (!alone(e, c->in[i]) || is_output(p, c->in[i]) || !made_before(e, c->in[i])) return false;
  for (uint32_t k = 0; k < e->n_parts; k++)
    if (k != i && c->in[k] == c->in[i]) return false;
  if (!p->backend->asynchronous) return true;
  return offset % VECTOR == 0 && (d.layout != HONE_LAYOUT_CHANNELS_LAST ||
                                  d.dim[1] % (VECTOR / (int64_t)hone_dtype_size(d.dtype)) == 0);
}

/* The chosen input that the slot is, or n_parts. */
static uint32_t input_of(const elision *e, uint32_t slot) {
  const hn_step *c = &e->p->steps.ptr[e->concat];
  uint32_t i = 0;
  while (i < e->n_parts && (c->in[i] != slot || !e->chosen[i])) i++;
  return slot == HN_NO_SLOT ? e->n_parts : i;
}

/* The tensors of a step with parts in the place of whole ones; NULL: out of memory. */
static const hone_step_tensor *with_parts(const elision *e, const hone_step_tensor *from,
                                          const uint32_t *slots, uint32_t n) {
  hone_step_tensor *to = hn_arena_memdup(&e->p->arena, from, n * sizeof *to);
  uint64_t offset;
  for (uint32_t i = 0; to && i < n; i++) {
    const uint32_t j = input_of(e, slots[i]);
    if (e->view != HN_NO_SLOT && slots[i] == e->view) to[i].desc = e->view_desc;
    if (j == e->n_parts) continue;
    to[i].desc = part_of(e, j, j + 1, &offset);
  }
  return to;
}

/* The parts of a chain, with tensors as the whole of it has them now. */
static const hone_step_part *parts_with_parts(const elision *e, const hone_step *whole) {
  hn_arena *a = &e->p->arena;
  hone_step_part *part = hn_arena_memdup(a, whole->part, whole->n_parts * sizeof *part);
  for (uint32_t k = 0; part && k < whole->n_parts; k++) {
    hone_step *step = hn_arena_memdup(a, part[k].step, sizeof *step);
    hone_step_tensor *in = step ? hn_arena_memdup(a, step->input, step->n_inputs * sizeof *in) : NULL;
    if (!in) return NULL;
    for (uint32_t i = 0; i < step->n_inputs; i++)
      if (part[k].input[i] != HONE_PART_CHAINED) in[i].desc = whole->input[part[k].input[i]].desc;
    step->input = in;
    if (k + 1 == whole->n_parts) step->output = whole->output;
    part[k].step = step;
  }
  return part;
}

static bool moves(const elision *e, uint32_t slot) {
  return input_of(e, slot) < e->n_parts || (slot != HN_NO_SLOT && slot == e->view);
}

static bool touches(const elision *e, const hn_step *s) {
  for (uint32_t i = 0; i < tensors_in(s); i++)
    if (moves(e, s->in[i])) return true;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++)
    if (moves(e, s->out[i])) return true;
  return false;
}

/* Step k as it would be: what does it, and what it loses. */
static bool change_step(elision *e, uint32_t k, double *lost) {
  hn_plan *p = e->p;
  const hn_step *s = &p->steps.ptr[k];
  change c = {.step = k, .desc = s->desc};
  if (k == e->concat || e->u->left_out[k] || !touches(e, s)) return true;
  if (s->kind != HN_STEP_TACTIC || s->n_captured || (s->desc.n_parts && p->backend->asynchronous))
    return false;
  c.desc.input = with_parts(e, s->desc.input, s->in, s->desc.n_inputs);
  c.desc.output = with_parts(e, s->desc.output, s->out, s->desc.n_outputs);
  if (!c.desc.input || !c.desc.output) return false;
  if (s->desc.n_parts && !(c.desc.part = parts_with_parts(e, &c.desc))) return false;
  hn_estimate now;
  c.tactic = hn_choose_tactic(p, &c.desc, &now, NULL);
  c.predicted = now.seconds;
  if (!c.tactic) return false;
  if (now.seconds > s->predicted_s) *lost += now.seconds - s->predicted_s;
  return hn_vec_push(&e->changes, c);
}

static int by_number(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static bool list_users(elision *e, uint32_t slot) {
  for (size_t j = e->u->first[slot]; j < e->u->end[slot]; j++)
    if (!hn_vec_push(&e->near, e->u->step[j])) return false;
  return true;
}

/* All steps with the chosen inputs in place; *lost: seconds. */
static bool change_steps(elision *e, double *lost) {
  const uint32_t *slot = e->p->steps.ptr[e->concat].in;
  e->changes.len = e->near.len = 0;
  *lost = 0;
  for (uint32_t i = 0; i < e->n_parts; i++)
    if (e->chosen[i] && !list_users(e, slot[i])) return false;
  if (e->view != HN_NO_SLOT && !list_users(e, e->view)) return false;
  if (e->near.len) qsort(e->near.ptr, e->near.len, sizeof *e->near.ptr, by_number);
  for (size_t j = 0; j < e->near.len; j++)
    if ((j == 0 || e->near.ptr[j] != e->near.ptr[j - 1]) && !change_step(e, e->near.ptr[j], lost))
      return false;
  return true;
}

/* What is still to be copied: inputs *from to *until - 1, those between two of them included. */
static void left_over(elision *e, uint32_t *from, uint32_t *until) {
  *from = 0, *until = e->n_parts;
  while (*from < e->n_parts && e->chosen[*from]) ++*from;
  while (*until > *from && e->chosen[*until - 1]) --*until;
  for (uint32_t i = *from; i < *until; i++) e->chosen[i] = false;
}

/* The Concat of inputs `from` to `until` - 1 alone, into their part of the output. */
static bool rest_of(const elision *e, uint32_t from, uint32_t until, change *rest, uint64_t *offset) {
  const hn_step *c = &e->p->steps.ptr[e->concat];
  hone_step_tensor *out = hn_arena_memdup(&e->p->arena, c->desc.output, sizeof *out);
  hn_estimate now;
  if (!out) return false;
  *rest = (change){.step = e->concat, .desc = c->desc};
  out->desc = part_of(e, from, until, offset);
  rest->desc.n_inputs = rest->desc.n_anchor_inputs = until - from;
  rest->desc.input += from;
  rest->desc.output = out;
  rest->desc.cost.bytes = 2 * (double)hone_desc_bytes(&out->desc);
  rest->tactic = hn_choose_tactic(e->p, &rest->desc, &now, NULL);
  rest->predicted = now.seconds;
  return rest->tactic != NULL;
}

static void apply(hn_step *s, const change *c) {
  s->desc = c->desc;
  s->tactic = c->tactic;
  s->predicted_s = c->predicted;
}

/* Where in its root's memory a slot begins. */
static uint64_t start_of(const hn_plan *p, uint32_t slot) {
  return p->slots.ptr[slot].alias == HN_NO_SLOT ? 0 : p->slots.ptr[slot].offset;
}

static void leave_out(elision *e, uint32_t from, uint32_t until, const change *rest, uint32_t rest_slot) {
  hn_plan *p = e->p;
  hn_step *c = &p->steps.ptr[e->concat];
  uint64_t offset;
  e->u->shared[c->out[0]] = true;
  for (uint32_t i = 0; i < e->n_parts; i++) {
    if (!e->chosen[i]) continue;
    const hone_tensor_desc d = part_of(e, i, i + 1, &offset);
    hn_slot *part = &p->slots.ptr[c->in[i]];
    e->u->part[c->in[i]] = true;
    part->desc = d;
    part->alias = hn_slot_root(p, c->out[0]);
    part->offset = offset + start_of(p, c->out[0]);
  }
  for (size_t i = 0; i < e->changes.len; i++)
    apply(&p->steps.ptr[e->changes.ptr[i].step], &e->changes.ptr[i]);
  if (from < until) {
    apply(c, rest);
    c->in += from;
    c->out[0] = rest_slot;
    return;
  }
  e->u->left_out[e->concat] = true;
}

/* The output as the part of another that all inputs together are. */
static bool parts_in_a_row(const elision *e, hone_tensor_desc *d, uint64_t *offset) {
  const hn_plan *p = e->p;
  const hn_step *c = &p->steps.ptr[e->concat];
  const hone_tensor_desc *y = &p->slots.ptr[c->out[0]].desc;
  int64_t axis = hone_node_int(c->node, "axis", 1), all = 0;
  if (axis < 0) axis += y->rank;
  if (axis < 0 || axis >= y->rank || !c->desc.n_inputs || c->in[0] == HN_NO_SLOT) return false;
  const hn_slot *first = &p->slots.ptr[c->in[0]];
  *d = first->desc;
  *offset = first->offset;
  for (uint32_t i = 0; i < c->desc.n_inputs; i++) {
    if (c->in[i] == HN_NO_SLOT || !e->u->part[c->in[i]]) return false;
    const hn_slot *s = &p->slots.ptr[c->in[i]];
    const hone_tensor_desc *x = &s->desc;
    if (hn_slot_root(p, c->in[i]) != hn_slot_root(p, c->in[0]) || x->dtype != y->dtype ||
        x->layout != y->layout || x->rank != y->rank ||
        s->offset != *offset + (uint64_t)(all * d->stride[axis]) * hone_dtype_size(d->dtype))
      return false;
    for (int32_t k = 0; k < y->rank; k++)
      if (x->stride[k] != d->stride[k] || (k != axis && x->dim[k] != y->dim[k])) return false;
    all += x->dim[axis];
  }
  d->dim[axis] = all;
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && axis == 1) d->channel_pitch = all;
  return all == y->dim[axis];
}

/* Leaves out a Concat whose inputs are there already, one behind the other. */
static bool view(elision *e) {
  hn_plan *p = e->p;
  const hn_step *c = &p->steps.ptr[e->concat];
  uint64_t offset;
  double lost;
  if (!p->backend->asynchronous || c->desc.n_outputs != 1 || !alone(e, c->out[0]) ||
      is_output(p, c->out[0]) || !parts_in_a_row(e, &e->view_desc, &offset))
    return false;
  e->view = c->out[0];
  if (change_steps(e, &lost) && lost < c->predicted_s) {
    hn_slot *s = &p->slots.ptr[e->view];
    for (size_t i = 0; i < e->changes.len; i++)
      apply(&p->steps.ptr[e->changes.ptr[i].step], &e->changes.ptr[i]);
    s->desc = e->view_desc;
    s->alias = hn_slot_root(p, c->in[0]);
    s->offset = offset;
    e->u->part[e->view] = e->u->left_out[e->concat] = true;
    return true;
  }
  e->view = HN_NO_SLOT;
  return false;
}

/* Leaves out what is worth it of one Concat. Its output may be a part of a later one's: of a chain of them,
 * in which each adds to what the one before gave, all are in the memory of the last. On an accelerator, where
 * parts begin at whole vectors, only the last is left out. */
static void elide(elision *e) {
  hn_plan *p = e->p;
  const hn_step *c = &p->steps.ptr[e->concat];
  const uint32_t whole = c->out ? c->out[0] : HN_NO_SLOT;
  double lost;
  uint32_t from, until, n = 0, slot = HN_NO_SLOT;
  change rest = {0};
  if (c->kind != HN_STEP_TACTIC || strcmp(c->desc.anchor, "Concat") != 0 || c->desc.n_epilogue || view(e) ||
      !lay_out(e))
    return;
  bool good[MOST_PARTS] = {false};
  for (uint32_t i = 0; i < e->n_parts; i++) {
    e->chosen[i] = may_move(e, i);
    good[i] = e->chosen[i] && change_steps(e, &lost);
    e->chosen[i] = false;
  }
  memcpy(e->chosen, good, sizeof good);
  left_over(e, &from, &until);
  for (uint32_t i = 0; i < e->n_parts; i++) n += e->chosen[i];
  if (!n || !change_steps(e, &lost)) return;
  if (from < until) {
    hn_slot part = {
        .value = p->slots.ptr[whole].value, .place = HN_PLACE_ARENA, .alias = hn_slot_root(p, whole)};
    if (!rest_of(e, from, until, &rest, &part.offset)) return;
    part.offset += start_of(p, whole);
    part.desc = rest.desc.output->desc;
    slot = (uint32_t)p->slots.len;
    if (lost + rest.predicted >= c->predicted_s || !hn_vec_push(&p->slots, part)) return;
  } else if (lost >= c->predicted_s)
    return;
  leave_out(e, from, until, &rest, slot);
}

void hn_plan_elide(hn_plan *p) {
  if (p->level < 2 || p->reference || p->separate) return;
  users u = {0};
  if (users_list(p, &u)) {
    for (uint32_t k = (uint32_t)p->steps.len; k-- > 0;) {
      elision e = {.p = p, .u = &u, .concat = k, .view = HN_NO_SLOT};
      elide(&e);
      hn_vec_free(&e.changes);
      hn_vec_free(&e.near);
    }
    size_t kept = 0;
    for (size_t k = 0; k < p->steps.len; k++)
      if (!u.left_out[k]) p->steps.ptr[kept++] = p->steps.ptr[k];
    p->steps.len = kept;
  }
  users_free(&u);
}
