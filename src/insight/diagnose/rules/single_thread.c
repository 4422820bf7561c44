/* One thread works, more processors are there. */
#include "insight/diagnose/rule.h"

#include <string.h>

/* Speed-up from `cores` threads for one kind of roof, by the machine's own measurement; 0 when not measured.
 */
static double measured_scaling(const hn_diagnosis *d, bool memory, const char *name, double cores) {
  size_t n;
  const hone_roof *roofs = hone_facts_roofs(d->facts, &n);
  double one = 0, many = 0;
  int32_t most = 1;
  for (size_t i = 0; i < n; i++) {
    double value = memory ? roofs[i].gbs : roofs[i].gflops;
    if (value <= 0 || strcmp(roofs[i].name, name) != 0) continue;
    if (roofs[i].threads == 1) one = value;
    if (roofs[i].threads > most && roofs[i].threads <= cores) {
      most = roofs[i].threads;
      many = value;
    }
  }
  return one > 0 && many > 0 ? many / one : 0;
}

static void run(hn_diagnosis *d) {
  const hone_facts_meta *m = hone_facts_get_meta(d->facts);
  if (m->threads != 1 || m->cores < 2 || hn_on_accelerator(d)) return;
  double work_ms = 0;
  double compute = measured_scaling(d, false, "f32", m->cores),
         memory = measured_scaling(d, true, "DRAM", m->cores);
  bool measured = compute > 1;
  double scaling = measured ? compute : d->t->thread_efficiency / 100 * m->cores;
  /* Each step speeds up like the roof that limits it. */
  double parallel_ms = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    work_ms += hn_typical_ms(l);
    parallel_ms += hn_typical_ms(l) / (l->bound == HONE_LIMIT_MEMORY && memory > 1 ? memory : scaling);
  }
  if (work_ms <= 0 || parallel_ms <= 0) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "One thread computes while %.0f processors may be used",
                    "只有一个线程在计算，而可用的处理器有 %.0f 个", m->cores);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "whole run", "整个运行");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_SETTING;
  f->cause = HN_WORDS(d, "The session was created with one thread.", "会话是以单线程创建的。");
  hn_finding_evidence(d, HN_T("threads", "线程数"), m->threads, "", HN_T("session", "会话"));
  hn_finding_evidence(d, HN_T("processors", "处理器数"), m->cores, "",
                      HN_T("affinity mask of the process", "进程的 CPU 亲和性掩码"));
  hn_finding_evidence(d, HN_T("steps' share", "各步骤占比"), hn_share(d, work_ms), "%", HN_SOURCE_SPANS);
  if (measured) hn_finding_evidence(d, HN_T("f32 scaling", "f32 加速比"), compute, "x", HN_SOURCE_ROOFS);
  if (memory > 1) hn_finding_evidence(d, HN_T("DRAM scaling", "DRAM 加速比"), memory, "x", HN_SOURCE_ROOFS);
  hn_finding_do(d, HN_DO_THREADS, NULL, m->cores);
  hn_finding_gain(
      d, hn_share(d, work_ms) / 100, work_ms / parallel_ms, measured ? HONE_BASIS_MEASURED : HONE_BASIS_TABLE,
      measured
          ? HN_WORDS(d, "roofs of this machine with one and with all threads",
                     "本机单线程与全部线程的性能上限")
          : HN_SAY(d,
                   "%.0f %% of every processor, for lack of measured roofs; hone's f32 roof on an Intel Xeon "
                   "keeps 99 %% with two (docs/log/perf.md)",
                   "缺少实测上限，每个处理器按 %.0f %% 计；hone 在 Intel Xeon 双处理器上的 f32 上限保持 99 %%"
                   "（docs/log/perf.md）",
                   d->t->thread_efficiency),
      measured ? 0.7 : 0.4);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_single_thread = {"single_thread", run};
