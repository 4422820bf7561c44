/* The host waits for the device (or for another thread) while nothing is computed. */
#include "insight/diagnose/rule.h"

static void run(hn_diagnosis *d) {
  const hone_closure *c = &d->p->closure;
  double share = c->wall_ms > 0 ? 100 * c->sync_ms / c->wall_ms : 0;
  if (!hn_has_timeline(d) || share <= d->t->sync_share || hn_is_window(d)) return;
  double calls = 0;
  const hone_layer *longest = NULL;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (l->kind != HONE_SPAN_SYNC) continue;
    calls += l->calls;
    if (!longest || hn_typical_ms(l) > hn_typical_ms(longest)) longest = l;
  }
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Waiting takes %.0f %% of the run while nothing is computed",
                    "运行中有 %.0f %% 的时间在等待，期间没有任何计算", share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = longest ? longest->name : HN_WORDS(d, "whole run", "整个运行");
  f->quantity = HONE_QUANTITY_SYNC;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "The host waits at points of synchronisation, and the device has run out of work by then. One wait "
      "at the end, events between streams instead of waits of the host, and enqueuing the next inference "
      "before waiting keep it busy.",
      "主机在同步点等待，而设备此时已经没有工作。只在末尾等待一次、用事件在流之间同步而不让主机等待、"
      "在等待之前先提交下一次推理，都能让设备保持忙碌。");
  hn_finding_evidence(d, HN_T("waiting", "等待"), c->sync_ms, "ms",
                      HN_T("time that only waiting covers", "只被等待覆盖的时间"));
  hn_finding_evidence(d, HN_T("waiting share", "等待占比"), share, "%",
                      HN_T("over the wall", "除以墙钟时间"));
  if (calls > 0)
    hn_finding_evidence(d, HN_T("waits", "等待次数"), calls, "",
                        HN_T("spans of one inference", "一次推理的时段"));
  hn_finding_do(d, HN_DO_ASYNC, NULL, 0);
  hn_finding_do(d, HN_DO_TIMELINE, NULL, 0);
  hn_finding_gain(
      d, share / 100, 10, HONE_BASIS_MEASURED,
      HN_WORDS(d, "the waits beyond the last one have no work to wait for; a tenth is left for that one",
               "除最后一次以外的等待都没有工作可等；留十分之一给最后一次"),
      0.5);
  hn_finding_range(d, 1.5, 50);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_sync_heavy = {"sync_heavy", run};
