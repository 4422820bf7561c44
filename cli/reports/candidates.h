/* What hone op why found, as text and as JSON. */
#ifndef HONE_CLI_CANDIDATES_H
#define HONE_CLI_CANDIDATES_H

#include <hone/hone.h>
#include <jansson.h>

/* start[i] is that of candidate i. At most `rows` of those that are not worth it. */
void cli_candidates_print(const hone_candidates *candidates, const hone_candidate_place *const *start,
                          const hone_profile *profile, const char *model, size_t rows);
json_t *cli_candidates_json(const hone_candidates *candidates, const hone_candidate_place *const *start,
                            const hone_profile *profile, const char *model);

#endif
