#include "insight/diagnose/stage.h"

void hn_stage_check(hn_diagnosis *d, const hn_stage *stage) {
  const hone_stages *s = &d->p->stages;
  if (s->total_ms <= 0 || 100 * stage->ms / s->total_ms <= stage->limit_pct) return;
  double share = stage->ms / s->total_ms;
  /* Run beside the inference of the next sample it costs only what exceeds the slowest other stage. */
  double rest = s->total_ms - stage->ms;
  double left = stage->ms > rest ? stage->ms - rest : stage->ms / 20;
  hone_finding *f = hn_finding_begin(d, NULL);
  const char *subject = HN_WORDS(d, stage->subject.en, stage->subject.zh);
  f->title = HN_SAY(d, "%s takes %.0f %% of the total", "%s占总时间的 %.0f %%", subject, 100 * share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = subject;
  f->quantity = stage->quantity;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(d, stage->cause.en, stage->cause.zh);
  hn_finding_evidence(d, HN_T("stage", "该阶段"), stage->ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("share of T_total", "占 T_total"), 100 * share, "%",
                      HN_T("T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle",
                           "T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle"));
  hn_finding_evidence(d, HN_T("inference", "推理"), s->infer_ms, "ms",
                      HN_T("exclusive wall time of the steps", "各步骤的独占墙钟时间"));
  hn_finding_evidence(d, HN_T("ceiling when stages overlap", "各阶段重叠时的上限"),
                      d->p->throughput.overlapped_fps, "samples/s",
                      HN_T("1 / slowest stage", "1 / 最慢阶段"));
  for (int i = 0; i < 3; i++)
    if (!i || stage->actions[i]) hn_finding_do(d, stage->actions[i], NULL, 2);
  hn_finding_gain(d, share, stage->ms / left, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "throughput when the stage overlaps the rest of the pipeline",
                           "该阶段与流水线其余部分重叠时的吞吐"),
                  0.5);
  hn_finding_end(d);
}
