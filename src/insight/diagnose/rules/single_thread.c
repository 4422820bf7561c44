/* One thread works, more processors are there. */
#include "insight/diagnose/rule.h"

#include <string.h>

/* Speed-up from `cores` threads for one kind of roof, by the machine's own measurement; 0 when not measured.
 */
static double measured_scaling(const hn_diagnosis *d, bool memory, const char *name, double cores) {
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(d->facts, &n);
  double one = 0, many = 0;
  int32_t most = 1;
  for (size_t i = 0; i < n; i++) {
    double value = memory ? roofs[i].gbs : roofs[i].gflops;
    if (value <= 0 || strcmp(roofs[i].name, name) != 0) continue;
    if (roofs[i].threads == 1) one = value;
    if (roofs[i].threads > most && roofs[i].threads <= cores) {
      most = roofs[i].threads;
      many = value;
    }
  }
  return one > 0 && many > 0 ? many / one : 0;
}

static void run(hn_diagnosis *d) {
  const hone_facts_meta *m = hone_facts_get_meta(d->facts);
  if (m->threads != 1 || m->cores < 2) return;
  double work_ms = 0;
  double compute = measured_scaling(d, false, "f32", m->cores),
         memory = measured_scaling(d, true, "DRAM", m->cores);
  bool measured = compute > 1;
  double scaling = measured ? compute : 0.8 * m->cores;
  /* Each step speeds up like the roof that limits it. */
  double parallel_ms = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    work_ms += hn_typical_ms(l);
    parallel_ms += hn_typical_ms(l) / (l->bound == HONE_LIMIT_MEMORY && memory > 1 ? memory : scaling);
  }
  if (work_ms <= 0 || parallel_ms <= 0) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "One thread computes while %.0f processors may be used", m->cores);
  f->structural = true;
  f->subject = "whole run";
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = "The session was created with one thread.";
  hn_finding_evidence(d, "threads", m->threads, "", "session");
  hn_finding_evidence(d, "processors", m->cores, "", "affinity mask of the process");
  hn_finding_evidence(d, "steps' share", hn_share(d, work_ms), "%", "exclusive wall time of the spans");
  if (measured) hn_finding_evidence(d, "f32 scaling", compute, "x", "measured roofs of this machine");
  if (memory > 1) hn_finding_evidence(d, "DRAM scaling", memory, "x", "measured roofs of this machine");
  hn_finding_command(d, "hone bench %s -t %.0f", d->model, m->cores);
  hn_finding_gain(d, hn_share(d, work_ms) / 100, work_ms / parallel_ms,
                  measured
                      ? "measured: roofs of this machine with one and with all threads"
                      : "table: 80 % parallel efficiency per processor, assumed for lack of measured roofs",
                  measured ? 0.7 : 0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_single_thread = {"single_thread", run};
