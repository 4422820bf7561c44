/* One sample at a time where the weights are read for each: several at once would read them once. */
#include "insight/diagnose/rule.h"

enum { BATCH = 8 };

/* Milliseconds a sample of this layer with BATCH samples at once: weights read once for all, the rest as
 * often as there are samples; never below what the arithmetic needs. */
static double batched_ms(const hn_diagnosis *d, const hone_layer *l, const hone_step_fact *step) {
  const hone_roof *compute = hn_roof_compute(d->facts, step->dtype);
  double weights = (double)step->weight_bytes * l->calls, rest = l->bytes - weights;
  double by_bytes = hn_typical_ms(l) * (weights / BATCH + (rest > 0 ? rest : 0)) / l->bytes;
  double by_flops =
      compute ? l->flops / compute->gflops / 1e6 * 100 / d->t->reachable_roof : hn_typical_ms(l);
  double ms = by_bytes > by_flops ? by_bytes : by_flops;
  return ms < hn_typical_ms(l) ? ms : hn_typical_ms(l);
}

static bool reads_weights(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && l->bytes > 0 && l->bound == HONE_LIMIT_MEMORY && l->bound_confidence >= 0.5 &&
         (double)step->weight_bytes * l->calls > l->bytes / 2;
}

static void run(hn_diagnosis *d) {
  if (hone_facts_get_meta(d->facts)->batch != 1) return;
  double ms = 0, batched = 0, weights = 0;
  size_t count = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!reads_weights(d, l)) continue;
    const hone_step_fact *step = hn_step(d, l);
    ms += hn_typical_ms(l);
    batched += batched_ms(d, l, step);
    weights += (double)step->weight_bytes * l->calls;
    count++;
  }
  double share = hn_share(d, ms);
  if (!count || batched <= 0 || share * (1 - batched / ms) < d->t->batch_saving) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Batch 1: %.0f %% of the time goes to reading weights for one sample",
                    "batch 为 1：%.0f %% 的时间用于为一个样本读取权重", share);
  f->category = HONE_CATEGORY_TRADE;
  f->subject = HN_SAY(d, "%zu operators", "%zu 个算子", count);
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_SAY(
      d,
      "These operators read their weights at the speed of memory, for one sample. %d samples at once read "
      "them once: more samples a second, at a longer latency of each.",
      "这些算子以内存速度读取权重，却只为一个样本。一次处理 %d "
      "个样本只需读取一次：每秒样本更多，但单次延迟更长。",
      BATCH);
  hn_finding_evidence(d, HN_T("batch", "batch"), 1, "", HN_SOURCE_RECORD);
  hn_finding_evidence(d, HN_T("their share", "它们的占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("weights read", "读取的权重"), weights / 1e6, "MB", HN_SOURCE_STEPS);
  hn_finding_do(d, HN_DO_BATCH, NULL, BATCH);
  hn_finding_do(d, hn_on_accelerator(d) ? HN_DO_FP16 : HN_DO_BF16, NULL,
                0); /* half of the bytes, also for one sample */
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (reads_weights(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, ms / batched, HONE_BASIS_ROOFLINE,
      HN_SAY(d,
             "time a sample with batch %d: weights once, the arithmetic at %.0f %% of its roof (throughput)",
             "batch %d 时每个样本的时间：权重只读一次，计算达到上限的 %.0f %%（吞吐）", BATCH,
             d->t->reachable_roof),
      0.5);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_missing_batch = {"missing_batch", run};
