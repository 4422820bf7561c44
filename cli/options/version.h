/* hone's own revision. */
#ifndef HONE_CLI_VERSION_H
#define HONE_CLI_VERSION_H

#include <hone/hone.h>

const char *cli_commit(void);       /* git revision of hone's source; NULL: unknown */
const char *cli_hone_version(void); /* "0.1.0 (1b3d42d2c7ab)": with that revision, where it is known */
const char *cli_commit_date(void);  /* its day, "2026-11-23"; "": unknown */

#endif
