/* What hone op why found, as text and as JSON. */
#ifndef HONE_CLI_CANDIDATES_H
#define HONE_CLI_CANDIDATES_H

#include <hone/hone.h>
#include <jansson.h>

/* "hone op new OwnSin --from m.onnx --nodes a,b": a line for a shell, for the slowest place; of what is not
 * elementwise "hone op new SoftmaxMul --general". NULL: no memory. free() it. */
char *cli_candidate_command(const hone_candidate *candidate, const char *model);
/* At most `rows` of those that are not worth it. */
void cli_candidates_print(const hone_candidates *candidates, const hone_profile *profile, const char *model,
                          size_t rows);
json_t *cli_candidates_json(const hone_candidates *candidates, const hone_profile *profile,
                            const char *model);

#endif
