/* Time goes to changing layouts inside the network; once at each edge is enough. */
#include "insight/diagnose/rule.h"

/* A Transpose between convolutions is a layout change that the exporter wrote down; in a network without
 * convolutions (attention) it is part of the arithmetic. */
static bool converts(const hn_diagnosis *d, const hone_layer *l, bool transposes) {
  return hn_is_reformat(d->facts, l) || (transposes && hn_is_transpose(l));
}

static bool has_convolutions(const hn_diagnosis *d) {
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_conv(&d->p->layers[i])) return true;
  return false;
}

static void run(hn_diagnosis *d) {
  double ms = 0, bytes = 0, edges_ms = 0;
  size_t count = 0;
  bool transposes = has_convolutions(d);
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!converts(d, l, transposes)) continue;
    bool edge = i == 0 || i + 1 == d->p->layer_count;
    ms += hn_typical_ms(l);
    bytes += l->bytes;
    if (edge)
      edges_ms += hn_typical_ms(l);
    else
      count++;
  }
  double share = hn_share(d, ms - edges_ms);
  if (!count || share <= d->t->reformat_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Layout conversions inside the network (%zu) take %.0f %% of the time",
                    "网络内部的布局转换（%zu 次）占时间的 %.0f %%", count, share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_SAY(d, "%zu conversion%s", "%zu 次转换%s", count, HN_S(d, count));
  f->quantity = HONE_QUANTITY_REFORMATS;
  f->remedy = HONE_REMEDY_OPTIMIZER;
  f->cause =
      HN_WORDS(d,
               "Neighbouring steps want different layouts or number formats, so tensors are rewritten "
               "between them without "
               "any arithmetic. One layout for the whole network needs a conversion at its edges only.",
               "相邻步骤需要不同的布局或数值格式，张量在它们之间被重写而没有任何计算。全网统一一种布局，只需"
               "在入口和出口各转换一次。");
  hn_finding_evidence(d, HN_T("conversions", "转换"), ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("of it inside the network", "其中在网络内部"), ms - edges_ms, "ms",
                      HN_T("all but the first and the last step", "除首尾两个步骤以外"));
  if (bytes > 0) hn_finding_evidence(d, HN_T("moved", "搬运量"), bytes / 1e6, "MB", HN_SOURCE_SHAPES);
  hn_finding_do(d, HN_DO_LAYOUT, NULL, 0);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (converts(d, &d->p->layers[i], transposes))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  /* Removing them is the aim; 20 stands for "all of them" where no edge conversion remains. */
  double s = edges_ms > ms / 20 ? ms / edges_ms : 20;
  hn_finding_gain(d, hn_share(d, ms) / 100, s, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "only the conversions at the edges stay", "只保留首尾的转换"), 0.6);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_layout_conversions = {"layout_conversions", run};
