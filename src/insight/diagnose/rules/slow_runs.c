/* Single runs that took much longer than they usually do: what was seen of them, by cause. */
#include "insight/diagnose/rule.h"

#include <hone/history.h>

#include <string.h>

typedef struct group {
  size_t runs;
  double wall_ms, usual_ms;
  const hone_slow_run *worst;
  const char *place; /* step or the step after a pause that all of them share; NULL: several */
  bool pause;
} group;

static const char *place_of(const hone_slow_run *r) { return r->step ? r->step : r->pause_before; }

static group gather(const hn_diagnosis *d, hone_slow_cause cause) {
  size_t n;
  const hone_slow_run *r = hone_facts_slow_runs(d->facts, &n);
  group g = {0};
  for (size_t i = 0; i < n; i++) {
    if (hone_slow_run_cause(&r[i]) != cause || !(r[i].wall_ms > r[i].usual_ms)) continue;
    const char *place = place_of(&r[i]);
    if (!g.runs) g.place = place, g.pause = r[i].pause_before != NULL;
    if (!place || !g.place || strcmp(place, g.place) != 0 || g.pause != (r[i].pause_before != NULL))
      g.place = NULL;
    if (!g.worst || r[i].wall_ms > g.worst->wall_ms) g.worst = &r[i];
    g.runs++;
    g.wall_ms += r[i].wall_ms;
    g.usual_ms += r[i].usual_ms;
  }
  return g;
}

static const char *cause_text(hn_diagnosis *d, hone_slow_cause cause) {
  switch (cause) {
  case HONE_SLOW_DISK:
    return HN_WORDS(
        d,
        "Pages had to be read from disk in these runs: memory is short, or a mapped file (weights) "
        "had been given back.",
        "这些运行中有页面要从磁盘读入：内存不足，或被映射的文件（权重）曾被换出。");
  case HONE_SLOW_SWITCHED:
    return HN_WORDS(
        d,
        "The system gave this process' processor to another one meanwhile. With as many threads as "
        "processors there is nobody who could step in.",
        "系统在此期间把处理器让给了别的进程。线程数与处理器数相同时，没有空闲的处理器可以接替。");
  case HONE_SLOW_CLOCK:
    return HN_WORDS(
        d, "The processors were slowed down (heat, power) or ran below their usual clock around them.",
        "当时处理器被降频（温度、功耗），或低于平常的频率。");
  case HONE_SLOW_MAPPED:
    return HN_WORDS(
        d, "Many pages were mapped in these runs: memory was given back and taken again, or first touched.",
        "这些运行中映射了许多页面：内存被归还后又重新取得，或首次访问。");
  case HONE_SLOW_NEIGHBOURS:
    return HN_WORDS(d,
                    "Other processes took much of the processors around them, and with it caches and memory "
                    "bandwidth.",
                    "当时别的进程占用了处理器的很大一部分，连同缓存与内存带宽。");
  case HONE_SLOW_UNSEEN: break;
  }
  return HN_WORDS(
      d,
      "Nothing that the system counts explains them: a lock, an interrupt, a virtual machine's host, "
      "or work that depends on the data.",
      "系统的计数都解释不了：锁、中断、虚拟机的宿主，或依赖数据的工作量。");
}

static void advise(hn_diagnosis *d, hone_slow_cause cause, const group *g) {
  switch (cause) {
  case HONE_SLOW_DISK: hn_finding_do(d, HN_DO_PAGING, NULL, 0); return;
  case HONE_SLOW_SWITCHED:
  case HONE_SLOW_NEIGHBOURS: hn_finding_do(d, HN_DO_NEIGHBOURS, NULL, 0); return;
  case HONE_SLOW_CLOCK: hn_finding_do(d, HN_DO_CLOCKS, NULL, 0); return;
  case HONE_SLOW_MAPPED: hn_finding_do(d, HN_DO_FAULTS, NULL, 0); return;
  case HONE_SLOW_UNSEEN: break;
  }
  if (g->place && !g->pause)
    hn_finding_do(d, HN_DO_LAYER, g->place, 0);
  else
    hn_finding_do(d, HN_DO_PAUSES, NULL, 0);
}

static const char *title(hn_diagnosis *d, hone_slow_cause cause, const group *g) {
  static const char *const en[] = {"pages were read from disk", "the processor was given to somebody else",
                                   "the clock was low",         "many pages were mapped",
                                   "others used the machine",   "no counter explains why"};
  static const char *const zh[] = {"有页面从磁盘读入", "处理器被让给了别的进程", "频率偏低",
                                   "映射了许多页面",   "别的进程占用了机器",     "没有计数能解释"};
  const double times = g->worst->wall_ms / g->worst->usual_ms;
  size_t known; /* the slowest ones only are looked at one by one */
  hone_facts_slow_runs(d->facts, &known);
  if (known > g->runs)
    return HN_SAY(d, "%zu of the %zu slowest runs took up to %.1f times as long as usual: %s",
                  "最慢的 %2$zu 次运行中有 %1$zu 次耗时最多为平常的 %3$.1f 倍：%4$s", g->runs, known, times,
                  HN_WORDS(d, en[cause], zh[cause]));
  return HN_SAY(d, "%zu run%s took up to %.1f times as long as usual: %s",
                "%zu 次运行%s耗时最多为平常的 %.1f 倍：%s", g->runs, HN_WORDS(d, g->runs == 1 ? "" : "s", ""),
                times, HN_WORDS(d, en[cause], zh[cause]));
}

static void explain(hn_diagnosis *d, hone_slow_cause cause, double measured_ms) {
  const group g = gather(d, cause);
  if (!g.runs || !(measured_ms > 0) || !(g.usual_ms > 0)) return;
  const double lost_pct = 100 * (g.wall_ms - g.usual_ms) / measured_ms;
  hone_finding *f = hn_finding_begin(d, hone_slow_cause_name(cause));
  f->title = title(d, cause, &g);
  /* A few slow runs are no gain on average, but what the slowest answer takes. */
  f->category = lost_pct >= d->t->min_gain ? HONE_CATEGORY_MICRO : HONE_CATEGORY_NOTE;
  f->subject = !g.place  ? HN_WORDS(d, "single runs", "个别运行")
               : g.pause ? HN_SAY(d, "the pause before '%s'", "'%s' 之前的停顿", g.place)
                         : g.place;
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = cause_text(d, cause);
  hn_finding_evidence(d, HN_T("slow runs", "慢的运行数"), (double)g.runs, "",
                      HN_T("every run's own time", "每次运行各自的时间"));
  hn_finding_evidence(d, HN_T("slowest", "最慢的一次"), g.worst->wall_ms, "ms",
                      HN_T("every run's own time", "每次运行各自的时间"));
  hn_finding_evidence(d, HN_T("usually", "平常"), g.worst->usual_ms, "ms",
                      HN_T("every run's own time", "每次运行各自的时间"));
  hn_finding_evidence(d, HN_T("slowest one's time since the start", "最慢一次距开始的时间"), g.worst->time_s,
                      "s", HN_T("every run's own time", "每次运行各自的时间"));
  hn_finding_evidence(d, HN_T("time that they lost", "损失的时间"), lost_pct, "%",
                      HN_T("of all runs together", "占全部运行"));
  advise(d, cause, &g);
  if (f->category != HONE_CATEGORY_NOTE)
    hn_finding_gain(d, g.wall_ms / measured_ms, g.wall_ms / g.usual_ms, HONE_BASIS_MEASURED,
                    HN_WORDS(d, "each of them takes what the median run takes", "它们都与中位数的运行一样快"),
                    0.6);
  hn_finding_end(d);
}

static void run(hn_diagnosis *d) {
  double measured_ms = 0;
  size_t n;
  hone_facts_slow_runs(d->facts, &n);
  if (!n || !hn_counter(d, "measured_ms", -1, &measured_ms)) return;
#define X(id, word) explain(d, HONE_SLOW_##id, measured_ms);
  HONE_SLOW_CAUSES(X)
#undef X
}

const struct hn_rule hn_rule_slow_runs = {"slow_runs", run};
