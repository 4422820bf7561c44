/* What a pipeline says: a line an item, a line while it runs, what came of it all. */
#ifndef HONE_CLI_PIPELINE_REPORT_H
#define HONE_CLI_PIPELINE_REPORT_H

#include <hone/hone.h>
#include <jansson.h>

/* An item's document; NULL: no memory. */
json_t *cli_pipeline_item(const hone_pipeline_result *result, const hone_post *post);
/* The outputs of the item's sample, as documents and, where there is a folder, as files in it that begin with
 * `stem`. */
hone_status cli_pipeline_arrays(const hone_pipeline_result *result, const char *folder, const char *stem,
                                json_t *document, hone_error *error);
/* One line: rate, and of each stage workers, time and queue. */
void cli_pipeline_live(const hone_pipeline_state *state, char *buf, size_t size);
void cli_pipeline_text(FILE *to, const hone_pipeline_state *state);
json_t *cli_pipeline_json(const hone_pipeline_state *state, const hone_pipeline_moment *moments, uint32_t n);
/* A page: the numbers of workers and the rate over the time, and the table of stages. */
hone_status cli_pipeline_page(const char *path, const char *title, const hone_pipeline_state *state,
                              const hone_pipeline_moment *moments, uint32_t n, hone_error *error);

#endif
