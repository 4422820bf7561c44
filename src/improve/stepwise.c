/* Steps one by one. Roundings to a few levels amplify: behind some layers two right evaluations of a
 * quantised model lie so far apart that the end says little about either. So every step gets the reference's
 * own inputs: what it makes is compared and then replaced by what the reference made. An error cannot hide
 * behind another's sway, and none adds up. */
#include "improve/side.h"

#include "base/error.h"
#include "improve/compare.h"
#include "improve/roundings.h"
#include "improve/values.h"

#include "model/ops/common/op.h"
#include "optimize/plan/saved.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
  const hn_plan *plan;
  const hn_side *side; /* of the reference */
  hn_values reference;
  hn_map known;               /* value name -> hone_tensor: what the steps under test read in its place */
  HN_VEC(hone_tensor *) made; /* of those, what no run has made */
  double tolerance;
  bool rounded;
  hn_budget budget;
  bool late; /* its time is over: nothing more is judged */
  hn_stepwise *out;
  hone_status status;
  hone_error *error;
} walk;

static const hone_tensor *known_of(const void *arg, const hn_value *v) {
  return hn_map_get(&((const walk *)arg)->known, v->name);
}

static const hone_tensor *named_of(const void *arg, const hn_value *v) {
  const hone_tensor *t = hn_map_get(&((const walk *)arg)->reference.kept, v->name);
  return t && t->desc.dtype == v->desc.dtype && hone_desc_same_dims(&t->desc, &v->desc) ? t : NULL;
}

/* A saved plan keeps no bytes of constants that it packed. */
static const void *absent_of(const hn_plan *p) { return p->saved ? p->saved->absent : NULL; }

/* The output of the reference that v has to be: of the same name, or in the same place. -1: none. */
static int output_of(const walk *w, const hn_value *v) {
  for (uint32_t i = 0; i < w->side->plan->n_outputs; i++) {
    const int k = hn_output_of(w->plan, w->side->plan->outputs[i]->name, i);
    if (k >= 0 && strcmp(w->plan->outputs[k]->name, v->name) == 0) return (int)i;
  }
  return -1;
}

static const hone_tensor *reference_of(const walk *w, const hn_value *v, const hone_tensor *t) {
  const int i = output_of(w, v);
  if (i < 0) return hn_values_like(&w->reference, v, t);
  const hone_tensor *ref = hn_context_output(w->side->context, (uint32_t)i);
  return ref && ref->desc.dtype == t->desc.dtype && hone_desc_same_dims(&ref->desc, &t->desc) ? ref : NULL;
}

static void failed(walk *w, hone_status status) {
  if (w->status == HONE_OK) w->status = status;
}

/* Without time for it nothing is known of a value, least of all that it is wrong. */
static void judged(walk *w, hone_status status) {
  if (status == HONE_ERROR_BUDGET)
    w->late = true;
  else
    failed(w, status);
}

static void no_memory(walk *w) {
  failed(w, hn_fail(w->error, HONE_ERROR_MEMORY, "out of memory while comparing step by step"));
}

static void found(walk *w, const char *node, hn_stepwise_fault fault, double wrong, int64_t element) {
  if (w->out->fault) return;
  w->out->fault = fault;
  snprintf(w->out->node, sizeof w->out->node, "%s", node);
  w->out->wrong = wrong;
  w->out->element = element;
}

/* What is right where the two differ by more than `apart`: of what is seen, what no choice of roundings
 * makes. */
static hn_right right_of(walk *w, const hn_value *v, const hone_tensor *got, const hone_tensor *ref,
                         double apart) {
  const hn_seen_values known = {known_of, named_of, w, absent_of(w->plan), w->tolerance};
  hn_right r = {0};
  if (w->status == HONE_OK && !w->out->fault && !w->late)
    judged(w, hn_right_answers(&known, v, got, ref, apart, &w->budget, &r, w->error));
  w->out->unseen += w->late;
  return r;
}

/* The reference has no value of this name: what the step's own nodes make of what it was given. NULL: not
 * known. */
static hone_tensor *made_for(walk *w, const hn_value *v, const hone_tensor *got, bool by_name) {
  const hn_seen_values known = {known_of, named_of, w, absent_of(w->plan), w->tolerance};
  hone_tensor made = {0}, *t = NULL;
  if (!w->late) judged(w, hn_right_answer(&known, v, by_name, &w->budget, &made, w->error));
  if (made.data && made.desc.dtype == got->desc.dtype && hone_desc_same_dims(&made.desc, &got->desc) &&
      (t = hn_malloc(sizeof *t)) && hn_vec_push(&w->made, t)) {
    *t = made;
    return t;
  }
  hn_free(t);
  hn_free(made.data);
  return NULL;
}

/* ---- codes */

/* Values are levels: of 8 bits, or of 16 where a QuantizeLinear made them. */
static bool is_levels(const hn_value *v, hone_dtype t) {
  return hn_narrow_codes(t) && (hone_dtype_size(t) == 1 || hn_is_op(v->producer, "QuantizeLinear"));
}

/* Levels of 16 bits that floats lie apart which are both right. */
static double right_levels(const walk *w, hone_dtype t) {
  return hone_dtype_size(t) == 1 ? 0 : ceil(w->tolerance * 65535);
}

/* Elements that no rounding explains. All are, where each depends on one of each that is rounded. Nothing is
 * known of a level more or less where the roundings are not seen: the ends decide. */
static void judge_levels(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *got,
                         const hone_tensor *ref, const hn_difference *d) {
  const int64_t n = hone_desc_count(&ref->desc);
  const size_t size = hone_dtype_size(got->desc.dtype);
  const uint8_t *a = got->data, *b = ref->data;
  const double apart = right_levels(w, got->desc.dtype);
  int64_t differ = 0;
  for (int64_t i = 0; i < n; i++) differ += memcmp(a + (size_t)i * size, b + (size_t)i * size, size) != 0;
  if (d->max_abs > w->out->worst) w->out->worst = d->max_abs;
  if (!differ) return;
  if ((double)differ / (double)n > w->out->differ) w->out->differ = (double)differ / (double)n;
  if (d->max_abs <= apart) return;
  const hn_right r = right_of(w, v, got, ref, apart);
  if (w->late) return;
  const double share = r.seen ? (double)r.wrong / (double)n : 0;
  if (share > w->out->astray) w->out->astray = share;
  w->out->unseen += !r.seen;
  if (!r.seen && d->max_abs > apart + HN_STEPWISE_LEVELS)
    found(w, s->desc.name, HN_STEPWISE_WRONG_LEVELS, d->max_abs, d->where);
  else if (r.wrong && r.worst > apart + HN_STEPWISE_LEVELS)
    found(w, s->desc.name, HN_STEPWISE_WRONG_LEVELS, r.worst, r.first);
  else if (r.wrong && w->rounded && (r.complete || (r.wrong > 1 && share > HN_STEPWISE_ASTRAY)))
    found(w, s->desc.name, HN_STEPWISE_WRONG_ASTRAY, share, r.first);
}

/* ---- floats */

/* Here, or in the reference, of which a device's plan has another operator. */
static bool rounds_within(const walk *w, const hn_value *v) {
  const int i = output_of(w, v);
  return hn_rounds_within(v->producer) || (i >= 0 && hn_rounds_within(w->side->plan->outputs[i]->producer));
}

/* Outputs of the model that are floats: the roundings before them are the reference's, but for those within
 * the step. */
static void judge_output(walk *w, const char *node, const hn_value *v, const hn_difference *d, double apart,
                         const hn_right *r) {
  if (!v->is_output) return;
  w->out->steps += w->rounded && r->seen && !r->wrong; /* its last levels, which no step keeps as codes */
  if (apart > w->out->apart) w->out->apart = apart;
  if (!w->rounded || (!d->unlike && apart <= w->tolerance) || (r->seen && !r->wrong)) return;
  if (w->late) return;
  if ((r->seen && !r->complete) || rounds_within(w, v))
    w->out->unseen++; /* nothing is known: the ends decide */
  else
    found(w, node, HN_STEPWISE_WRONG_OUTPUT, apart, d->where);
}

/* Whether it is the reference's value. A float's name may be moved by a pass: where it is not, and nothing
 * that the step rounds in its midst explains it, its error is seen in the next codes, or at the
 * end. */
static bool judge_floats(walk *w, const char *node, const hn_value *v, const hone_tensor *got,
                         const hone_tensor *ref, const hn_difference *d) {
  const double scale = d->range > 0       ? d->range
                       : d->magnitude > 0 ? d->magnitude
                                          : 1,
               apart = d->max_abs / scale;
  hn_right r = {0};
  if (!hone_dtype_is_float(ref->desc.dtype)) return !d->unlike && d->max_abs <= 0;
  const bool agrees = !d->unlike && d->max_abs <= w->tolerance * d->range;
  if (!agrees) r = right_of(w, v, got, ref, w->tolerance * scale);
  judge_output(w, node, v, d, apart, &r);
  return agrees || (r.seen && !r.wrong);
}

/* ---- steps */

static void take_over(walk *w, const hn_value *v, const hone_tensor *ref, const hone_tensor *to) {
  hn_rows_put(ref, (hone_tensor *)to);
  if (!hn_map_set(&w->known, v->name, (void *)ref)) no_memory(w);
}

/* Codes come from a rounding, which may fall either way where the reference is about halfway
 * between two levels. Their meaning is never moved by a pass. What the nodes under test say of themselves
 * does for what lies between, but not for an output: all would be right that only agrees with itself. */
static void levels_done(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *out,
                        const hone_tensor *got) {
  const hone_tensor *ref = reference_of(w, v, out);
  for (int by_name = 1; by_name >= 0 && !ref && output_of(w, v) < 0; by_name--) {
    ref = made_for(w, v, got, by_name);
    if (ref && by_name && memcmp(ref->data, got->data, (size_t)hone_desc_bytes(&got->desc)) != 0) ref = NULL;
  }
  if (!ref) {
    w->out->unseen++;
    return;
  }
  hn_difference d;
  hn_compare(got, ref, &d);
  judge_levels(w, s, v, got, ref, &d);
  take_over(w, v, ref, out);
}

/* What only moved elements that are known: in another layout, or into its part of what a Concat makes. */
static void copy_done(walk *w, const hn_step *s, const hone_tensor *out, const hone_tensor *got,
                      const hone_tensor *ref) {
  hn_difference d;
  hn_compare(got, ref, &d);
  const bool wrong = d.unlike || d.max_abs > 0,
             narrow = hone_dtype_size(got->desc.dtype) == 1 || hn_narrow_codes(got->desc.dtype);
  if (wrong && narrow) found(w, s->desc.name, HN_STEPWISE_WRONG_LEVELS, d.max_abs, d.where);
  if (!wrong || narrow) hn_rows_put(ref, (hone_tensor *)out);
}

/* Of a Concat whose operands lie in their places already but for some: what copies those. */
static hone_tensor part_of(walk *w, const hn_step *s, const hn_value *v) {
  enum { MOST = 64 };
  hn_value *value[MOST];
  const hone_tensor *in[MOST];
  hone_tensor made = {0}, *out[] = {&made};
  hn_arena keep = {0};
  hone_node n = *v->producer;
  bool known = s->desc.n_inputs <= MOST;
  for (uint32_t i = 0; i < s->desc.n_inputs && known; i++) {
    value[i] = s->in[i] == HN_NO_SLOT ? NULL : (hn_value *)w->plan->slots.ptr[s->in[i]].value;
    in[i] = !value[i] ? NULL : value[i]->constant ? value[i]->constant : known_of(w, value[i]);
    known = in[i] && in[i]->data;
  }
  n.in = value;
  n.n_in = s->desc.n_inputs;
  hone_error why = {0};
  if (known && hn_eval_node(&n, in, out, &keep, NULL, &why) == HONE_ERROR_MEMORY) no_memory(w);
  hn_arena_free(&keep);
  return made;
}

static void part_done(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *out,
                      const hone_tensor *got) {
  hone_tensor ref = part_of(w, s, v);
  if (ref.data && ref.desc.dtype == got->desc.dtype && hone_desc_same_dims(&ref.desc, &got->desc))
    copy_done(w, s, out, got, &ref);
  else
    w->out->unseen += hn_narrow_codes(got->desc.dtype);
  hn_free(ref.data);
}

static void value_done(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *out,
                       const hone_tensor *got) {
  const bool levels = is_levels(v, out->desc.dtype);
  const hone_tensor *known = known_of(w, v), *ref = reference_of(w, v, out);
  hn_difference d;
  if (hn_is_op(v->producer, "Concat") && !hone_desc_same_dims(&v->desc, &out->desc))
    part_done(w, s, v, out, got);
  else if (known && known->desc.dtype == out->desc.dtype && hone_desc_same_dims(&known->desc, &out->desc))
    copy_done(w, s, out, got, known);
  else if (levels)
    levels_done(w, s, v, out, got);
  else if (ref) {
    hn_compare(got, ref, &d);
    if (judge_floats(w, s->desc.name, v, got, ref, &d)) take_over(w, v, ref, out);
  }
}

static void step_done(void *arg, const hn_step *s, hone_tensor *const *out) {
  walk *w = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs && w->status == HONE_OK; i++) {
    const hn_value *v = hn_value_of_step(w->plan, s, i);
    if (!v || !out[i] || !out[i]->data || hn_dtype_points(out[i]->desc.dtype)) continue;
    w->out->steps += is_levels(v, out[i]->desc.dtype);
    hone_tensor *got = hn_rows_of(out[i]);
    if (got)
      value_done(w, s, v, out[i], got);
    else
      no_memory(w);
    hn_rows_free(got);
  }
}

/* ---- outputs */

/* An output that no step made by itself: a view, or one that agreed with nothing when it was made. */
static void end_done(walk *w, const hn_value *v, const hone_tensor *got, const hone_tensor *ref) {
  hn_difference d;
  if (known_of(w, v) == ref || hn_dtype_points(ref->desc.dtype)) return;
  if (ref->desc.dtype != got->desc.dtype || !hone_desc_same_dims(&ref->desc, &got->desc)) {
    w->out->unseen++;
    return;
  }
  hn_compare(got, ref, &d);
  if (hone_dtype_is_float(got->desc.dtype))
    judge_floats(w, v->name, v, got, ref, &d);
  else if (w->rounded && (d.unlike || d.max_abs > 0))
    found(w, v->name, HN_STEPWISE_WRONG_OUTPUT, d.max_abs, d.where);
}

/* Every output of the reference. */
static void ends_done(walk *w, const hn_side *test) {
  for (uint32_t i = 0; i < w->side->plan->n_outputs && w->status == HONE_OK; i++) {
    const int k = hn_output_of(w->plan, w->side->plan->outputs[i]->name, i);
    const hone_tensor *ref = hn_context_output(w->side->context, i),
                      *got = k < 0 ? NULL : hn_context_output(test->context, (uint32_t)k);
    if (ref && got)
      end_done(w, w->plan->outputs[k], got, ref);
    else
      w->out->unseen++;
  }
}

hone_status hn_side_stepwise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             hone_dtype narrowest, hn_stepwise *out, hone_error *error) {
  if (test->plan->slices > 1) return HONE_OK; /* its values are those of a part of the batch */
  const bool rounded = narrowest == HONE_DTYPE_NONE;
  walk w = {.plan = test->plan,
            .side = reference,
            .tolerance = hn_verify_tolerance(rounded ? HONE_DTYPE_F32 : hone_dtype_element(narrowest), false),
            .rounded = rounded,
            .out = out,
            .error = error};
  hone_status status = hn_values_of_run(reference, feeds, n, &w.reference, error);
  if (test->max_seconds > 0) w.budget.deadline_ns = hn_now_ns() + (uint64_t)(test->max_seconds * 1e9);
  for (uint32_t i = 0; i < n && status == HONE_OK; i++)
    if (!hn_map_set(&w.known, feeds[i].name, (void *)&feeds[i].data.tensor)) no_memory(&w);
  if (status == HONE_OK && w.status == HONE_OK) {
    hn_context_watch(test->context, step_done, &w, true);
    status = hn_side_run(test, feeds, n, error);
    hn_context_watch(test->context, NULL, NULL, false);
    if (status == HONE_OK) ends_done(&w, test);
  }
  if (status == HONE_OK) status = w.status;
  for (size_t i = 0; i < w.made.len; i++) hn_rows_free(w.made.ptr[i]);
  hn_vec_free(&w.made);
  hn_map_free(&w.known);
  hn_values_free(&w.reference);
  return status;
}
