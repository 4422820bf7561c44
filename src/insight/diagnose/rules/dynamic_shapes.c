/* Steps whose shapes are not known when the plan is made: no fast tactic can be chosen, no memory planned. */
#include "insight/diagnose/rule.h"

static bool is_unknown(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->is_reference && hn_has_unknown_shape(step);
}

static void run(hn_diagnosis *d) {
  double ms = 0;
  size_t count = 0;
  const hone_layer *first = NULL, *slowest = NULL;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!is_unknown(d, l)) continue;
    ms += hn_typical_ms(l);
    count++;
    if (!first) first = l;
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  double share = hn_share(d, ms);
  if (!count || share < d->t->reference_share) return;
  /* Below level 2 the graph's shape arithmetic is not folded; folding it usually makes the shapes known. */
  bool low_level = hone_facts_get_meta(d->facts)->opt_level < 2;
  const char *shape = hn_step(d, first)->shape_out;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Steps of unknown shape (%zu) take %.0f %% of the time",
                    "形状未知的步骤（%zu 个）占时间的 %.0f %%", count, share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject =
      HN_SAY(d, "%zu step%s from '%s' on", "%zu 个步骤%s，从 '%s' 开始", count, HN_S(d, count), first->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = low_level ? HONE_REMEDY_OPTIMIZER : HONE_REMEDY_SETTING;
  f->cause = HN_SAY(
      d,
      "From '%s' on shapes are computed while the network runs (%s), so these steps fall back to the scalar "
      "reference. %s",
      "从 '%s' 起，形状要到网络运行时才算出（%s），这些步骤只能退回标量参考实现。%s", first->name,
      shape ? shape : "?",
      low_level
          ? HN_WORDS(d, "Folding the shape arithmetic makes them known before.",
                     "折叠形状运算后即可提前得知。")
          : HN_WORDS(d, "Fixing the input shapes, or exporting the model with fixed ones, makes them known.",
                     "固定输入形状，或以固定形状导出模型，即可提前得知。"));
  hn_finding_evidence(d, HN_T("their share", "它们的占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("steps", "步骤数"), (double)count, "", HN_SOURCE_STEPS);
  hn_finding_evidence_at(d, HN_T("slowest", "最慢者"), hn_typical_ms(slowest), "ms", slowest->name);
  hn_finding_do(d, low_level ? HN_DO_OPTIMIZE : HN_DO_SHAPES, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_unknown(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, 15, HONE_BASIS_TABLE,
      HN_WORDS(d,
               "scalar references against vectorised kernels: 10 to 20 times on two AVX-512 cores "
               "(NanoDet, measured with hone)",
               "标量参考实现与向量化内核之比：双核 AVX-512 上为 10 到 20 倍（NanoDet，用 hone 实测）"),
      0.6);
  hn_finding_range(d, 10, 20);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_dynamic_shapes = {"dynamic_shapes", run};
