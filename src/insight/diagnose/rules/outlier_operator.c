/* An operator that stands out: its time scatters, or it is always far slower than the others are by their
 * cost models, or it takes most of a run of which only times are known. */
#include "insight/diagnose/lone.h"

static bool scatters(const hn_diagnosis *d, const hone_layer *l) {
  return l->stats.cv > d->t->outlier_cv && l->pct >= d->t->outlier_share;
}

/* Runs in which the layer takes at least twice its median. */
static double slow_runs(const hone_layer *l) {
  double n = 0;
  for (size_t i = 0; l->samples_ms && i < l->stats.count; i++) n += l->samples_ms[i] >= 2 * l->stats.p50;
  return n;
}

/* Interruptions by other work hit every operator in proportion to its time, once here and once there; an
 * outlier is hit again and again. Where only statistics are known, these decide. */
static bool hit_again(const hn_diagnosis *d, const hone_layer *l) {
  if (!l->samples_ms) return true;
  double all = 0, mine = slow_runs(l);
  for (size_t i = 0; i < d->p->layer_count; i++) all += slow_runs(&d->p->layers[i]);
  return mine >= 4 && 100 * mine >= d->t->outlier_hits * (double)l->stats.count &&
         mine >= d->t->outlier_excess * all * hn_share(d, hn_typical_ms(l)) / 100;
}

static void gain(hn_diagnosis *d, double mean_ms, double usual_ms) {
  hn_finding_gain(d, mean_ms / d->p->wall.mean, usual_ms > 0 ? mean_ms / usual_ms : 1, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "every run takes as long as the median run", "每次运行都与中位数一样快"), 0.5);
}

/* Most operators scatter together: then it is the machine, not an operator. */
static void noisy_run(hn_diagnosis *d, size_t noisy) {
  const hone_sample_stats *w = &d->p->wall;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "The whole run scatters (CV %.2f): something else uses this machine",
                    "整个运行都在波动（CV %.2f）：有别的东西在使用这台机器", w->cv);
  f->category = HONE_CATEGORY_NOTE; /* about the measurement, not about the network */
  f->subject = HN_WORDS(d, "whole run", "整个运行");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "Most operators vary at once, which no single operator explains: other processes, frequency "
      "changes or a shared host. Figures of such a run should not be compared.",
      "大多数算子同时波动，单个算子解释不了：别的进程、频率变化或共享主机。这样的数据不应拿来比较。");
  hn_finding_evidence(d, HN_T("CV of the wall", "墙钟时间的 CV"), w->cv, "", HN_T("outer clock", "外部时钟"));
  hn_finding_evidence(d, HN_T("p95 over p50", "p95 与 p50 之比"), w->p50 > 0 ? w->p95 / w->p50 : 0, "x",
                      HN_T("outer clock", "外部时钟"));
  hn_finding_evidence(d, HN_T("operators with CV above the limit", "CV 超限的算子数"), (double)noisy, "",
                      HN_SOURCE_LAYERS);
  hn_finding_do(d, HN_DO_MEASURE, NULL, 0);
  hn_finding_end(d);
}

static void one_operator(hn_diagnosis *d, const hone_layer *l) {
  hone_finding *f = hn_finding_begin(d, l->name);
  f->title = HN_SAY(d, "'%s' takes %.2f ms on average but %.2f ms usually",
                    "'%s' 平均 %.2f 毫秒，而通常只要 %.2f 毫秒", l->name, l->stats.mean, l->stats.p50);
  f->subject = l->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      HN_WORDS(d,
               "Some of its runs take much longer than the others: page faults in freshly mapped memory, an "
               "allocation, a lock, or data-dependent work.",
               "它有几次运行比其他次长得多：新映射内存的缺页、内存分配、锁，或依赖数据的工作量。");
  hn_finding_evidence(d, HN_T("CV", "CV"), l->stats.cv, "",
                      HN_T("exclusive time an iteration", "每次迭代的独占时间"));
  hn_finding_evidence(d, HN_T("median", "中位数"), l->stats.p50, "ms",
                      HN_T("exclusive time an iteration", "每次迭代的独占时间"));
  hn_finding_evidence(d, HN_T("p95", "p95"), l->stats.p95, "ms",
                      HN_T("exclusive time an iteration", "每次迭代的独占时间"));
  hn_finding_evidence(d, HN_T("worst", "最差"), l->stats.max, "ms",
                      HN_T("exclusive time an iteration", "每次迭代的独占时间"));
  hn_finding_do(d, HN_DO_LAYER, l->name, 0);
  hn_finding_layer(d, l, l->time_ms);
  gain(d, l->stats.mean, l->stats.p50);
  hn_finding_end(d);
}

static void always_slow(hn_diagnosis *d, const hone_layer *l, double usual) {
  const double over = hn_over_model(d, l);
  hone_finding *f = hn_finding_begin(d, l->name);
  f->title = HN_SAY(d, "'%s' always takes %.1f times as long as its cost model says, others %.1f times",
                    "'%s' 总是耗时为其成本模型的 %.1f 倍，其他算子为 %.1f 倍", l->name, over, usual);
  f->subject = l->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause =
      HN_WORDS(d,
               "Other operators of this run keep to their cost models, this one does not, not even in its "
               "fastest run: denormal numbers, a shape at which rows collide in the cache, or a kernel "
               "that does not suit this shape.",
               "本次运行的其他算子都符合各自的成本模型，唯独它即使在最快的一次也不符合：非规格化数、"
               "各行在缓存中冲突的形状，或不适合该形状的内核。");
  hn_finding_evidence(d, HN_T("fastest run", "最快一次"), l->stats.min, "ms",
                      HN_T("exclusive time an iteration", "每次迭代的独占时间"));
  hn_finding_evidence(d, HN_T("over its cost model", "与成本模型之比"), over, "x",
                      HN_T("fastest run over the tactic's prediction", "最快一次除以战术的预测"));
  hn_finding_evidence(d, HN_T("others over theirs", "其他算子与各自模型之比"), usual, "x",
                      HN_T("median of the operators", "各算子的中位数"));
  hn_finding_do(d, HN_DO_TUNE, NULL, 0);
  hn_finding_do(d, HN_DO_LAYER, l->name, 0);
  hn_finding_layer(d, l, hn_typical_ms(l));
  hn_finding_gain(d, hn_share(d, hn_typical_ms(l)) / 100, over / usual, HONE_BASIS_MODEL,
                  HN_WORDS(d, "as close to its cost model as the other operators are",
                           "与其他算子一样接近各自的成本模型"),
                  0.5);
  hn_finding_end(d);
}

/* Of few operators none is usual: then this one must stand out from the worst of the others of its kind
 * (products, or what is none), of which there are two at least. 0: not known. */
static double worst_of_others(const hn_diagnosis *d, const hone_layer *l) {
  double worst = 0;
  size_t n = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const double over = hn_over_model(d, &d->p->layers[i]);
    if (&d->p->layers[i] == l || !(over > 0) || hn_is_matrix(&d->p->layers[i]) != hn_is_matrix(l)) continue;
    n++;
    if (over > worst) worst = over;
  }
  return n >= 2 ? worst : 0;
}

/* The fastest runs are compared: neighbours disturb some runs of everything, this is about one operator in
 * all of its runs. */
static void find_always_slow(hn_diagnosis *d) {
  const double usual = hn_usual_over_model(d, false);
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    const double others = usual > 0 ? usual : worst_of_others(d, l);
    if (others > 0 && hn_over_model(d, l) >= d->t->model_factor * others &&
        hn_share(d, hn_typical_ms(l)) >= d->t->model_share)
      always_slow(d, l, others);
  }
}

/* What the layer loses to the runs in which it is slow, in milliseconds an iteration. */
static double loses(const hone_layer *l) {
  return l->stats.mean > l->stats.p50 ? l->stats.mean - l->stats.p50 : 0;
}

/* Neighbours make all scatter a little; one that loses most of what is lost does so by itself. */
static bool loses_most(const hn_diagnosis *d, const hone_layer *l) {
  double all = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) all += loses(&d->p->layers[i]);
  return 100 * loses(l) >= d->t->outlier_most * all;
}

static void run(hn_diagnosis *d) {
  find_always_slow(d);
  hn_find_lone(d);
  if ((double)d->p->iterations < d->t->outlier_runs) return;
  size_t noisy = 0, relevant = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    relevant += d->p->layers[i].pct >= d->t->outlier_share;
    noisy += scatters(d, &d->p->layers[i]);
  }
  const bool all_scatter = relevant > 2 && noisy * 2 > relevant;
  const size_t before = d->found.len;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    if (scatters(d, l) && hit_again(d, l) && (!all_scatter || loses_most(d, l))) one_operator(d, l);
  }
  if (all_scatter && d->found.len == before && d->p->wall.cv > d->t->outlier_cv) noisy_run(d, noisy);
}

const struct hn_rule hn_rule_outlier_operator = {"outlier_operator", run};
