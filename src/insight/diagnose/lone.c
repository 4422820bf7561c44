/* One call of one operator takes about half of the time, several times as long as any other: in a record that
 * tells neither roofs nor cost models, that is where to look. */
#include "insight/diagnose/lone.h"

static double one_call_ms(const hone_layer *l) {
  return l->calls > 1 ? hn_typical_ms(l) / l->calls : hn_typical_ms(l);
}

/* Where everyone's FLOPs are known, a product that has most of them may take most of the time. */
static bool earns_its_time(const hn_diagnosis *d, const hone_layer *l) {
  double flops = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *other = &d->p->layers[i];
    if (hn_is_matrix(other) && other->flops <= 0) return false;
    flops += other->flops;
  }
  return hn_is_matrix(l) && flops > 0 &&
         hn_typical_ms(l) < d->t->lone_factor * d->typical_wall_ms * l->flops / flops;
}

void hn_find_lone(hn_diagnosis *d) {
  size_t roofs, layers = 0;
  const hone_layer *lone = NULL;
  double next_ms = 0;
  hone_facts_roofs(d->facts, &roofs);
  if (roofs) return; /* then roofs and cost models say what stands out */
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_work(l)) continue;
    layers++;
    if (!lone || one_call_ms(l) > one_call_ms(lone)) {
      if (lone) next_ms = one_call_ms(lone);
      lone = l;
    } else if (one_call_ms(l) > next_ms)
      next_ms = one_call_ms(l);
  }
  if ((double)layers < d->t->lone_layers || next_ms <= 0) return;
  /* A product that is called again and again dominates by what the network is. */
  const double call_ms = one_call_ms(lone), ms = hn_is_matrix(lone) ? call_ms : hn_typical_ms(lone),
               share = hn_share(d, ms), times = call_ms / next_ms;
  if (share < d->t->lone_share || times < d->t->lone_factor || earns_its_time(d, lone)) return;
  hone_finding *f = hn_finding_begin(d, lone->name);
  f->title = HN_SAY(d, "'%s' alone takes %.0f %% of the time, %.1f times as long as the next",
                    "仅 '%s' 就占时间的 %.0f %%，是次慢者的 %.1f 倍", lone->name, share, times);
  f->category = HONE_CATEGORY_STRUCTURAL; /* whatever is done elsewhere hardly shows */
  f->subject = lone->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_SAY(
      d,
      "One %s decides the run, and %zu other operators show what is usual in this network: an algorithm or "
      "kernel that does not suit this shape, work that grows with the data (sorting, suppression), or a "
      "first call that sets something up.",
      "一个 %s 决定了整个运行，而其他 %zu 个算子表明了该网络的常态：算法或内核不适合该形状、"
      "工作量随数据增长（排序、抑制），或首次调用时的准备工作。",
      lone->type, layers - 1);
  hn_finding_evidence(d, HN_T("one call", "一次调用"), call_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("next operator", "次慢的算子"), next_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("calls", "调用次数"), lone->calls, "", HN_SOURCE_LAYERS);
  hn_finding_do(d, HN_DO_LAYER, lone->name, 0);
  hn_finding_do(d, HN_DO_TUNE, NULL, 0);
  hn_finding_layer(d, lone, ms);
  hn_finding_gain(d, share / 100, times, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "as long as the next operator of this profile", "与本记录中次慢的算子一样长"),
                  0.4);
  hn_finding_range(d, 1, 2 * times);
  hn_finding_end(d);
}
