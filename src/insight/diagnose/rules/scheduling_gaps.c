/* Nobody works: time between the spans of a run. */
#include "insight/diagnose/gaps.h"

enum { SHOWN = 5 }; /* gaps whose neighbours a report marks, where there are many */

/* Spans that are launches on the host say nothing about what the device did between them. */
static bool sees_the_work(const hn_diagnosis *d) {
  double launches = 0, work = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_step_fact *step = hn_step(d, &d->p->layers[i]);
    *(step && step->is_launch ? &launches : &work) += hn_typical_ms(&d->p->layers[i]);
  }
  return hn_has_timeline(d) && work > launches;
}

static void run(hn_diagnosis *d) {
  const hone_closure *c = &d->p->closure;
  const double idle_ms = c->typical_gaps_ms; /* one disturbed run of few does not make a habit */
  const double share = c->typical_gaps_pct;
  if (share <= d->t->idle_share || !sees_the_work(d) || hn_is_window(d)) return;
  bool one_place = c->typical_longest_gap_ms > idle_ms / 2;
  double healthy = d->t->healthy_idle / 100 * (100 / share - 1) * idle_ms;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title =
      HN_SAY(d, "%.0f %% of the run is idle between steps", "运行中有 %.0f %% 的时间在步骤之间空闲", share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->quantity = HONE_QUANTITY_GAPS;
  f->remedy = one_place ? HONE_REMEDY_USER : HONE_REMEDY_OPTIMIZER;
  if (one_place) {
    const char *before = c->typical_longest_gap_before ? c->typical_longest_gap_before
                                                       : HN_WORDS(d, "the end of the run", "运行结束");
    f->subject = HN_SAY(d, "the gap before '%s'", "'%s' 之前的空隙", before);
    f->cause =
        HN_SAY(d,
               "One gap makes up most of the idle time: something stops the run before '%s' (a lock, a page "
               "fault storm, a sleeping thread, work that is not recorded).",
               "空闲时间大部分来自一个空隙：在 '%s' "
               "之前有什么让运行停了下来（锁、缺页、休眠的线程、未被记录的工作）。",
               before);
  } else {
    f->subject = HN_WORDS(d, "whole run", "整个运行");
    f->cause = HN_WORDS(
        d,
        "Many steps are so short that the time between them adds up: fewer, larger steps (fusion) or a "
        "deeper queue would hide it.",
        "许多步骤太短，步骤之间的时间累积起来：更少更大的步骤（融合）或更深的队列可以把它隐藏。");
  }
  hn_finding_evidence(d, HN_T("idle", "空闲"), idle_ms, "ms",
                      HN_T("gaps between time stamps inside the median run", "中位运行内部时间戳之间的空隙"));
  hn_finding_evidence(d, HN_T("idle share", "空闲占比"), share, "%",
                      HN_T("gaps over the median run", "空隙除以中位运行的时间"));
  hn_finding_evidence(d, HN_T("longest gap", "最长的空隙"), c->longest_gap_ms, "ms",
                      HN_T("worst of all iterations", "所有迭代中最差者"));
  hn_finding_evidence(d, HN_T("steps", "步骤数"), (double)d->p->layer_count, "", HN_SOURCE_LAYERS);
  hn_gaps_beside(d, one_place ? 1 : SHOWN);
  if (!one_place) hn_finding_do(d, hn_on_accelerator(d) ? HN_DO_GRAPH : HN_DO_OPTIMIZE, NULL, 0);
  if (hn_streams(d) == 1) hn_finding_do(d, HN_DO_STREAMS, NULL, 2); /* another run fills them */
  hn_finding_do(d, HN_DO_TIMELINE, NULL, 0);
  hn_finding_gain(d, share / 100, idle_ms / healthy, HONE_BASIS_TABLE,
                  HN_SAY(d, "back-to-back steps of hone's own CPU runs leave %.0f %% idle",
                         "hone 自己的 CPU 运行中，首尾相接的步骤只留下 %.0f %% 空闲", d->t->healthy_idle),
                  one_place ? 0.6 : 0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_scheduling_gaps = {"scheduling_gaps", run};
