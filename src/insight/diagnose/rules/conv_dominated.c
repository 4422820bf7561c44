/* Convolutions decide the run, and they are far from their roofline. Where no roof is known: what networks
 * like this one gained elsewhere, and where to look. */
#include "insight/diagnose/fusions.h"

#include <string.h>

/* Channel counts that have rules of their own: small_channels, misaligned_channels. */
static bool has_unlucky_channels(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  const int32_t multiple = d->t->channel_multiple >= 1 ? (int32_t)d->t->channel_multiple : 1;
  if (!step || step->channels_in <= 0 || step->channels_out <= 0) return false;
  return step->channels_in < d->t->small_channels || step->channels_in % multiple ||
         step->channels_out % multiple;
}

/* Neither roofs nor the tool's own counters say how near its limit anything is. */
static bool is_unlimited(const hn_diagnosis *d) {
  size_t roofs;
  hone_facts_roofs(d->facts, &roofs);
  bool counted = false;
  for (size_t i = 0; i < d->p->layer_count; i++)
    counted = counted || d->p->layers[i].compute_pct > 0 || d->p->layers[i].memory_pct > 0;
  return !roofs && !counted;
}

/* What follows the convolution is computed in its kernel, as far as names tell. */
static bool carries_followers(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return l->onnx_node_count > 1 || (step && step->epilogue && *step->epilogue) || strstr(l->name, " + ") ||
         strcasestr(l->name, "relu");
}

/* Fusion with what stands beside is unfused_pattern's; what is left has only other people's figures. */
static void by_table(hn_diagnosis *d) {
  double ms = 0;
  size_t count = 0, fused = 0;
  const hone_layer *slowest = NULL;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_conv(l)) continue;
    ms += hn_typical_ms(l);
    count++;
    fused += carries_followers(d, l);
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  const double share = hn_share(d, ms);
  if (share < d->t->conv_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Convolutions take %.0f %% of the time", "卷积占时间的 %.0f %%", share);
  f->category = HONE_CATEGORY_TRADE;
  d->worst = HONE_SEVERITY_LOW; /* others' figures on others' networks */
  f->subject = HN_SAY(d, "%zu convolution%s, the slowest is '%s'", "%zu 个卷积%s，最慢的是 '%s'", count,
                      HN_S(d, count), slowest->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_WORDS(
      d,
      "The record does not tell how near to the machine's limit they are. What helps such networks, in this "
      "order: normalisation and activation in the convolution's own kernel, narrower numbers, several "
      "samples "
      "at once, and at last kernels of your own for these shapes (depthwise with pointwise).",
      "记录没有说明它们离硬件上限有多远。对这类网络依次有效的是：归一化与激活并入卷积内核，更窄的数值，一次处"
      "理"
      "多个样本，最后才是为这些形状自写内核（深度卷积与逐点卷积合一）。");
  hn_finding_evidence(d, HN_T("convolution share", "卷积占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("convolutions", "卷积数"), (double)count, "", HN_SOURCE_LAYERS);
  hn_finding_evidence(d, HN_T("fused with what follows", "已与后续算子融合"), (double)fused, "",
                      HN_T("names of the layers", "各层的名称"));
  const hn_text elsewhere = HN_T("saved elsewhere", "别处节省的时间");
  const double chained = hn_finding_quote(d, elsewhere, HN_FUSION_dw_pw),
               own = hn_finding_quote(d, elsewhere, HN_FUSION_own_kernel);
  hn_finding_do(d, HN_DO_TUNE, NULL, 0);
  if (hone_facts_get_meta(d->facts)->batch <= 1) hn_finding_do(d, HN_DO_BATCH, NULL, 8);
  hn_finding_do(d, HN_DO_LAYER, slowest->name, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_conv(&d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, share / 100, 1 / (1 - (chained + own) / 2 / 100), HONE_BASIS_TABLE,
                  HN_WORDS(d, "what others saved on networks of theirs, quoted above",
                           "别人在自己的网络上节省的时间，见上"),
                  0.2);
  hn_finding_range(d, 1, 1 / (1 - (chained > own ? chained : own) / 100));
  hn_finding_end(d);
}

static void run(hn_diagnosis *d) {
  if (is_unlimited(d)) {
    by_table(d);
    return;
  }
  double conv_ms = 0, reachable_ms = 0, flops = 0, lucky_ms = 0, lucky_reachable_ms = 0;
  size_t count = 0;
  const hone_layer *worst = NULL;
  double worst_loss = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!hn_is_conv(l)) continue;
    double reachable = hn_roof_time(d, l, d->t->reachable_roof);
    count++;
    conv_ms += hn_typical_ms(l);
    reachable_ms += reachable;
    flops += l->flops;
    if (!has_unlucky_channels(d, l)) {
      lucky_ms += hn_typical_ms(l);
      lucky_reachable_ms += reachable;
    }
    if (hn_typical_ms(l) - reachable > worst_loss) {
      worst_loss = hn_typical_ms(l) - reachable;
      worst = l;
    }
  }
  double share = hn_share(d, conv_ms);
  if (share < d->t->conv_share || !worst) return;
  /* Share of what good kernels would reach: it is the same measure for compute- and memory-bound
   * convolutions. */
  double efficiency = d->t->reachable_roof * reachable_ms / conv_ms;
  if (efficiency >= d->t->conv_efficiency) return;
  /* When the others are well, those are the cause, and what they are called. */
  if (lucky_ms > 0 && lucky_ms < conv_ms &&
      d->t->reachable_roof * lucky_reachable_ms / lucky_ms >= d->t->conv_efficiency)
    return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Convolutions take %.0f %% of the time at %.0f %% of the roofline",
                    "卷积占时间的 %.0f %%，只达到屋顶线的 %.0f %%", share, efficiency);
  d->worst = HONE_SEVERITY_MEDIUM; /* a roof is no promise */
  f->subject = HN_SAY(d, "%zu convolution%s, most of it lost in '%s'", "%zu 个卷积%s，损失最多的是 '%s'",
                      count, HN_S(d, count), worst->name);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "The convolutions run well below what this machine's measured roofs allow for their FLOPs "
      "and bytes: the kernels chosen for these shapes do not keep the vector units busy.",
      "就其计算量与访存量而言，这些卷积远低于本机实测上限：为这些形状选中的内核没有让向量单元忙起来。");
  hn_finding_evidence(d, HN_T("convolution share", "卷积占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("achieved", "实际达到"), flops / conv_ms / 1e6, "GFLOP/s",
                      HN_T("FLOPs of the steps over their time", "各步骤的 FLOPs 除以时间"));
  hn_finding_evidence(d, HN_T("share of the roofline", "达到屋顶线的比例"), efficiency, "%", HN_SOURCE_ROOFS);
  hn_finding_evidence_at(d, HN_T("lost in the worst one", "最差者的损失"), worst_loss, "ms", worst->name);
  hn_finding_do(d, HN_DO_TUNE, NULL, 0);
  hn_finding_do(d, HN_DO_TYPE, "Conv", 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_conv(&d->p->layers[i])) hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, hn_share(d, conv_ms) / 100, conv_ms / reachable_ms, HONE_BASIS_ROOFLINE,
                  HN_SAY(d, "every convolution at %.0f %% of its measured roof",
                         "每个卷积达到其实测上限的 %.0f %%", d->t->reachable_roof),
                  0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_conv_dominated = {"conv_dominated", run};
