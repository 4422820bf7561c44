/* Kernels that use neither the arithmetic units nor the memory well, one by one; nothing is said of the whole
 * network. */
#include "insight/diagnose/rule.h"

/* At the limit under which a kernel counts as latency-bound, the start of a step included: what a start
 * explains is not the kernel's. Where counters and not roofs say how much is used, in proportion. */
static double better_ms(const hn_diagnosis *d, const hone_layer *l) {
  double ms = hn_roof_time(d, l, d->t->roof_far);
  return ms < hn_typical_ms(l)                     ? ms
         : hn_roof_known(d, l) || l->roof_pct <= 0 ? hn_typical_ms(l)
                                                   : hn_typical_ms(l) * l->roof_pct / d->t->roof_far;
}

static bool waits(const hn_diagnosis *d, const hone_layer *l) {
  return l->bound == HONE_LIMIT_LATENCY && l->bound_confidence >= 0.5 && hn_is_work(l) &&
         !hn_is_reformat(d->facts, l) && !hn_streams_memory(d, l) && l->calls > 0 &&
         1e3 * hn_typical_ms(l) / l->calls >= d->t->tiny_us && better_ms(d, l) < hn_typical_ms(l);
}

static void run(hn_diagnosis *d) {
  double ms = 0, better = 0, use = 0;
  size_t count = 0;
  const hone_layer *worst = NULL;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!waits(d, l)) continue;
    double t = hn_typical_ms(l);
    ms += t;
    better += better_ms(d, l);
    use += t * l->roof_pct;
    count++;
    if (!worst || t > hn_typical_ms(worst)) worst = l;
  }
  double share = hn_share(d, ms);
  if (!count || better <= 0 || share < d->t->latency_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Latency-bound kernels (%zu) take %.0f %% of the time",
                    "延迟受限的内核（%zu 个）占时间的 %.0f %%", count, share);
  d->worst = HONE_SEVERITY_LOW; /* that they can be better is not known, only that nothing limits them */
  f->subject = HN_SAY(d, "%zu kernel%s, the slowest is '%s'", "%zu 个内核%s，最慢的是 '%s'", count,
                      HN_S(d, count), worst->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_SAY(
      d,
      "They reach neither %.0f %% of the compute roof nor %.0f %% of the bandwidth: dependent instructions, "
      "synchronisation or too little data for the machine. A larger batch, other tile sizes or merged "
      "neighbours give them more to do at once.",
      "它们既没有达到计算上限的 %.0f %%，也没有达到带宽的 %.0f %%：指令依赖、同步，或数据规模太小。"
      "加大 batch、换分块大小或与相邻算子合并，能让它们一次做更多的工作。",
      d->t->roof_far, d->t->roof_far);
  hn_finding_evidence(d, HN_T("latency-bound share", "延迟受限占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("their use of the nearer roof", "对较近上限的利用率"), use / ms, "%",
                      HN_T("measured roofs, or counters of the device", "实测上限，或设备计数器"));
  hn_finding_evidence_at(d, HN_T("slowest", "最慢者"), hn_typical_ms(worst), "ms", worst->name);
  hn_finding_do(d, HN_DO_LAYER, worst->name, 0);
  hn_finding_do(d, HN_DO_BATCH, NULL, 8);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (waits(d, &d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, ms / better, hn_roof_known(d, worst) ? HONE_BASIS_ROOFLINE : HONE_BASIS_MEASURED,
      HN_SAY(d, "each uses %.0f %% of its nearer roof, where it would no longer count as latency-bound",
             "每个达到较近上限的 %.0f %%，即不再算延迟受限", d->t->roof_far),
      0.25);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_latency_bound = {"latency_bound", run};
