/* Weights with two zeros in every four, on a device that computes such products in half the time. */
#include "insight/diagnose/rule.h"

#include <stdlib.h>
#include <string.h>

/* Sparse tensor cores came with Ampere. */
static bool has_sparse_units(const hn_diagnosis *d) {
  const char *isa = hone_facts_get_meta(d->facts)->isa;
  return isa && strncmp(isa, "sm_", 3) == 0 && atoi(isa + 3) >= 80;
}

static bool is_sparse(const hn_diagnosis *d, const hone_layer *l) {
  double share;
  return l->step >= 0 && hn_is_matrix(l) && hn_counter(d, "weights_2_4", l->step, &share) &&
         share >= d->t->sparse_groups;
}

static void run(hn_diagnosis *d) {
  if (!has_sparse_units(d)) return;
  double ms = 0;
  size_t count = 0;
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_sparse(d, &d->p->layers[i])) {
      ms += hn_typical_ms(&d->p->layers[i]);
      count++;
    }
  double share = hn_share(d, ms);
  if (!count || share < d->t->sparse_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "%zu product%s 2:4 sparse weights (%.0f %% of the time), computed as dense ones",
                    "%zu 个乘加%s的权重满足 2:4 稀疏（占时间的 %.0f %%），却按稠密计算", count,
                    HN_WORDS(d, count == 1 ? " has" : "s have", ""), share);
  f->category = HONE_CATEGORY_TRADE;
  f->subject = HN_SAY(d, "%zu product%s", "%zu 个乘加%s", count, HN_S(d, count));
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_WORDS(
      d,
      "Two of every four neighbouring weights are zero. This device's sparse tensor cores skip them, which "
      "saves time and, above all, power; the answers stay.",
      "每四个相邻权重中有两个为零。该设备的稀疏张量核心可以跳过它们，省时间，更省功耗；结果不变。");
  hn_finding_evidence(d, HN_T("products with 2:4 sparse weights", "满足 2:4 稀疏的乘加数"), (double)count, "",
                      HN_T("weights of the model", "模型的权重"));
  hn_finding_evidence(d, HN_T("their share", "它们的占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_do(d, HN_DO_SPARSITY, NULL, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (is_sparse(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  hn_finding_gain(d, share / 100, 1.1, HONE_BASIS_TABLE,
                  HN_WORDS(d,
                           "NVIDIA, Accelerating Inference with Sparsity (A100, TensorRT 8.0): up to 20 % "
                           "faster, up to 36 % more per watt",
                           "NVIDIA《Accelerating Inference with Sparsity》（A100，TensorRT 8.0）：最多快 20 "
                           "%，每瓦性能最多高 36 %"),
                  0.3);
  hn_finding_range(d, 1, 1.2);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_sparse_weights = {"sparse_weights", run};
