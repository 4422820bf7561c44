/* Public tuning: arguments are checked here and nowhere below. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "improve/tune.h"

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
