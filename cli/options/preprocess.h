/* How pictures become inputs, by options. */
#ifndef HONE_CLI_PREPROCESS_H
#define HONE_CLI_PREPROCESS_H

#include "cli/options/options.h"

#include <hone/hone.h>
#include <jansson.h>

/* What the options say of pictures; HONE_ERROR_USAGE names the one that is wrong. */
hone_status cli_preprocess_said(const cli_args *args, hone_preprocess *out, hone_error *error);
/* What of it is left to whoever reads them: with --input-type u8 the model does the rest itself. */
hone_status cli_preprocess(const cli_args *args, hone_preprocess *out, hone_error *error);
void cli_preprocess_arriving(const cli_args *args, hone_preprocess *preprocess);
json_t *cli_preprocess_json(const hone_preprocess *preprocess);
/* Of the --input files; null where there are none. */
json_t *cli_preprocess_of_inputs(const cli_args *args);
/* The same in a few words. */
void cli_preprocess_say(const hone_preprocess *preprocess, char *buf, size_t size);

#endif
