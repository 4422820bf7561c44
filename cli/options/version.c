/* The only file that knows the revision: a new commit compiles this one anew and nothing else. */
#include "cli/options/version.h"

#include "commit.h" /* cmake/Commit.cmake writes it into the build folder */

const char *cli_hone_version(void) {
  return HONE_COMMIT[0] ? HONE_VERSION_STRING " (" HONE_COMMIT ")" : HONE_VERSION_STRING;
}

const char *cli_commit(void) { return HONE_COMMIT[0] ? HONE_COMMIT : NULL; }

const char *cli_commit_date(void) { return HONE_COMMIT_DATE; }
