/* Public tuning: arguments are checked here and nowhere below. */
#include <hone/improve.h>

#include "api/api.h"
#include "base/error.h"
#include "improve/tune.h"

#include <stdio.h>

static hone_status write_table(hn_tuned *table, const char *path, hone_error *error) {
  const hone_status status = hn_tuned_write(table, path, error);
  if (status != HONE_OK) hn_error_where(error, "%s", path);
  return status;
}

hone_status hone_tune(hone_plan *plan, const hone_tune_options *o, hone_tune_report *out, hone_error *error) {
  static const hone_tune_options defaults = {0};
  if (!plan || !out)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_tune needs a plan and a place for the result");
  if (!o) o = &defaults;
  if (hn_api_plan(plan)->moving)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED,
                   "a plan that was made one for other shapes cannot be tuned");
  const char *path;
  hn_tuned *table = hn_api_tuned(plan, &path);
  hone_status status = hn_tune(hn_api_plan(plan), table, o, out, error);
  hone_error later = {.status = HONE_OK};
  /* A kernel has failed: what was measured before it is right, and need not be measured again. */
  if (status == HONE_ERROR_DEVICE && path[0] && !o->unsaved && hn_tuned_count(table))
    write_table(table, path, &later);
  if (status != HONE_OK || !path[0] || !out->measured || o->unsaved) return status;
  status = write_table(table, path, error);
  if (status == HONE_OK) snprintf(out->file, sizeof out->file, "%s", path);
  return status;
}

hone_status hone_tune_save(hone_plan *plan, hone_error *error) {
  if (!plan) return hn_fail(error, HONE_ERROR_USAGE, "hone_tune_save needs a plan");
  const uint64_t lost = hn_mem_lost();
  const char *path;
  hn_tuned *table = hn_api_tuned(plan, &path);
  return path[0] && hn_tuned_count(table) ? hn_settle(write_table(table, path, error), lost, error) : HONE_OK;
}

void hone_tune_report_free(hone_tune_report *report) {
  if (report) hn_tune_report_free(report);
}
