/* On an accelerator some steps run on the host: what they read and write is copied, and the device waits. */
#include "base/quantile.h"
#include "insight/diagnose/fallback.h"

static bool on_host(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && (step->on_host || step->is_reference) && !hn_is_copy(l);
}

/* Copies between steps are there for the steps on the host; those of the network's inputs and outputs are
 * not, and stand before the first and after the last step. */
static bool copy_for_them(const hn_diagnosis *d, const hone_layer *l) {
  return hn_is_copy(l) && hn_step(d, l) && l->kind != HONE_SPAN_COPY;
}

/* A record without the device's kernels still tells by its launches that there is a device. */
static bool is_launch(const hn_diagnosis *d, const hone_layer *l) {
  const hone_step_fact *step = hn_step(d, l);
  return step && step->is_launch && !hn_is_work(l) && !hn_is_copy(l);
}

/* 0: there is none, or out of memory. */
static double median_device_step(hn_diagnosis *d) {
  double *ms = HN_NEW_ARRAY(d->arena, double, d->p->layer_count + 1);
  size_t n = 0;
  if (!ms) {
    d->failed = true;
    return 0;
  }
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (hn_is_work(&d->p->layers[i]) && !on_host(d, &d->p->layers[i]))
      ms[n++] = hn_typical_ms(&d->p->layers[i]);
  hn_ascend(ms, n);
  return n ? hn_median(ms, n) : 0;
}

static void run(hn_diagnosis *d) {
  if (!hn_on_accelerator(d)) return;
  double ms = 0, copy_ms = 0;
  const hone_layer *slowest = NULL;
  size_t count = 0, copies = 0, steps = 0;
  for (size_t i = 0; i < d->p->layer_count; i++) {
    const hone_layer *l = &d->p->layers[i];
    steps += hn_is_work(l) || is_launch(d, l);
    if (hn_is_copy(l) && (copy_for_them(d, l) || l->kind == HONE_SPAN_KERNEL)) {
      copies++;
      copy_ms += hn_typical_ms(l);
    }
    if (!on_host(d, l)) continue;
    ms += hn_typical_ms(l);
    count++;
    if (!slowest || hn_typical_ms(l) > hn_typical_ms(slowest)) slowest = l;
  }
  if (!count || count == steps) return; /* all of it on the host: then nothing fell back */
  ms += copy_ms;
  double share = hn_share(d, ms);
  if (share < d->t->reference_share) return;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Steps that fell back to the host (%zu, with %zu cop%s) take %.0f %% of the time",
                    "回退到主机的步骤（%zu 个，连同 %zu 次拷贝%s）占时间的 %.0f %%", count, copies,
                    HN_WORDS(d, copies == 1 ? "y" : "ies", ""), share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = slowest->name;
  f->quantity = HONE_QUANTITY_NODES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_SAY(d, "%s The device waits while they run, and their inputs and outputs are copied.",
                    "%s它们运行时设备在等待，输入和输出还要拷贝。", hn_fallback_cause(d, slowest));
  hn_finding_evidence(d, HN_T("host share", "主机占比"), share, "%", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("steps on the host", "主机上的步骤数"), (double)count, "", HN_SOURCE_STEPS);
  hn_finding_evidence(d, HN_T("copies between host and device", "主机与设备之间的拷贝次数"), (double)copies,
                      "", HN_SOURCE_STEPS);
  hn_finding_evidence(d, HN_T("time of these copies", "这些拷贝的时间"), copy_ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence_at(d, HN_T("slowest", "最慢者"), hn_typical_ms(slowest), "ms", slowest->name);
  hn_finding_do(d, HN_DO_FALLBACK, slowest->type, 0);
  for (size_t i = 0; i < d->p->layer_count; i++)
    if (on_host(d, &d->p->layers[i]) || copy_for_them(d, &d->p->layers[i]))
      hn_finding_layer(d, &d->p->layers[i], hn_typical_ms(&d->p->layers[i]));
  /* On the device each would take about what a step there takes; the copies go. */
  double left = median_device_step(d) * (double)count;
  if (left > ms / 2) left = ms / 2;
  hn_finding_gain(d, share / 100, left > 0 ? ms / left : 20, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "the copies go, and each step takes what the median step on the device takes",
                           "拷贝消失，每个步骤的时间等于设备上步骤的中位数"),
                  0.5);
  if (copy_ms < ms) hn_finding_range(d, ms / (ms - copy_ms), ms / (left > 0 ? left / 2 : ms / 50));
  hn_finding_end(d);
}

const struct hn_rule hn_rule_host_fallback = {"host_fallback", run};
