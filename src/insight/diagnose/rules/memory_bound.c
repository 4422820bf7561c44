/* Much of the time goes to operators that wait for memory: fewer bytes, not faster arithmetic, would help. */
#include "insight/diagnose/rule.h"

static bool waits_for_memory(const hn_diagnosis *d, const hone_layer *l) {
  return l->bound == HONE_LIMIT_MEMORY && l->bound_confidence >= 0.5 && !hn_is_reformat(d->facts, l);
}

static void run(hn_diagnosis *d) {
  double ms = 0, bytes = 0, weights = 0;
  size_t count = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!waits_for_memory(d, l)) continue;
    const hone_step_fact *step = hn_step(d, l);
    ms += hn_typical_ms(l);
    bytes += l->bytes;
    weights += step ? (double)step->weight_bytes * l->calls : 0;
    count++;
  }
  double share = hn_share(d, ms);
  if (!count || share < d->t->memory_share) return;
  bool by_weights = weights > bytes / 2;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "Memory-bound operators take %.0f %% of the time", share);
  f->subject = hn_say(d, "%zu operators", count);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause =
      by_weights
          ? "These operators stream weights faster than they compute with them: their speed is the speed "
            "of memory. Narrower weights or a larger batch move fewer bytes per sample."
          : "These operators move more bytes than their arithmetic can hide: their speed is the speed of "
            "memory. Fusing them into their producers or narrower numbers move fewer bytes.";
  hn_finding_evidence(d, "memory-bound share", share, "%", "exclusive wall time of the spans");
  hn_finding_evidence(d, "moved", bytes / 1e6, "MB", "shapes of the steps, read + written");
  hn_finding_evidence(d, "achieved", bytes / ms / 1e6, "GB/s", "bytes over time");
  hn_finding_evidence(d, "of it weights", bytes > 0 ? 100 * weights / bytes : 0, "%", "shapes of the steps");
  if (by_weights) hn_finding_command(d, "hone bench %s -b 8", d->model);
  hn_finding_command(d, "hone optimize %s --explain", d->model);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (waits_for_memory(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, hn_share(d, ms) / 100, 2,
                  "roofline: at the bandwidth roof time follows bytes, and 16-bit numbers are half of them",
                  0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_memory_bound = {"memory_bound", run};
