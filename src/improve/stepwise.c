/* Steps one by one. Roundings to a few levels amplify: behind some layers two right evaluations of a
 * quantised model lie so far apart that the end says little about either. So every step gets the reference's
 * own inputs: what it makes is compared and then replaced by what the reference made. An error cannot hide
 * behind another's sway, and none adds up. */
#include "improve/side.h"

#include "base/error.h"
#include "improve/compare.h"
#include "improve/values.h"

#include <stdio.h>
#include <string.h>

typedef struct walk {
  const hn_plan *plan;
  hn_values reference;
  hn_stepwise *out;
  bool failed;
} walk;

/* Values of 8 bits come from a rounding, which may fall either way where the reference is halfway between two
 * levels: one step. Their meaning is never moved by a pass, whereas a float's name may be: such a value is
 * taken over where it agrees, and its error is seen in the next value of 8 bits, or at the end. */
static void step_done(void *arg, const hn_step *s, hone_tensor *const *out) {
  walk *w = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hone_tensor *ref = hn_values_like(&w->reference, hn_value_of_step(w->plan, s, i), out[i]);
    if (!ref) continue;
    hone_tensor *t = hn_rows_of(out[i]);
    if (!t) {
      w->failed = true;
      return;
    }
    hn_difference d;
    hn_compare(t, ref, &d);
    hn_rows_free(t);
    bool levels = hone_dtype_size(ref->desc.dtype) == 1 && ref->desc.dtype != HONE_DTYPE_BOOL;
    if (levels) {
      w->out->steps++;
      if (d.max_abs > w->out->worst) w->out->worst = d.max_abs;
      if (d.max_abs > HN_STEPWISE_LEVELS && !w->out->node[0]) {
        snprintf(w->out->node, sizeof w->out->node, "%s", s->desc.name);
        w->out->wrong = d.max_abs;
        w->out->element = d.where;
      }
    }
    if (levels || (!d.unlike && d.max_abs <= hn_verify_tolerance(ref->desc.dtype, true) * d.range))
      hn_rows_put(ref, out[i]);
  }
}

hone_status hn_side_stepwise(hn_side *test, hn_side *reference, const hn_feed *feeds, uint32_t n,
                             hn_stepwise *out, hone_error *error) {
  walk w = {.plan = test->plan, .out = out};
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
