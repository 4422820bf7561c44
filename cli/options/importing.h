/* Other tools' profiles. */
#ifndef HONE_CLI_IMPORTING_H
#define HONE_CLI_IMPORTING_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Reads files of one run into facts and a profile; free with hone_recording_free. */
hone_status cli_import(const cli_args *args, const char *const *paths, size_t n, hone_recording *out,
                       hone_error *error);
/* What a report of it is called: NULL (the model's name), or the first file's where no tool named the model.
 */
const char *cli_import_title(const cli_args *args, const hone_recording *profile);

#endif
