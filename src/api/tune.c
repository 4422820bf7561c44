/* Public tuning: arguments are checked here and nowhere below. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "base/mem.h"
#include "improve/rehearse.h"
#include "improve/tune.h"
#include "runtime/record.h"

#include <stdio.h>

hone_status hone_tune(hone_plan *plan, const hone_tune_options *o, hone_tune_report *out, hone_error *error) {
  static const hone_tune_options defaults = {0};
  if (!plan || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_tune needs a plan and a place for the result");
  const char *path;
  hn_tuned *table = hn_api_tuned(plan, &path);
  hone_status status = hn_tune(hn_api_plan(plan), table, o ? o : &defaults, out, error);
  if (status != HONE_OK || !path[0] || !out->measured) return status;
  status = hn_tuned_write(table, path, error);
  if (status == HONE_OK)
    snprintf(out->file, sizeof out->file, "%s", path);
  else
    hn_error_where(error, "%s", path);
  return status;
}

void hone_tune_report_free(hone_tune_report *report) {
  if (report) hn_tune_report_free(report);
}

hone_status hone_plan_rehearse(const hone_plan *plan, const hone_plan *known, const hone_rehearsal_options *o,
                               hone_facts *facts, hone_rehearsal *out, hone_error *error) {
  enum { SECONDS = 3 };
  if (!plan || !facts || !out)
    return hn_fail(error, HONE_ERROR_USAGE,
                   "hone_plan_rehearse needs a plan, facts and a place for the result");
  hone_rehearsal_options options = o ? *o : (hone_rehearsal_options){0};
  if (options.max_seconds <= 0) options.max_seconds = SECONDS;
  const hn_plan *p = hn_api_plan(plan);
  *out = (hone_rehearsal){0};
  if (p->backend->asynchronous) { /* its kernels would have to be compiled first */
    hn_recorder_preview(p, NULL, facts);
    return HONE_OK;
  }
  double *seconds = hn_calloc(p->steps.len + 1, sizeof *seconds);
  if (!seconds) return hn_fail_memory(error, p->steps.len * sizeof *seconds, "a rehearsal");
  hone_status status = hn_rehearse(p, known ? hn_api_plan(known) : NULL, &options, seconds, out, error);
  if (status == HONE_OK) hn_recorder_preview(p, seconds, facts);
  hn_free(seconds);
  return status;
}
