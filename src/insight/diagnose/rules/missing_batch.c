/* One sample at a time where the weights are read for each: several at once would read them once. */
#include "insight/diagnose/rule.h"

enum { BATCH = 8 };

/* Milliseconds a sample of this layer with BATCH samples at once: weights read once for all, the rest as
 * often as there are samples; never below what the arithmetic needs. */
static double batched_ms(const hn_diagnosis *d, const hone_layer *l, const hone_step_fact *step) {
  const hone_roof *compute = hn_roof_of_step(d->facts, step);
  double weights = (double)step->weight_bytes * l->calls, rest = l->bytes - weights;
  double by_bytes = hn_typical_ms(l) * (weights / BATCH + (rest > 0 ? rest : 0)) / l->bytes;
  double by_flops =
      compute ? l->executed_flops / compute->gflops / 1e6 * 100 / d->t->reachable_roof : hn_typical_ms(l);
  double ms = by_bytes > by_flops ? by_bytes : by_flops;
  return ms < hn_typical_ms(l) ? ms : hn_typical_ms(l);
}

static bool reads_weights(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && l->bytes > 0 && l->bound == HONE_LIMIT_MEMORY && l->bound_confidence >= 0.5 &&
         (double)step->weight_bytes * l->calls > l->bytes / 2;
}

/* No roof, no counter: what limits it is not known, but bytes are. */
static bool moves_weights(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && hn_is_matrix(l) && l->bytes > 0 && l->compute_pct <= 0 && l->memory_pct <= 0 &&
         !hn_roof_known(d, l) && (double)step->weight_bytes * l->calls > l->bytes / 2;
}

/* Another tool's record of an accelerator: one sample leaves most of it idle, and memory brings the weights.
 */
static void by_bytes(hn_diagnosis *d) {
  double ms = 0, all = 0, weights = 0;
  size_t count = 0;
  if (d->tool == HN_TOOL_HONE || !hn_on_accelerator(d)) return;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (!moves_weights(d, l)) continue;
    ms += hn_typical_ms(l);
    all += l->bytes;
    weights += (double)hn_step(d, l)->weight_bytes * l->calls;
    count++;
  }
  const double share = hn_share(d, ms), s = all > 0 ? all / (weights / BATCH + all - weights) : 1;
  if (!count || share * (1 - 1 / s) < d->t->batch_saving) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Batch 1: %.0f %% of the time is in products that read mostly weights",
                    "batch 为 1：%.0f %% 的时间用于以读取权重为主的乘加", share);
  f->category = HONE_CATEGORY_TRADE;
  d->worst = HONE_SEVERITY_MEDIUM;
  f->subject = HN_SAY(d, "%zu operator%s", "%zu 个算子%s", count, HN_S(d, count));
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause =
      HN_SAY(d,
             "Most of what they move are weights, for one sample. %d samples at once read them once: more "
             "samples a second, at a longer latency of each.",
             "它们搬运的大部分是权重，却只为一个样本。一次处理 %d 个样本只需读取一次：每秒样本更多，但单次"
             "延迟更长。",
             BATCH);
  hn_finding_evidence(d, HN_T("batch", "batch"), 1, "", HN_SOURCE_RECORD);
  hn_finding_evidence(d, HN_T("their share", "它们的占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("weights read", "读取的权重"), weights / 1e6, "MB", HN_SOURCE_STEPS);
  hn_finding_evidence(d, HN_T("all that they move", "全部搬运量"), all / 1e6, "MB", HN_SOURCE_SHAPES);
  hn_finding_do(d, HN_DO_BATCH, NULL, BATCH);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (moves_weights(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(
      d, share / 100, s, HONE_BASIS_MODEL,
      HN_SAY(d,
             "bytes a sample with batch %d, where memory is their limit: the record does not tell "
             "(throughput)",
             "batch %d 时每个样本的字节数，前提是受限于内存：记录没有说明（吞吐）", BATCH),
      0.3);
  hn_finding_range(d, 1, s);
  hn_finding_end(d);
}

static void run(hn_diagnosis *d) {
  if (hone_facts_get_meta(d->facts)->batch != 1) return;
  by_bytes(d);
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
  f->subject = HN_SAY(d, "%zu operator%s", "%zu 个算子%s", count, HN_S(d, count));
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
