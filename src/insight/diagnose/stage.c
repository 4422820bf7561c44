#include "insight/diagnose/stage.h"

void hn_stage_check(hn_diagnosis *d, const hn_stage *stage) {
  const hone_stages *s = &d->p->stages;
  if (s->total_ms <= 0 || 100 * stage->ms / s->total_ms <= stage->limit_pct) return;
  double share = stage->ms / s->total_ms;
  /* Run beside the inference of the next sample it costs only what exceeds the slowest other stage. */
  double rest = s->total_ms - stage->ms;
  double left = stage->ms > rest ? stage->ms - rest : stage->ms / 20;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = hn_say(d, "%s takes %.0f %% of the total", stage->subject, 100 * share);
  f->structural = true;
  f->subject = stage->subject;
  f->quantity = stage->quantity;
  f->remedy = HONE_REMEDY_USER;
  f->cause = stage->cause;
  hn_finding_evidence(d, "stage", stage->ms, "ms", "exclusive wall time of its spans");
  hn_finding_evidence(d, "share of T_total", 100 * share, "%",
                      "T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle");
  hn_finding_evidence(d, "inference", s->infer_ms, "ms", "exclusive wall time of the steps");
  hn_finding_evidence(d, "ceiling when stages overlap", d->p->throughput.overlapped_fps, "samples/s",
                      "1 / slowest stage");
  hn_finding_command(d, "hone profile %s --trace trace.json", d->model);
  hn_finding_gain(d, share, stage->ms / left,
                  "measured: throughput when the stage overlaps the rest of the pipeline", 0.5);
  hn_finding_end(d);
}
