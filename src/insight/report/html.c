/* report.html: one file that needs nothing else. The assets are put together at build time; the data is JSON
 * in a script element that no browser executes. The page builds its text with textContent only. */
#include "insight/report/report.h"

#include "insight/report/assets.h"

#include <string.h>

/* The template marks where things go with lines "@@NAME@@". */
static void fill(hn_str *o, const hone_report_input *in, const char *mark, size_t length) {
  if (length == 4 && memcmp(mark, "DATA", 4) == 0) {
    hn_str json = {0};
    hn_members_report(&json, in, true);
    if (json.failed)
      o->failed = true;
    else
      hn_str_append(o, json.ptr, json.len);
    hn_str_free(&json);
    return;
  }
  for (size_t i = 0; i < hn_asset_count; i++)
    if (strlen(hn_assets[i].name) == length && memcmp(hn_assets[i].name, mark, length) == 0)
      hn_str_append(o, hn_assets[i].data, hn_assets[i].size);
}

hone_status hn_report_html(const hone_report_input *in, hn_str *o, hone_error *error) {
  (void)error;
  const char *page = NULL;
  for (size_t i = 0; i < hn_asset_count; i++)
    if (strcmp(hn_assets[i].name, "page.html") == 0) page = hn_assets[i].data;
  while (page && *page) {
    const char *open = strstr(page, "@@"), *close = open ? strstr(open + 2, "@@") : NULL;
    if (!close) break;
    hn_str_append(o, page, (size_t)(open - page));
    fill(o, in, open + 2, (size_t)(close - open - 2));
    page = close + 2;
  }
  if (page) hn_str_puts(o, page);
  return HONE_OK;
}
