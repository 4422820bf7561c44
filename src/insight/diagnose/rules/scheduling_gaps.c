/* Nobody works: time between the spans of a run. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  const hone_closure *c = &d->p->closure;
  double share = c->wall_ms > 0 ? 100 * c->gaps_ms / c->wall_ms : 0;
  if (share <= d->t->idle_share) return;
  bool one_place = c->longest_gap_ms > c->gaps_ms / 2;
  double healthy = d->t->healthy_idle / 100 * (c->wall_ms - c->gaps_ms);
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "%.0f %% of the run is idle between steps", share);
  f->structural = true;
  f->quantity = HONE_QUANTITY_GAPS;
  f->remedy = one_place ? HONE_REMEDY_USER : HONE_REMEDY_OPTIMIZER;
  if (one_place) {
    const char *before = c->longest_gap_before ? c->longest_gap_before : "the end of the run";
    f->subject = hn_say(d, "the gap before '%s'", before);
    f->cause =
        hn_say(d,
               "One gap makes up most of the idle time: something stops the run before '%s' (a lock, a page "
               "fault storm, a sleeping thread, work that is not recorded).",
               before);
  } else {
    f->subject = "whole run";
    f->cause = "Many steps are so short that the time between them adds up: fewer, larger steps (fusion) or "
               "a deeper "
               "queue would hide it.";
  }
  hn_finding_evidence(d, "idle", c->gaps_ms, "ms", "gaps between time stamps inside the run");
  hn_finding_evidence(d, "idle share", share, "%", "gaps over outer wall");
  hn_finding_evidence(d, "longest gap", c->longest_gap_ms, "ms", "worst of all iterations");
  hn_finding_evidence(d, "steps", (double)d->p->layer_count, "", "layer table");
  if (!one_place) hn_finding_command(d, "hone optimize %s -o optimized.onnx", d->model);
  hn_finding_command(d, "hone profile %s --trace trace.json", d->model);
  hn_finding_gain(
      d, c->gaps_ms / c->wall_ms, c->gaps_ms / healthy,
      hn_say(d, "table: back-to-back steps of hone's own CPU runs leave %.0f %% idle", d->t->healthy_idle),
      one_place ? 0.6 : 0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_scheduling_gaps = {"scheduling_gaps", run};
