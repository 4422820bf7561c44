/* Sizes of dimensions, as options tell them. */
#ifndef HONE_CLI_PROFILES_H
#define HONE_CLI_PROFILES_H

#include "cli/options/options.h"

#include <hone/hone.h>

/* Every --profile; texts: room for args->profiles.n texts, in which the symbols then are: free() each. out:
 * room for HONE_PROFILES. */
hone_status cli_profiles(const cli_args *args, char **texts, hone_size_profile *out, uint32_t *n,
                         hone_error *error);

#endif
