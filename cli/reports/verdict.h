/* What hone verify found. */
#ifndef HONE_CLI_VERDICT_H
#define HONE_CLI_VERDICT_H

#include <hone/hone.h>
#include <jansson.h>

json_t *cli_verification_json(const hone_verify_result *result);
const char *cli_verdict_name(hone_verdict verdict);
int cli_verdict_exit(hone_verdict verdict);

#endif
