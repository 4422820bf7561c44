/* Both directions together: the network waits for copies more than it computes. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  const hone_stages *s = &d->p->stages;
  double ms = s->h2d_ms + s->d2h_ms, less = s->h2d_ms < s->d2h_ms ? s->h2d_ms : s->d2h_ms;
  if (s->total_ms <= 0 || 100 * ms / s->total_ms <= d->t->copy_share) return;
  if (less < ms / 4) return; /* one direction alone: h2d_bound and slow_d2h */
  double share = ms / s->total_ms, rest = s->total_ms - ms, more = ms - less;
  /* Both engines of a device copy at once, and beside the computation: the longer direction counts. */
  double left = more > rest ? more - rest : ms / 20;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Copies between host and device take %.0f %% of the total",
                    "主机与设备之间的拷贝占总时间的 %.0f %%", 100 * share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "copies", "拷贝");
  f->quantity = HONE_QUANTITY_COPIES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "Data goes to the device and back around every inference. Fewer and larger copies, pinned memory, "
      "copies in streams of their own, and keeping data on the device between networks take them off "
      "the path.",
      "每次推理前后数据都要往返设备。减少并合并拷贝、锁页内存、独立的拷贝流，以及在多个网络之间让数据留在设备"
      "上，"
      "都能让它们离开关键路径。");
  hn_finding_evidence(d, HN_T("to the device", "到设备"), s->h2d_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("from the device", "从设备"), s->d2h_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("copies' share of T_total", "拷贝占 T_total"), 100 * share, "%",
                      HN_T("T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle",
                           "T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle"));
  hn_finding_evidence(d, HN_T("inference", "推理"), s->infer_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_do(d, HN_DO_OVERLAP, NULL, 2);
  hn_finding_do(d, HN_DO_RESIDENT, NULL, 0);
  hn_finding_gain(d, share, ms / left, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "both directions beside each other and beside the computation",
                           "两个方向彼此重叠，并与计算重叠"),
                  0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_copy_dominated = {"copy_dominated", run};
