/* hone version */
#include "cli/options/options.h"
#include "cli/terminal/term.h"
#include "cli/options/version.h"

#include <hone/hone.h>

static int run(const cli_args *args) {
  if (args->json)
    return cli_print_json(json_pack("{s:s, s:s?, s:i}", "version", hone_version(), "commit", cli_commit(),
                                    "plugin_abi", (int)HONE_PLUGIN_ABI));
  const char *commit = cli_commit();
  if (commit)
    cli_print("hone %s (%s)\n", hone_version(), commit);
  else
    cli_print("hone %s\n", hone_version());
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_OPT_JSON, CLI_END};
const cli_command cli_cmd_version = {"version", "", "print the version", NULL, options, 0, 0, run};
