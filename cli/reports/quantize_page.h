/* hone quantize --html: what was done to each layer, and what it cost, as a page. */
#ifndef HONE_CLI_QUANTIZE_PAGE_H
#define HONE_CLI_QUANTIZE_PAGE_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Write --html, whole or not at all; no-ops without it. why: nothing was written; "" where something was. */
hone_status cli_quantize_page(const cli_args *args, const hone_quantize_report *report, hone_error *error);
hone_status cli_mixed_page(const cli_args *args, const hone_mixed_report *report, const char *why,
                           hone_error *error);

#endif
