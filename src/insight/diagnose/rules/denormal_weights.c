/* Products whose weights hold denormal numbers, in a plan that computes with them (below level 2). */
#include "insight/diagnose/rule.h"

static double denormals(const hn_diagnosis *d, const hone_layer *l) {
  double pct;
  return l->step >= 0 && hn_is_matrix(l) && hn_counter(d, "weights_denormal", l->step, &pct) ? pct : 0;
}

/* What the layer would take if it were as close to its cost model as the others are. */
static double plain_ms(const hn_diagnosis *d, const hone_layer *l, double usual) {
  return hn_typical_ms(l) / (hn_over_model(d, l) / usual);
}

static bool suffers(const hn_diagnosis *d, const hone_layer *l, double usual) {
  return denormals(d, l) > 0 && hn_over_model(d, l) >= d->t->denormal_factor * usual;
}

static void run(hn_diagnosis *d) {
  if (hn_on_accelerator(d)) return; /* computes with denormals at full speed, or not at all */
  const double usual = hn_usual_over_model(d, true);
  double ms = 0, plain = 0, most = 0;
  size_t count = 0;
  const hone_layer *worst = NULL;
  for (size_t i = 0; usual > 0 && i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!suffers(d, l, usual)) continue;
    count++;
    ms += hn_typical_ms(l);
    plain += plain_ms(d, l, usual);
    if (!worst || hn_typical_ms(l) - plain_ms(d, l, usual) > most)
      worst = l, most = hn_typical_ms(l) - plain_ms(d, l, usual);
  }
  if (!count || hn_share(d, ms - plain) < d->t->denormal_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title =
      HN_SAY(d, "%zu product%s of denormal weights take%s %.1f %% of the time",
             "%zu 个乘加%s的权重含非规格化数%s，占时间的 %.1f %%", count,
             HN_WORDS(d, count == 1 ? "" : "s", ""), HN_WORDS(d, count == 1 ? "s" : "", ""), hn_share(d, ms));
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = worst->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause = HN_WORDS(
      d,
      "Numbers below 1.2e-38 are denormal: the processor computes with them in microcode, some 150 cycles an "
      "instruction. Training drove these weights towards zero. From level 2 on hone counts them as zero in "
      "products, which changes a sum by less than 1.2e-38 of its inputs; other engines have a switch for "
      "that.",
      "小于 1.2e-38 的数是非规格化数：处理器用微码计算，每条指令约 150 个周期。训练把这些权重压向了零。"
      "从级别 2 起，hone 在乘加中把它们当作零，和的变化不到其输入的 1.2e-38；其他引擎也有相应开关。");
  hn_finding_evidence(d, HN_T("products that they slow down", "被其拖慢的乘加数"), (double)count, "",
                      HN_T("weights of the model", "模型的权重"));
  hn_finding_evidence(d, HN_T("denormal weights of the slowest", "最慢者的非规格化权重"), denormals(d, worst),
                      "%", HN_T("weights of the model", "模型的权重"));
  hn_finding_evidence(d, HN_T("over its cost model", "与成本模型之比"), hn_over_model(d, worst), "x",
                      HN_T("fastest run over the tactic's prediction", "最快一次除以战术的预测"));
  hn_finding_evidence(d, HN_T("other products over theirs", "其他乘加与各自模型之比"), usual, "x",
                      HN_T("median of the products", "各乘加的中位数"));
  hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (suffers(d, l, usual)) hn_finding_layer(d, l, hn_typical_ms(l) - plain_ms(d, l, usual));
  }
  hn_finding_gain(d, hn_share(d, ms) / 100, ms / plain, HONE_BASIS_MODEL,
                  HN_WORDS(d, "as close to their cost models as the other products are",
                           "与其他乘加一样接近各自的成本模型"),
                  0.8);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_denormal_weights = {"denormal_weights", run};
