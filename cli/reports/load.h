/* What load scenarios, the search for the highest rate and curves came to: text, JSON, a page. */
#ifndef HONE_CLI_LOAD_REPORT_H
#define HONE_CLI_LOAD_REPORT_H

#include <hone/hone.h>
#include <jansson.h>

json_t *cli_load_json(const hone_load_result *result);
json_t *cli_peak_json(const hone_load_peak *peak);
json_t *cli_curve_json(const hone_load_result *points, uint32_t n);
void cli_load_text(const hone_load_result *result);
void cli_peak_text(const hone_load_peak *peak);
void cli_curve_text(const hone_load_result *points, uint32_t n);
/* A page with the curve and its table. */
hone_status cli_curve_page(const char *path, const char *title, const hone_load_result *points, uint32_t n,
                           hone_error *error);

#endif
