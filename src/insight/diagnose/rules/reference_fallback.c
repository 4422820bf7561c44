/* Steps that run the scalar reference because no fast tactic accepts them. On an accelerator they run on the
 * host: what they read and write is copied, and the device waits. */
#include "insight/diagnose/rule.h"

#include <string.h>

static bool is_copy(const hone_layer *l) { return strcmp(l->type, "Copy") == 0; }

static bool is_reference(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->is_reference && !hn_has_unknown_shape(step); /* those have a rule of their own */
}

/* Why the fast tactics refused, in their own words: the first reason of the slowest step. */
static const char *first_reason(const hn_diagnosis *d, const hone_layer *l, const char **tactic) {
  const hone_step_fact *step = hn_step(d, l);
  for (size_t i = 0; step && i < step->alternative_count; i++)
    if (step->alternatives[i].reason) {
      *tactic = step->alternatives[i].tactic ? step->alternatives[i].tactic : "a tactic";
      return step->alternatives[i].reason;
    }
  return NULL;
}

static void run(hn_diagnosis *d) {
  double ms = 0, reachable_ms = 0;
  const hone_layer *slowest = NULL;
  size_t count = 0, copies = 0;
  double copy_ms = 0;
  const hone_facts_meta *meta = hone_facts_get_meta(d->facts);
  const bool apart = meta->backend && strcmp(meta->backend, "cpu") != 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (is_copy(l)) copies++, copy_ms += hn_typical_ms(l);
    if (!is_reference(d, l)) continue;
    ms += hn_typical_ms(l);
    /* A plain vectorised kernel, not a tuned one: half of the roofline. */
    reachable_ms += hn_roof_time(d, l, 50);
    count++;
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  if (apart) ms += copy_ms;
  double share = hn_share(d, ms);
  if (!count || share < d->t->reference_share) return;
  const char *tactic = NULL, *reason = first_reason(d, slowest, &tactic);
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title =
      apart ? hn_say(d, "Steps that fell back to the host (%zu, with %zu copies) take %.0f %% of the time",
                     count, copies, share)
            : hn_say(d, "Steps on the scalar reference (%zu) take %.0f %% of the time", count, share);
  f->structural = true;
  f->subject = slowest->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      reason
          ? hn_say(d, "No fast tactic accepts them. For '%s', %s says: %s.", slowest->name, tactic, reason)
          : hn_say(d, "No fast tactic accepts them; '%s' (%s) is the slowest.", slowest->name, slowest->type);
  hn_finding_evidence(d, "reference share", share, "%", "exclusive wall time of the spans");
  if (apart) {
    hn_finding_evidence(d, "copies between host and device", (double)copies, "", "steps of the plan");
    hn_finding_evidence(d, "time of these copies", copy_ms, "ms", "exclusive wall time of the spans");
  }
  hn_finding_evidence(d, "slowest", hn_typical_ms(slowest), "ms", slowest->name);
  hn_finding_evidence(d, "its share of the roofline", slowest->roof_pct, "%",
                      "measured roofs of this machine");
  hn_finding_command(d, "hone optimize %s --explain", d->model);
  hn_finding_command(d, "hone profile %s --filter %s", d->model, slowest->type);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_reference(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  double s = reachable_ms < ms ? ms / reachable_ms : 4;
  hn_finding_gain(d, hn_share(d, ms) / 100, s > 50 ? 50 : s,
                  reachable_ms < ms
                      ? "roofline: half of the measured roof, a plain vectorised kernel"
                      : "table: one 8-lane f32 vector at half efficiency against scalar code, any x86-64",
                  0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_reference_fallback = {"reference_fallback", run};
