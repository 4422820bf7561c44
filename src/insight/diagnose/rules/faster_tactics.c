/* A higher level would give convolutions and products to other kernels, and those are faster by their cost
 * models. */
#include "insight/diagnose/forecast.h"
#include "insight/diagnose/rule.h"

#include <string.h>

#define MOSTLY 0.9 /* share of the new time that must be timed for S to count as measured */

typedef struct change {
  double now_ms, then_ms;
  double timed_ms; /* of then_ms: timed on this machine, not modelled */
  size_t anchors;
  const char *from, *to; /* of the largest saving */
  double largest;
} change;

/* Which layer executes a node now; indices of layers + 1, 0: none. */
static uint32_t *layers_of_nodes(hn_diagnosis *d, size_t nodes) {
  uint32_t *of = HN_NEW_ARRAY(d->arena, uint32_t, nodes + 1);
  for (size_t i = 0; of && i < d->p->layer_count; i++) {
    const hone_step_fact *s = hn_step(d, &d->p->layers[i]);
    for (size_t k = 0; s && k < s->node_count; k++)
      if ((size_t)s->nodes[k] < nodes) of[s->nodes[k]] = (uint32_t)i + 1;
  }
  return of;
}

/* The convolutions and products that this step would replace. What rides along with them is the business of
 * unfused_pattern, what stands between them that of layout_conversions. */
static void weigh(hn_diagnosis *d, const hone_preview_step *s, double then_ms, const uint32_t *of, change *c,
                  bool report) {
  double now = 0;
  size_t anchors = 0;
  const hone_layer *first = NULL, *before = NULL;
  bool other = false;
  for (int pass = 0; pass < 2; pass++) {
    before = NULL;
    for (size_t k = 0; k < s->node_count; k++) {
      const hone_layer *l = of[s->nodes[k]] ? &d->p->layers[of[s->nodes[k]] - 1] : NULL;
      if (!l || l == before || !hn_is_matrix(l)) continue;
      before = l;
      if (pass) {
        hn_finding_layer(d, l, hn_typical_ms(l) * (1 - then_ms / now));
        continue;
      }
      if (!first) first = l;
      anchors++;
      now += hn_typical_ms(l);
      other = other || (l->tactic && s->tactic && strcmp(l->tactic, s->tactic) != 0);
    }
    if (!first || !other || then_ms >= now || !report) break;
  }
  if (!first || !other || then_ms >= now || report) return;
  c->anchors += anchors;
  c->now_ms += now;
  c->then_ms += then_ms;
  if (s->timed_ms > 0) c->timed_ms += then_ms;
  if (now - then_ms > c->largest) {
    c->largest = now - then_ms;
    c->from = first->tactic;
    c->to = s->tactic;
  }
}

static void run(hn_diagnosis *d) {
  size_t n, nodes;
  const hone_preview_step *previews = hone_facts_preview_steps(d->facts, &n);
  hone_facts_nodes(d->facts, &nodes);
  const double *ms = n ? hn_forecast_steps(d->p, d->arena) : NULL;
  uint32_t *of = ms ? layers_of_nodes(d, nodes) : NULL;
  change c = {0};
  for (size_t i = 0; of && i < n; i++) weigh(d, &previews[i], ms[i], of, &c, false);
  if (!c.anchors || hn_share(d, c.now_ms - c.then_ms) < d->t->min_gain) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = c.anchors == 1
                 ? HN_SAY(d, "A convolution or product could use a faster kernel at level %d",
                          "1 个卷积或矩阵乘在级别 %d 可用更快的内核", previews[0].level)
                 : HN_SAY(d, "%zu convolutions and products could use faster kernels at level %d",
                          "%zu 个卷积与矩阵乘在级别 %d 可用更快的内核", c.anchors, previews[0].level);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_SAY(d, "%zu operator%s, for one %s instead of %s", "%zu 个算子%s，例如用 %s 取代 %s",
                      c.anchors, HN_S(d, c.anchors), c.to ? c.to : "?", c.from ? c.from : "?");
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause = HN_WORDS(
      d,
      "This plan keeps the file's layout between steps and writes every result to memory; kernels that "
      "need channels-last tensors, transformed weights or several operators at once cannot be chosen.",
      "该计划在步骤之间保持文件的布局，并把每个结果写回内存；需要通道在后布局、变换后权重或一次算多个算子的内"
      "核无法被选中。");
  hn_finding_evidence(d, HN_T("they take", "现在用时"), c.now_ms, "ms", HN_SOURCE_SPANS);
  const bool timed = c.timed_ms >= MOSTLY * c.then_ms;
  hn_finding_evidence(d, HN_T("they would take", "将会用时"), c.then_ms, "ms",
                      timed ? HN_T("the new steps timed one by one on this machine", "在本机逐步实测的新步骤")
                            : HN_T("cost models of the tactics, scaled by what this run measured",
                                   "战术的成本模型，按本次实测校准"));
  hn_finding_do(d, HN_DO_OPTIMIZE, NULL, 0);
  for (size_t i = 0; i < n; i++) weigh(d, &previews[i], ms[i], of, &c, true);
  hn_finding_gain(
      d, hn_share(d, c.now_ms) / 100, c.now_ms / c.then_ms, timed ? HONE_BASIS_MEASURED : HONE_BASIS_MODEL,
      timed ? HN_WORDS(d, "the steps of the plan that was not built yet, timed one by one on this machine",
                       "尚未构建的计划中的各步骤，在本机逐一实测")
            : HN_WORDS(d, "cost models of the tactics of the plan that was not built yet, scaled by this run",
                       "尚未构建的计划中各战术的成本模型，按本次运行校准"),
      timed ? 0.8 : 0.6);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_faster_tactics = {"faster_tactics", run};
