/* Revisions of the user's repository. */
#ifndef HONE_CLI_REVISION_H
#define HONE_CLI_REVISION_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* The revision of the user's repository: --commit, GITHUB_SHA, or git's HEAD of the working directory, else
 * of the folder of the model (NULL: none). False: none of these. revision.c; no program is started. */
bool cli_revision(const cli_args *args, const char *model, char *buf, size_t size);
/* What git in the working directory calls so ("HEAD~1", "main"), as a whole revision. False: nothing. */
bool cli_resolve_revision(const char *name, char *buf, size_t size);

#endif
