/* What happens before and behind a model: M.pipeline.json, and the options that say the same. */
#ifndef HONE_CLI_ENDS_H
#define HONE_CLI_ENDS_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* --pipeline FILE, or M.pipeline.json beside the model where it is there; options that are given count more
 * than what stands there. used: the file, or "". Free with hone_pipeline_spec_free. */
hone_status cli_ends(const cli_args *args, const char *model, hone_pipeline_spec *out, char *used,
                     size_t size, hone_error *error);
/* --workers auto, or pre=N,post=N: 0 where the controller sets them. */
hone_status cli_ends_workers(const cli_args *args, uint32_t workers[HONE_STAGES], hone_error *error);

#endif
