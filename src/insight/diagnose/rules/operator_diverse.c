/* No type of operator decides: the time is spread over many kinds, most of them without arithmetic. */
#include "insight/diagnose/rule.h"

/* The published figure for fusing two elementwise operators (course notes, 5.9): 10 to 25 % of them. */
#define FUSED_LOW 1.10
#define FUSED_HIGH 1.25

static bool is_product(const char *type) { return hn_is_matrix(&(hone_layer){.type = type}); }

static void run(hn_diagnosis *d) {
  double other_ms = 0, work_ms = 0, top = 0;
  size_t kinds = 0, layers = 0;
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_work(&d->p->layers[i])) work_ms += hn_typical_ms(&d->p->layers[i]);
  for (size_t i = 0; i < d->p->type_count && work_ms > 0; i++) {
    const hone_type_share *t = &d->p->types[i];
    double pct = 100 * t->time_ms / work_ms;
    if (pct > top) top = pct;
    kinds += pct >= d->t->diverse_least;
    if (is_product(t->type)) continue;
    other_ms += t->time_ms;
    layers += t->layers;
  }
  double share = hn_share(d, other_ms);
  if (kinds < d->t->diverse_types || top > d->t->diverse_top || share < d->t->diverse_other) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Many kinds of operators: %zu types share the time, none has more than %.0f %%",
                    "算子多样：%zu 种类型分摊时间，没有一种超过 %.0f %%", kinds, top);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_SAY(d, "%zu operators that are no products", "%zu 个非乘加算子", layers);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause = HN_WORDS(
      d,
      "No single kernel is worth work of its own here. What they have in common is: can neighbours be "
      "fused, can constants be folded, are there nodes that do nothing?",
      "没有哪个内核值得单独优化。共同的出路是：相邻算子能否融合、常量能否折叠、有没有无用的节点？");
  hn_finding_evidence(d, HN_T("types above the least share", "超过最小占比的类型"), (double)kinds, "",
                      HN_SOURCE_LAYERS);
  hn_finding_evidence(d, HN_T("largest type", "最大的类型"), top, "%", HN_SOURCE_LAYERS);
  hn_finding_evidence(d, HN_T("share of what is no product", "非乘加算子占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_work(&d->p->layers[i]) && !hn_is_matrix(&d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, (FUSED_LOW + FUSED_HIGH) / 2, HONE_BASIS_TABLE,
      HN_WORDS(
          d,
          "Add + ReLU fused: 10 to 25 % (course notes on operators, 5.9; bandwidth-bound, device not named)",
          "Add + ReLU 融合：10~25 %（算子优化讲义 5.9；带宽受限，未注明设备）"),
      0.4);
  hn_finding_range(d, FUSED_LOW, FUSED_HIGH);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_operator_diverse = {"operator_diverse", run};
