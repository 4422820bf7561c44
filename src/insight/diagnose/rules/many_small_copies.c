/* Many copies of a few kilobytes: each costs its fixed part, whatever it moves. */
#include "insight/diagnose/rule.h"

typedef struct copies {
  double count, ns, bytes; /* of the small ones, all iterations */
  double all_ns;
  double least_ns; /* the shortest of them: what a copy costs that moves next to nothing */
} copies;

/* Small by its bytes, or where these are not known by its time. */
static bool is_small(const hn_diagnosis *d, const hone_span *s) {
  return s->bytes ? (double)s->bytes <= d->t->small_copy_kib * 1024
                  : (double)(s->end_ns - s->start_ns) <= d->t->tiny_us * 1e3;
}

static copies gather(const hn_diagnosis *d) {
  size_t n;
  const hone_span *spans = hone_facts_spans(d->facts, &n);
  copies c = {0};
  for (size_t i = 0; i < n; i++) {
    const hone_span *s = &spans[i];
    if (s->iteration < 0 || (s->kind != HONE_SPAN_COPY_H2D && s->kind != HONE_SPAN_COPY_D2H)) continue;
    double ns = (double)(s->end_ns - s->start_ns);
    c.all_ns += ns;
    if (!is_small(d, s)) continue;
    c.count++;
    c.ns += ns;
    c.bytes += (double)s->bytes;
    if (ns > 0 && (c.least_ns <= 0 || ns < c.least_ns)) c.least_ns = ns;
  }
  return c;
}

static void run(hn_diagnosis *d) {
  const hone_stages *stages = &d->p->stages;
  copies c = gather(d);
  if (c.count <= 0 || c.all_ns <= 0) return;
  /* Exclusive milliseconds of one inference: copies that overlap computation cost nothing. */
  const double runs = (double)(d->p->iterations ? d->p->iterations : 1);
  const double ms = (stages->h2d_ms + stages->d2h_ms) * c.ns / c.all_ns,
               least_ms = ms * c.least_ns / c.ns * runs;
  c.count /= runs;
  double total = stages->total_ms, share = total > 0 ? 100 * ms / total : 0;
  if (c.count < d->t->small_copies || share < d->t->small_copy_share) return;
  /* The fixed part once in each direction, and what the bytes cost beyond it. */
  double left = ms - least_ms * (c.count - 2);
  if (left < ms / c.count) left = ms / c.count;
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "%.0f small copies an inference take %.0f %% of the total",
                    "每次推理有 %.0f 次小拷贝，占总时间的 %.0f %%", c.count, share);
  f->category = HONE_CATEGORY_STRUCTURAL;
  f->subject = HN_WORDS(d, "copies", "拷贝");
  f->quantity = HONE_QUANTITY_COPIES;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "A copy costs a fixed time to set up, far more than these few bytes need. Inputs that lie beside "
      "each other in one buffer go in one copy.",
      "每次拷贝都有固定的启动开销，远大于这点数据所需的时间。把输入放在同一块缓冲区里，一次拷贝即可。");
  hn_finding_evidence(d, HN_T("copies", "拷贝次数"), c.count, "",
                      HN_T("spans of one inference", "一次推理的时段"));
  hn_finding_evidence(d, HN_T("their time", "它们的时间"), ms, "ms", HN_SOURCE_SPANS);
  hn_finding_evidence(d, HN_T("shortest copy", "最短的一次"), 1e3 * least_ms, "us", HN_SOURCE_SPANS);
  if (c.bytes > 0)
    hn_finding_evidence(d, HN_T("bytes of each", "平均每次字节数"), c.bytes / c.count / runs / 1024, "KiB",
                        HN_T("bytes of the spans", "各时段的字节数"));
  hn_finding_do(d, HN_DO_MERGE, NULL, 0);
  hn_finding_do(d, HN_DO_TIMELINE, NULL, 0);
  hn_finding_gain(d, share / 100, ms / left, HONE_BASIS_MEASURED,
                  HN_WORDS(d, "the time of the shortest copy is paid once in each direction",
                           "最短拷贝的时间在每个方向只付一次"),
                  0.6);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_many_small_copies = {"many_small_copies", run};
