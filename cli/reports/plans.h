/* Plans for many sizes as a table. */
#ifndef HONE_CLI_PLANS_H
#define HONE_CLI_PLANS_H

#include "cli/options/options.h"
#include "cli/options/session.h"

#include <hone/hone.h>

typedef struct cli_plans {
  const char *path;
  const cli_args *args;
  const cli_session *session;
  hone_shapes *shapes;
  const hone_size_profile *profile; /* [n] */
  uint32_t n;
} cli_plans;

/* At most so many; more are not a table. */
enum { CLI_MOST_PLANS = 256 };

/* Makes the plan of every combination of sizes. */
hone_status cli_plans_prepare(const cli_plans *plans, hone_error *error);
/* Prints them, measured where --runs says so; the exit code. */
int cli_plans_show(const cli_plans *plans, hone_error *error, hone_status *status);

#endif
