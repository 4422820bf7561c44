/* Inference gets slower while it goes on: heat, a leak, a growing queue. */
#include "insight/diagnose/rule.h"

#include "base/quantile.h"
#include "insight/profile/rank.h"

static double median(hn_diagnosis *d, const double *v, size_t n) {
  double *sorted = hn_arena_memdup(d->arena, v, n * sizeof *v);
  if (!sorted) {
    d->failed = true;
    return 0;
  }
  hn_ascend(sorted, n);
  return hn_median(sorted, n);
}

static void run(hn_diagnosis *d) {
  const size_t n = d->p->wall.count, part = n / 4;
  const double *w = d->p->walls_ms;
  if (!w || (double)n < d->t->drift_runs || part < 5) return;
  /* Four quarters: each slower than the one before, and the last certainly slower than the first. A burst of
   * other work in the middle or at the end is no drift. */
  double quarter[4];
  for (int i = 0; i < 4; i++) quarter[i] = median(d, w + (size_t)i * part, part);
  double growth = quarter[0] > 0 ? 100 * (quarter[3] / quarter[0] - 1) : 0;
  if (d->failed || growth < d->t->drift_growth || quarter[1] < quarter[0] || quarter[2] < quarter[1] ||
      quarter[3] < quarter[2])
    return;
  if (hn_rank_test(w, part, w + 3 * part, part) > 0.001 ||
      hn_rank_test(w, 2 * part, w + 2 * part, 2 * part) > 0.001)
    return;
  double total = 0;
  for (size_t i = 0; i < n; i++) total += w[i];
  const bool brief = total < 1000 * d->t->drift_seconds;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Inference got %.0f %% slower over %zu runs", "%2$zu 次运行中推理变慢了 %1$.0f %%",
                    growth, n);
  /* Of a few seconds it says as much about the machine as about the network. */
  f->category = brief ? HONE_CATEGORY_NOTE : HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "whole run", "整个运行");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      brief
          ? HN_WORDS(
                d,
                "Each quarter of the runs is slower than the one before, but all of them took only "
                "seconds: other work on this machine does that, too. A longer run tells whether it goes on.",
                "每四分之一的运行都比前一段慢，但全部运行只有几秒：这台机器上的其他工作也会造成这种现象。"
                "更长的运行才能说明它是否持续。")
          : HN_WORDS(d,
                     "Each quarter of the runs is slower than the one before: the device heats up and clocks "
                     "down, memory grows, or something accumulates.",
                     "每四分之一的运行都比前一段慢：设备升温降频、内存增长，或有东西在累积。");
  hn_finding_evidence(d, HN_T("first quarter", "第一个四分之一"), quarter[0], "ms",
                      HN_T("median wall, outer clock", "墙钟中位数，外部时钟"));
  hn_finding_evidence(d, HN_T("last quarter", "最后一个四分之一"), quarter[3], "ms",
                      HN_T("median wall, outer clock", "墙钟中位数，外部时钟"));
  hn_finding_evidence(d, HN_T("growth", "增长"), growth, "%", HN_T("outer clock", "外部时钟"));
  hn_finding_evidence(d, HN_T("all runs together", "全部运行合计"), total / 1000, "s",
                      HN_T("outer clock", "外部时钟"));
  if (brief) hn_finding_do(d, HN_DO_LONGER, NULL, 0);
  hn_finding_do(d, HN_DO_MEASURE, NULL, 0);
  if (hn_on_accelerator(d)) hn_finding_do(d, HN_DO_CLOCKS, NULL, 0);
  if (!brief)
    hn_finding_gain(
        d, 1, d->p->wall.mean / quarter[0], HONE_BASIS_MEASURED,
        HN_WORDS(d, "every run is as fast as the first quarter", "每次运行都与第一个四分之一一样快"), 0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_latency_drift = {"latency_drift", run};
