/* Other processes take processors away while the network runs. */
#include "insight/diagnose/rule.h"

/* The typical run was left alone: fewer than half of the runs were interrupted at all, and the median takes
 * about as long as the best. Then single runs are late (the mean, p95), and what is said of typical ones
 * holds.
 */
static bool is_steady(const hn_diagnosis *d, double switches, double runs) {
  const hone_sample_stats *w = &d->p->wall;
  return w->count >= 8 && w->min > 0 && switches < runs / 2 &&
         w->p50 <= (1 + d->t->steady_run / 100) * w->min;
}

static void run(hn_diagnosis *d) {
  double others = 0, switches = 0, taken = 0;
  if (hn_on_accelerator(d)) return;
  if (!hn_counter(d, "others_cpu", -1, &others) || others < d->t->others_share) return;
  /* What others took is only a loss where threads of this process were ready and had to wait. */
  const bool waited = hn_counter(d, "run_delay", -1, &taken);
  if (!waited) taken = others;
  if (taken < d->t->others_share) return;
  const hone_sample_stats *w = &d->p->wall;
  bool counted = hn_counter(d, "involuntary_switches", -1, &switches);
  /* Without layers an iteration is a window of many runs (bench --duration). */
  double runs = d->p->layer_count ? (double)d->p->iterations : hone_facts_get_meta(d->facts)->runs;
  if (runs < 1) runs = 1;
  /* A process that is never interrupted has no competitor, however busy other processors are. */
  if (counted && switches < 1) return;
  /* What is taken away is gone: with p processors this run had (1 - others) of them. The best run shows the
   * machine as it would be, if it was ever left alone. */
  double s = 1 / (1 - (taken < 90 ? taken : 90) / 100);
  double best = w->min > 0 ? w->mean / w->min : 1;
  const bool steady = counted && is_steady(d, switches, runs);
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = steady
                 ? HN_SAY(d, "Other processes took %.0f %% of the processors; the typical run was left alone",
                          "其他进程占用了 %.0f %% 的处理器；典型的一次运行未受影响", others)
                 : HN_SAY(d, "Other processes took %.0f %% of the processors during these runs",
                          "运行期间，其他进程占用了 %.0f %% 的处理器", others);
  f->category = steady ? HONE_CATEGORY_NOTE : HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "the machine", "这台机器");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      steady
          ? HN_WORDS(
                d,
                "Few runs were interrupted: the mean and the slowest runs are the neighbours', medians are "
                "the network's. Other findings go by medians.",
                "只有少数运行被打断：均值与最慢的运行反映邻居，中位数反映网络。其他结论以中位数为准。")
          : HN_WORDS(
                d,
                "The threads of the network were interrupted by other work, and each step waits for its "
                "slowest thread. All other figures here were taken beside it and say as much about the "
                "neighbours as about the network: measure again when the machine is quiet.",
                "网络的线程被别的工作打断，而每个步骤都要等最慢的线程。这里的其他数据都是在此干扰下测得的，"
                "既反映网络，也反映邻居：请在机器空闲时重新测量。");
  hn_finding_evidence(d, HN_T("others' share", "其他进程占比"), others, "%",
                      HN_T("/proc/stat less this process' own time", "/proc/stat 减去本进程自身时间"));
  if (waited)
    hn_finding_evidence(
        d, HN_T("waiting for a processor", "等待处理器"), taken, "%",
        HN_T("run delay of the scheduler, over threads and time", "调度器统计的等待时间，除以线程数与时长"));
  if (counted)
    hn_finding_evidence(d, HN_T("interruptions an inference", "每次推理被打断次数"), switches / runs, "",
                        HN_T("involuntary context switches of the process", "进程的非自愿上下文切换"));
  hn_finding_evidence(d, HN_T("mean wall", "平均墙钟"), w->mean, "ms", HN_T("outer clock", "外部时钟"));
  hn_finding_evidence(d, HN_T("best wall", "最短墙钟"), w->min, "ms", HN_T("outer clock", "外部时钟"));
  hn_finding_do(d, HN_DO_NEIGHBOURS, NULL, 0);
  hn_finding_do(d, HN_DO_WHEN_QUIET, NULL, 0);
  if (!steady) {
    hn_finding_gain(d, 1, s, HONE_BASIS_MEASURED,
                    waited ? HN_WORDS(d, "threads that are ready need not wait for a processor",
                                      "就绪的线程不必再等待处理器")
                           : HN_WORDS(d, "the processors' time that others took is available again",
                                      "其他进程占用的处理器时间重新可用"),
                    0.6);
    hn_finding_range(d, 1, best > s ? best : s);
  }
  hn_finding_end(d);
}

const struct hn_rule hn_rule_busy_neighbour = {"busy_neighbour", run};
