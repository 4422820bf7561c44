/* Resident memory grows as long as the network runs. */
#include "insight/diagnose/rule.h"

/* Least squares over (seconds, bytes): slope, and how many of its own standard errors it is from zero. */
static double slope_of(const hone_memory_sample *s, size_t n, double *sureness) {
  double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < n; i++) {
    mx += (double)(s[i].time_ns - s[0].time_ns) * 1e-9 / (double)n;
    my += (double)s[i].rss_bytes / (double)n;
  }
  for (size_t i = 0; i < n; i++) {
    double x = (double)(s[i].time_ns - s[0].time_ns) * 1e-9 - mx, y = (double)s[i].rss_bytes - my;
    xx += x * x;
    xy += x * y;
    yy += y * y;
  }
  double slope = xx > 0 ? xy / xx : 0, rest = yy - slope * xy;
  double variance = n > 2 && xx > 0 && rest > 0 ? rest / (double)(n - 2) / xx : 0;
  *sureness = variance > 0 ? slope * slope / variance : slope > 0 ? 1e9 : 0;
  return slope;
}

static void run(hn_diagnosis *d) {
  size_t n;
  const hone_memory_sample *s = hone_facts_memory_samples(d->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (!s[i].rss_bytes) return;
  if (n < 8) return;
  double seconds = (double)(s[n - 1].time_ns - s[0].time_ns) * 1e-9;
  if (seconds < d->t->leak_seconds) return;
  /* The first quarter may still be filling caches and pools. */
  const size_t warm = n / 4;
  double sureness, slope = slope_of(s + warm, n - warm, &sureness);
  double grown = slope * (double)(s[n - 1].time_ns - s[warm].time_ns) * 1e-9 / 1048576;
  if (sureness < 16 || grown < d->t->leak_mib) return; /* four standard errors */
  hone_finding *f = hn_finding_begin(d, NULL);
  f->title = HN_SAY(d, "Resident memory grows by %.0f MiB an hour", "常驻内存每小时增长 %.0f MiB",
                    slope * 3600 / 1048576);
  f->category = HONE_CATEGORY_NOTE;
  f->subject = HN_WORDS(d, "the process", "进程");
  f->quantity = HONE_QUANTITY_WALL;
  f->remedy = HONE_REMEDY_USER;
  f->cause = HN_WORDS(
      d,
      "Memory that is taken in every inference and not given back: buffers of the caller, results that are "
      "kept, or a pool without a limit. It costs no time until the system runs short of memory.",
      "每次推理申请而未归还的内存：调用者的缓冲区、保留的结果，或没有上限的内存池。在系统内存不足之前并不费时"
      "。");
  hn_finding_evidence(d, HN_T("growth", "增长"), slope * 3600 / 1048576, "MiB/h",
                      HN_T("line through the samples of resident memory", "常驻内存样本的拟合直线"));
  hn_finding_evidence(d, HN_T("observed", "观测时长"), seconds, "s",
                      HN_T("samples of resident memory", "常驻内存样本"));
  hn_finding_evidence(d, HN_T("grown meanwhile", "期间增长"), grown, "MiB",
                      HN_T("samples of resident memory", "常驻内存样本"));
  hn_finding_do(d, HN_DO_MEASURE, NULL, 0);
  hn_finding_end(d);
}

const struct hn_rule hn_rule_memory_leak = {"memory_leak", run};
