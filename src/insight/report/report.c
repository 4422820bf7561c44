/* The one entry: checks the input, lets the format's writer fill a buffer, hands it to the sink. */
#include "insight/report/report.h"

#include "base/error.h"
#include "insight/profile/bound.h"

#include <math.h>
#include <string.h>

static hn_report_writer *const writers[] = {
    [HONE_REPORT_TEXT] = hn_report_text,
    [HONE_REPORT_JSON] = hn_report_json,
    [HONE_REPORT_CSV] = hn_report_csv,
    [HONE_REPORT_TRACE] = hn_report_trace,
    [HONE_REPORT_HTML] = hn_report_html,
    [HONE_REPORT_PROFILE_JSON] = hn_report_profile_json,
    [HONE_REPORT_FINDINGS_JSON] = hn_report_findings_json,
    [HONE_REPORT_COMPARISON_JSON] = hn_report_comparison_json,
};

hone_status hone_report_write(const hone_report_input *in, hone_report_format format, hone_sink sink,
                              void *user, hone_error *error) {
  if (!in || !sink || (unsigned)format >= sizeof writers / sizeof *writers)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_report_write needs an input, a known format and a sink");
  if (!in->baseline)
    return hn_fail(error, HONE_ERROR_USAGE, "a report needs at least one profile (baseline)");
  if (format == HONE_REPORT_COMPARISON_JSON && !in->comparison)
    return hn_fail(error, HONE_ERROR_USAGE, "a comparison's JSON needs a comparison");
  const uint64_t lost = hn_mem_lost();
  hn_str out = {0};
  hone_status status = writers[format](in, &out, error);
  if (!status && out.failed) status = hn_fail_memory(error, out.len, "a report");
  status = hn_settle(status, lost, error);
  if (!status) status = sink(user, out.ptr ? out.ptr : "", out.len, error);
  hn_str_free(&out);
  return status;
}

const hone_profile *hn_report_current(const hone_report_input *in) {
  return in->optimized ? in->optimized : in->baseline;
}

double hn_report_speedup(const hone_report_input *in) {
  if (!in->optimized || in->optimized->wall.p50 <= 0) return 0;
  return in->baseline->wall.p50 / in->optimized->wall.p50;
}

int32_t hn_report_typical_iteration(const hone_profile *p) {
  /* Incomplete iterations have no wall in the profile, so go by the RUN spans, else by the facts' walls. */
  size_t n;
  const hone_span *spans = hone_facts_spans(p->facts, &n);
  double typical = p->filtered ? p->wall.p50 : hn_typical_wall_ms(p);
  int32_t best = -1;
  double best_distance = INFINITY;
  for (size_t i = 0; i < n; i++) {
    if (spans[i].iteration < 0) continue;
    if (best < 0) best = spans[i].iteration;
    if (spans[i].kind != HONE_SPAN_RUN) continue;
    double distance = fabs((double)(spans[i].end_ns - spans[i].start_ns) / 1e6 - typical);
    if (distance < best_distance) {
      best_distance = distance;
      best = spans[i].iteration;
    }
  }
  return best;
}

uint64_t hn_report_memory_peak(const hone_profile *p, const char **source) {
  const hone_memory_facts *m = hone_facts_get_memory(p->facts);
  if (m->device_peak) {
    *source = "memory of the device";
    return m->device_peak;
  }
  if (m->rss_peak) {
    *source = "peak resident set of the process";
    return m->rss_peak;
  }
  *source = "weights and planned activations";
  return m->weights + (m->actual_peak ? m->actual_peak : m->predicted_peak);
}

bool hn_report_counter(const hone_profile *p, const char *name, double *value) {
  size_t n;
  const hone_counter *counters = hone_facts_counters(p->facts, &n);
  for (size_t i = 0; i < n; i++)
    if (counters[i].step < 0 && counters[i].name && strcmp(counters[i].name, name) == 0) {
      *value = counters[i].value;
      return true;
    }
  return false;
}

hone_language hn_report_language(const hone_report_input *in) {
  return in->findings ? in->findings->language : in->language;
}

const char *hn_report_title(const hone_report_input *in) {
  const char *model = hone_facts_get_meta(in->baseline->facts)->model;
  const char *slash = model ? strrchr(model, '/') : NULL;
  if (in->title) return in->title;
  return slash && slash[1] ? slash + 1 : model ? model : "profile";
}
