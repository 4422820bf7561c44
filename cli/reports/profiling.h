/* Records of a session's runs. */
#ifndef HONE_CLI_PROFILING_H
#define HONE_CLI_PROFILING_H

#include "cli/options/options.h"
#include "cli/options/session.h"

#include <hone/hone.h>

/* Adds what the command knows of them. */
void cli_describe(const cli_session *session, const cli_args *args, const char *path, hone_facts *facts);
/* The session as the library measures it. */
hone_subject cli_subject(const cli_session *session, const cli_args *args);
/* Warms up and records: what hone profile does. After Ctrl-C the runs that are complete are the profile.
 * counting: of the processor, begun before the session's threads; NULL: none, uncounted says why. */
hone_status cli_profile_make(cli_session *session, const cli_args *args, const char *path,
                             const hone_counting *counting, const char *uncounted, hone_recording *out,
                             hone_error *error);
/* Two sessions in turn, into out[2]: what the machine does meanwhile hits both. */
hone_status cli_profile_pair(cli_session *const session[2], const cli_args *args, const char *const path[2],
                             hone_recording *out, hone_error *error);
/* HONE_ERROR_USAGE when --filter leaves no layer: an empty table would look like a result. */
hone_status cli_check_filter(const cli_args *args, const hone_profile *profile, hone_error *error);

#endif
