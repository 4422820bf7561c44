/* Copies from or to host memory that is not page-locked: the driver copies twice, and the caller waits. */
#include "insight/diagnose/rule.h"

typedef struct kinds {
  double pageable_ns, pageable_bytes, other_ns, other_bytes;
  size_t pageable;
} kinds;

static kinds sort_copies(const hn_diagnosis *d) {
  size_t n;
  const hone_span *spans = hone_facts_spans(d->facts, &n);
  kinds k = {0};
  for (size_t i = 0; i < n; i++) {
    const hone_span *s = &spans[i];
    if (s->iteration < 0 || (s->kind != HONE_SPAN_COPY_H2D && s->kind != HONE_SPAN_COPY_D2H)) continue;
    double ns = (double)(s->end_ns - s->start_ns);
    bool pageable = s->source_memory == HONE_MEMORY_PAGEABLE || s->target_memory == HONE_MEMORY_PAGEABLE;
    *(pageable ? &k.pageable_ns : &k.other_ns) += ns;
    *(pageable ? &k.pageable_bytes : &k.other_bytes) += (double)s->bytes;
    k.pageable += pageable;
  }
  return k;
}

static void run(hn_diagnosis *d) {
  const hone_stages *s = &d->p->stages;
  kinds k = sort_copies(d);
  if (!k.pageable || s->total_ms <= 0) return;
  /* The exclusive time of all copies, divided as their durations are. */
  double ms = (s->h2d_ms + s->d2h_ms) * k.pageable_ns / (k.pageable_ns + k.other_ns);
  double share = 100 * ms / s->total_ms;
  if (share < d->t->pageable_share) return;
  double rate = k.pageable_ns > 0 ? k.pageable_bytes / k.pageable_ns : 0,
         other = k.other_ns > 0 ? k.other_bytes / k.other_ns : 0;
  const bool compared = rate > 0 && other > 1.1 * rate;
  /* Page-locked, a copy may run beside the computation; pageable it cannot. */
  double rest = s->total_ms - ms, left = ms > rest ? ms - rest : ms / 20;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Copies of pageable memory (%.0f an inference) take %.0f %% of the total",
                    "可分页内存的拷贝（每次推理 %.0f 次）占总时间的 %.0f %%",
                    (double)k.pageable / (double)(d->p->iterations ? d->p->iterations : 1), share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "copies of pageable memory", "可分页内存的拷贝");
  f->quantity = HONE_QUANTITY_COPIES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "The host memory is not page-locked: the driver first copies it into a buffer of its own, and the "
      "caller waits even where the copy was called asynchronous, so nothing overlaps it.",
      "主机内存没有锁页：驱动要先把它复制到自己的缓冲区，即使调用的是异步拷贝，调用者也要等待，因此无法与任何"
      "工作重叠。");
  hn_finding_evidence(d, HN_T("pageable copies", "可分页拷贝"), ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("share of T_total", "占 T_total"), share, "%",
                      HN_T("T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle",
                           "T_pre + T_h2d + T_infer + T_d2h + T_post + T_idle"));
  if (rate > 0)
    hn_finding_evidence(d, HN_T("their rate", "它们的速率"), rate, "GB/s",
                        HN_T("bytes over time", "字节除以时间"));
  if (compared)
    hn_finding_evidence(d, HN_T("rate of the pinned copies", "锁页拷贝的速率"), other, "GB/s",
                        HN_T("bytes over time", "字节除以时间"));
  hn_finding_do(d, HN_DO_PIN, NULL, 0);
  hn_finding_do(d, HN_DO_TIMELINE, NULL, 0);
  hn_finding_gain(d, share / 100, ms / left, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "page-locked, these copies can run beside the computation of this profile",
                           "锁页之后，这些拷贝可以与本次记录中的计算并行"),
                  0.6);
  hn_finding_range(d, compared ? other / rate : 1, ms / left);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_pageable_copies = {"pageable_copies", run};
