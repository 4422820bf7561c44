/* A stopwatch's table: "stopwatch layer,operator,ms", then a row for each time that a layer ran. */
#include "insight/import/common/totals.h"
#include "insight/import/common/optype.h"

#include "base/error.h"

typedef struct state {
  hn_totals totals;
} state;

static int sniff(const hn_sniff *s) { return hn_sniff_has(s, "stopwatch layer,operator,ms") ? 95 : 0; }

static hone_status row(state *s, hn_import *in, const hn_csv *csv, hone_error *error) {
  const char *layer = hn_csv_text(csv, 0), *type = hn_csv_text(csv, 1);
  const double ms = hn_csv_number(csv, 2, -1);
  if (!layer || ms < 0) return hn_csv_fail(csv, error, "a layer and its milliseconds are missing");
  hn_total *t = hn_totals_get(&s->totals, in, layer);
  if (t && !t->step.op_type) t->step.op_type = hn_import_text(in, type ? type : "unknown");
  return t && hn_totals_add(&s->totals, t, ms) ? HONE_OK : hn_fail_memory(error, 0, "a stopwatch's table");
}

static hone_status read(hn_import *in, hn_source *source, hone_error *error) {
  state *s = in->state;
  hn_csv csv = {0};
  bool more = true;
  hone_status status = hn_csv_open(&csv, source, error);
  while (!status && !(status = hn_csv_next(&csv, &more, error)) && more) status = row(s, in, &csv, error);
  hn_csv_close(&csv);
  return status;
}

static hone_status finish(hn_import *in, hone_error *error) {
  state *s = in->state;
  in->meta.tool = "stopwatch";
  return hn_totals_write(&s->totals, in, 1, NULL, error);
}

static void destroy(void *p) { hn_totals_free(&((state *)p)->totals); }

const struct hn_importer hn_importer_stopwatch = {
    .format = {"stopwatch", "tables of a stopwatch"},
    .state_size = sizeof(state),
    .sniff = sniff,
    .read = read,
    .finish = finish,
    .destroy = destroy,
};
