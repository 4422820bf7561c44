/* Much of the time goes to operators that wait for memory: fewer bytes, not faster arithmetic, would help. */
#include "insight/diagnose/rule.h"

#include <string.h>

/* Weights read for one sample are missing_batch's. */
static bool reads_weights_once(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && hone_facts_get_meta(d->facts)->batch == 1 &&
         (double)step->weight_bytes * l->calls > l->bytes / 2;
}

/* Its arithmetic is at the roof too: moving fewer bytes alone would not help. That is reduced_precision's. */
static bool computes_as_much(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_matrix(l) && l->by_counters && l->compute_pct > d->t->roof_reached;
}

static bool waits_for_memory(const hn_diagnosis *d, const hone_layer *l) {
  const bool at_roof = l->bound == HONE_LIMIT_MEMORY && l->bound_confidence >= 0.5;
  return !reads_weights_once(d, l) && !computes_as_much(d, l) && !hn_is_reformat(d->facts, l) &&
         (at_roof || hn_streams_memory(d, l));
}

static bool is_narrow(const hone_step_fact *step) {
  static const char *const names[] = {"bf16", "fp16", "f16", "int8", "uint8",
                                      "i8",   "u8",   "s8",  "int4", "uint4"};
  for (size_t i = 0; step && step->dtype && i < sizeof names / sizeof *names; i++)
    if (strcmp(step->dtype, names[i]) == 0) return true;
  return false;
}

static void run(hn_diagnosis *d) {
  double ms = 0, bytes = 0, weights = 0, narrow_ms = 0;
  size_t count = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!waits_for_memory(d, l)) continue;
    const hone_step_fact *step = hn_step(d, l);
    ms += hn_typical_ms(l);
    bytes += l->bytes;
    if (is_narrow(step)) narrow_ms += hn_typical_ms(l);
    weights += step ? (double)step->weight_bytes * l->calls : 0;
    count++;
  }
  double share = hn_share(d, ms);
  if (!count || share < d->t->memory_share) return;
  bool by_weights = weights > bytes / 2;
  hone_finding *f = hn_finding_begin(d, NULL);
  if (narrow_ms > ms / 2) d->worst = HONE_SEVERITY_LOW; /* what would halve the bytes is done already */
  f->title =
      HN_SAY(d, "Memory-bound operators take %.0f %% of the time", "访存受限的算子占时间的 %.0f %%", share);
  f->subject = HN_SAY(d, "%zu operator%s", "%zu 个算子%s", count, HN_S(d, count));
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause =
      by_weights
          ? HN_WORDS(d,
                     "These operators stream weights faster than they compute with them: their speed is the "
                     "speed of memory. Narrower weights or a larger batch move fewer bytes per sample.",
                     "这些算子读取权重的时间超过计算的时间：速度就是内存的速度。更窄的权重或更大的 batch "
                     "能减少每个样本搬运的字节。")
          : HN_WORDS(
                d,
                "These operators move more bytes than their arithmetic can hide: their speed is the speed "
                "of memory. Fusing them into their producers or narrower numbers move fewer bytes.",
                "这些算子搬运的字节多到计算无法掩盖：速度就是内存的速度。与前驱融合或使用更窄的数值能减少字节"
                "。");
  hn_finding_evidence(d, HN_T("memory-bound share", "访存受限占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("operators", "算子数"), (double)count, "", HN_SOURCE_LAYERS);
  if (bytes > 0) {
    hn_finding_evidence(d, HN_T("moved", "搬运量"), bytes / 1e6, "MB", HN_SOURCE_SHAPES);
    hn_finding_evidence(d, HN_T("achieved", "实际达到"), bytes / ms / 1e6, "GB/s",
                        HN_T("bytes over time", "字节除以时间"));
    hn_finding_evidence(d, HN_T("of it weights", "其中权重"), 100 * weights / bytes, "%", HN_SOURCE_SHAPES);
  }
  if (by_weights) hn_finding_do(d, HN_DO_BATCH, NULL, 8);
  hn_finding_do(d,
                narrow_ms > ms / 2     ? HN_DO_OPTIMIZE
                : hn_on_accelerator(d) ? HN_DO_FP16
                                       : HN_DO_BF16,
                NULL, 0);
  hn_finding_do(d, HN_DO_EXPLAIN, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (waits_for_memory(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  const bool roofs = hn_roof_dram(d->facts) != NULL;
  hn_finding_gain(
      d, hn_share(d, ms) / 100, 2, roofs ? HONE_BASIS_ROOFLINE : HONE_BASIS_MEASURED,
      roofs ? HN_WORDS(d, "at the bandwidth roof time follows bytes, and 16-bit numbers are half of them",
                       "在带宽上限处时间正比于字节数，而 16 位数值的字节只有一半")
            : HN_WORDS(d,
                       "counters of the device: where memory is the busiest unit time follows bytes, and "
                       "16-bit numbers are half of them",
                       "设备计数器：在内存最忙之处时间正比于字节数，而 16 位数值的字节只有一半"),
      0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_memory_bound = {"memory_bound", run};
