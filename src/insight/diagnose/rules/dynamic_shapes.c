/* Steps whose shapes are not known when the plan is made: no fast tactic can be chosen, no memory planned. */
#include "insight/diagnose/rule.h"

static bool is_unknown(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->is_reference && hn_has_unknown_shape(step);
}

static void run(hn_diagnosis *d) {
  double ms = 0;
  size_t count = 0;
  const hone_layer *first = NULL, *slowest = NULL;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!is_unknown(d, l)) continue;
    ms += hn_typical_ms(l);
    count++;
    if (!first) first = l;
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  double share = hn_share(d, ms);
  if (!count || share < d->t->reference_share) return;
  /* Below level 2 the graph's shape arithmetic is not folded; folding it usually makes the shapes known. */
  bool low_level = hone_facts_get_meta(d->facts)->opt_level < 2;
  const char *shape = hn_step(d, first)->shape_out;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "Steps of unknown shape (%zu) take %.0f %% of the time", count, share);
  f->structural = true;
  f->subject = hn_say(d, "%zu steps from '%s' on", count, first->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = low_level ? HONE_REMEDY_OPTIMIZER : HONE_REMEDY_SETTING;
  f->cause = hn_say(
      d,
      "From '%s' on shapes are computed while the network runs (%s), so these steps fall back to the "
      "scalar reference. %s",
      first->name, shape ? shape : "?",
      low_level ? "Folding the shape arithmetic makes them known before."
                : "Fixing the input shapes, or exporting the model with fixed ones, makes them known.");
  hn_finding_evidence(d, "their share", share, "%", "exclusive wall time of the spans");
  hn_finding_evidence(d, "steps", (double)count, "", "step table");
  hn_finding_evidence(d, "slowest", hn_typical_ms(slowest), "ms", slowest->name);
  hn_finding_command(d, low_level ? "hone optimize %s -o optimized.onnx" : "hone inspect %s", d->model);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_unknown(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, 15,
      "table: scalar references against vectorised kernels, 10 to 20 times on two AVX-512 cores (NanoDet)",
      0.6);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_dynamic_shapes = {"dynamic_shapes", run};
