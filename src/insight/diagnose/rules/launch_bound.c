/* Many operators so short that starting them costs as much as they compute. */
#include "insight/diagnose/rule.h"

static bool is_tiny(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_work(l) && l->calls > 0 && 1e3 * hn_typical_ms(l) / l->calls < d->t->tiny_us;
}

static void run(hn_diagnosis *d) {
  double ms = 0, calls = 0, least = 0, all = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (hn_is_work(l)) all += l->calls;
    if (!is_tiny(d, l)) continue;
    double each = hn_typical_ms(l) / l->calls;
    ms += hn_typical_ms(l);
    calls += l->calls;
    if (each > 0 && (least <= 0 || each < least)) least = each;
  }
  if (calls < d->t->tiny_count) return;
  /* Gaps belong to the steps around them. */
  double gaps =
      hn_has_timeline(d) && !hn_is_window(d) && all > 0 ? d->p->closure.typical_gaps_ms * calls / all : 0;
  double share = hn_share(d, ms + gaps);
  if (share < d->t->tiny_share) return;
  /* Of every fused group one start is left: the shortest of them shows what a start costs. */
  double saved = (1 - 1 / d->t->fused_steps) * (calls * least + gaps);
  double s = (ms + gaps) / (ms + gaps - saved);
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "%.0f operators of under %.0f us each take %.0f %% of the time",
                    "%.0f 个各不足 %.0f 微秒的算子占时间的 %.0f %%", calls, d->t->tiny_us, share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_SAY(d, "%.0f tiny operators", "%.0f 个极小算子", calls);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause = HN_WORDS(
      d,
      "Each start (a launch, waking threads, first touches) costs a fixed time, and these operators do "
      "hardly more work than that. Fusing neighbours, recording the launches once (graphs) or a larger "
      "batch spread it.",
      "每次启动（下发、唤醒线程、首次访存）都有固定开销，而这些算子的计算几乎不比它多。融合相邻算子、"
      "把下发录制成图、或加大 batch 可以摊薄它。");
  hn_finding_evidence(d, HN_T("tiny operators", "极小算子数"), calls, "", HN_SOURCE_LAYERS);
  hn_finding_evidence(d, HN_T("their time", "它们的时间"), ms, "ms", HN_SOURCE_SPANS);
  if (gaps > 0)
    hn_finding_evidence(d, HN_T("gaps beside them", "其间的空隙"), gaps, "ms",
                        HN_T("gaps between time stamps inside the run", "运行内部时间戳之间的空隙"));
  hn_finding_evidence(d, HN_T("shortest operator", "最短的算子"), 1e3 * least, "us", HN_SOURCE_SPANS);
  if (hn_on_accelerator(d)) hn_finding_do(d, HN_DO_GRAPH, NULL, 0);
  hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_tiny(d, &d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, s, HONE_BASIS_MEASURED,
      HN_SAY(d, "every %.0f become one; each start costs what the shortest operator takes, and its gap",
             "每 %.0f 个合为一个；每次启动的开销等于最短算子的时间加其空隙", d->t->fused_steps),
      0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_launch_bound = {"launch_bound", run};
