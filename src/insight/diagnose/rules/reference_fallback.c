/* Steps on the CPU that run the scalar reference because no fast tactic accepts them. */
#include "insight/diagnose/fallback.h"

static bool is_reference(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->is_reference && !hn_has_unknown_shape(step); /* those have a rule of their own */
}

static void run(hn_diagnosis *d) {
  if (hn_on_accelerator(d)) return; /* host_fallback */
  double ms = 0, reachable_ms = 0;
  const hone_layer *slowest = NULL;
  size_t count = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!is_reference(d, l)) continue;
    ms += hn_typical_ms(l);
    /* A plain vectorised kernel, not a tuned one: half of the roofline. */
    reachable_ms += hn_roof_time(d, l, 50);
    count++;
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  double share = hn_share(d, ms);
  if (!count || share < d->t->reference_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Steps on the scalar reference (%zu) take %.0f %% of the time",
                    "标量参考实现的步骤（%zu 个）占时间的 %.0f %%", count, share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = slowest->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = hn_fallback_cause(d, slowest);
  hn_finding_evidence(d, HN_T("reference share", "参考实现占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence_at(d, HN_T("slowest", "最慢者"), hn_typical_ms(slowest), "ms", slowest->name);
  if (slowest->roof_pct > 0)
    hn_finding_evidence(d, HN_T("its share of the roofline", "它达到屋顶线的比例"), slowest->roof_pct, "%",
                        HN_SOURCE_ROOFS);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  hn_finding_do(d, HN_DO_TYPE, slowest->type, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_reference(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  const bool by_roof = reachable_ms < ms;
  double s = by_roof ? ms / reachable_ms : 4;
  hn_finding_gain(
      d, hn_share(d, ms) / 100, s > 50 ? 50 : s, by_roof ? HONE_BASIS_ROOFLINE : HONE_BASIS_TABLE,
      by_roof ? HN_WORDS(d, "half of the measured roof, a plain vectorised kernel",
                         "实测上限的一半，即普通的向量化内核")
              : HN_WORDS(d, "one 8-lane f32 vector at half efficiency against scalar code, any x86-64",
                         "8 路 f32 向量以一半效率对比标量代码，任意 x86-64"),
      0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_reference_fallback = {"reference_fallback", run};
