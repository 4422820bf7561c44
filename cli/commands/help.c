/* hone help [COMMAND] */
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>

static int run(const cli_args *args) {
  if (!args->rest.n) {
    cli_print_overview(stdout);
    return cli_flush();
  }
  const cli_command *c = cli_find(args->rest.item[0]);
  if (!c) {
    const char *near = cli_nearest_command(args->rest.item[0]);
    return cli_error(HONE_ERROR_USAGE, "unknown command '%s'%s%s%s", args->rest.item[0],
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  cli_print_help(c);
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_END};
const cli_command cli_cmd_help = {"help", "[COMMAND]", "tell what a command does", NULL, options, 0, 1, run};
