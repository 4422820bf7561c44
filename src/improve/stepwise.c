/* Steps one by one. Roundings to a few levels amplify: behind some layers two right evaluations of a
 * quantised model lie so far apart that the end says little about either. So every step gets the reference's
 * own inputs: what it makes is compared and then replaced by what the reference made. An error cannot hide
 * behind another's sway, and none adds up. */
#include "improve/side.h"

#include "base/error.h"
#include "improve/compare.h"
#include "improve/values.h"

#include "model/ops/common/op.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct walk {
  const hn_plan *plan;
  hn_values reference;
  const hn_feed *feeds;
  uint32_t n_feeds;
  bool rounded;
  hn_stepwise *out;
  bool failed;
} walk;

/* What a value of 8 bits was rounded from, on the reference side. */
typedef struct rounding {
  const hone_tensor *from; /* f32; NULL: not known */
  double scale;
  double slack; /* levels: how far right answers in f32 may lie apart before they are rounded */
} rounding;

static const hone_tensor *kept_or_fed(const walk *w, const hn_value *v) {
  const hone_tensor *t =
      v->constant && v->constant->data ? v->constant : hn_map_get(&w->reference.kept, v->name);
  for (uint32_t i = 0; !t && i < w->n_feeds; i++)
    if (strcmp(w->feeds[i].name, v->name) == 0) t = &w->feeds[i].data.tensor;
  return t;
}

static rounding rounding_of(const walk *w, const hn_value *v, const hone_tensor *codes) {
  const hone_node *n = v->producer;
  rounding r = {0};
  const hn_value *scale = NULL;
  if (n && hn_is_op(n, "QuantizeLinear")) scale = n->in[1];
  if (n && hn_is_op(n, "DynamicQuantizeLinear") && v->producer_index == 0) scale = n->out[1];
  const hone_tensor *from = scale ? kept_or_fed(w, n->in[0]) : NULL,
                    *size = from ? kept_or_fed(w, scale) : NULL;
  if (!size || from->desc.dtype != HONE_DTYPE_F32 || size->desc.dtype != HONE_DTYPE_F32 ||
      hone_desc_count(&size->desc) != 1 || !hone_desc_same_dims(&from->desc, &codes->desc) ||
      from->desc.layout != HONE_LAYOUT_ROW_MAJOR)
    return r;
  hn_difference d;
  hn_compare(from, from, &d);
  r.scale = (double)*(const float *)size->data;
  if (!(r.scale > 0)) return r;
  r.from = from;
  r.slack = hn_verify_tolerance(HONE_DTYPE_F32, false) * fmax(d.range, d.magnitude) / r.scale;
  return r;
}

static void found(walk *w, const hn_step *s, hn_stepwise_fault fault, double wrong, int64_t element) {
  if (w->out->fault) return;
  w->out->fault = fault;
  snprintf(w->out->node, sizeof w->out->node, "%s", s->desc.name);
  w->out->wrong = wrong;
  w->out->element = element;
}

/* Shares of elements that differ, and that differ where nothing was halfway between two levels. */
static void count_astray(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *got,
                         const hone_tensor *ref) {
  const rounding r = rounding_of(w, v, ref);
  const int64_t n = hone_desc_count(&ref->desc);
  int64_t differ = 0, astray = 0, first = -1;
  for (int64_t i = 0; i < n; i++) {
    if (((const uint8_t *)got->data)[i] == ((const uint8_t *)ref->data)[i]) continue;
    differ++;
    if (!r.from) continue;
    const double x = (double)((const float *)r.from->data)[i] / r.scale;
    if (fabs(fabs(x - floor(x)) - 0.5) <= r.slack) continue;
    if (astray++ == 0) first = i;
  }
  if (n && (double)differ / (double)n > w->out->differ) w->out->differ = (double)differ / (double)n;
  if (n && (double)astray / (double)n > w->out->astray) w->out->astray = (double)astray / (double)n;
  if (w->rounded && astray > 1 && (double)astray > HN_STEPWISE_ASTRAY * (double)n)
    found(w, s, HN_STEPWISE_WRONG_ASTRAY, (double)astray / (double)n, first);
}

/* Outputs of the model that are floats: the roundings before them are the reference's. */
static void judge_output(walk *w, const hn_step *s, const hn_value *v, const hone_tensor *ref,
                         const hn_difference *d) {
  const double scale = d->range > 0       ? d->range
                       : d->magnitude > 0 ? d->magnitude
                                          : 1,
               apart = d->max_abs / scale;
  if (!v->is_output || !hone_dtype_is_float(ref->desc.dtype)) return;
  if (apart > w->out->apart) w->out->apart = apart;
  if (w->rounded && (d->unlike || apart > hn_verify_tolerance(ref->desc.dtype, false)))
    found(w, s, HN_STEPWISE_WRONG_OUTPUT, apart, d->where);
}

/* Values of 8 bits come from a rounding, which may fall either way where the reference is halfway between two
 * levels: one step. Their meaning is never moved by a pass, whereas a float's name may be: such a value is
 * taken over where it agrees, else its error is seen in the next value of 8 bits, or at the end. */
static void step_done(void *arg, const hn_step *s, hone_tensor *const *out) {
  walk *w = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = hn_value_of_step(w->plan, s, i);
    const hone_tensor *ref = hn_values_like(&w->reference, v, out[i]);
    const bool levels =
        out[i] && hone_dtype_size(out[i]->desc.dtype) == 1 && out[i]->desc.dtype != HONE_DTYPE_BOOL;
    if (!ref) {
      w->out->unseen += v && levels;
      continue;
    }
    hone_tensor *t = hn_rows_of(out[i]);
    if (!t) {
      w->failed = true;
      return;
    }
    hn_difference d;
    hn_compare(t, ref, &d);
    if (levels) {
      w->out->steps++;
      if (d.max_abs > w->out->worst) w->out->worst = d.max_abs;
      if (d.max_abs > HN_STEPWISE_LEVELS) found(w, s, HN_STEPWISE_WRONG_LEVELS, d.max_abs, d.where);
      if (d.max_abs > 0) count_astray(w, s, v, t, ref);
    }
    hn_rows_free(t);
    judge_output(w, s, v, ref, &d);
    if (levels || (!d.unlike && d.max_abs <= hn_verify_tolerance(ref->desc.dtype, false) * d.range))
      hn_rows_put(ref, out[i]);
  }
}

hone_status hn_side_stepwise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             bool rounded, hn_stepwise *out, hone_error *error) {
  if (test->plan->slices > 1) return HONE_OK; /* its values are those of a part of the batch */
  walk w = {.plan = test->plan, .feeds = feeds, .n_feeds = n, .rounded = rounded, .out = out};
  hone_status status = hn_values_of_run(reference, feeds, n, &w.reference, error);
  if (status == HONE_OK) {
    hn_context_watch(test->context, step_done, &w, true);
    status = hn_side_run(test, feeds, n, error);
    hn_context_watch(test->context, NULL, NULL, false);
  }
  if (status == HONE_OK && w.failed)
    status = hn_fail(error, HONE_ERROR_MEMORY, "out of memory while comparing step by step");
  hn_values_free(&w.reference);
  return status;
}
