/* hone hello */
#include "cli/options/options.h"
#include "cli/terminal/term.h"

static int run(const cli_args *args) {
  if (args->json) return cli_print_json(json_pack("{s:s}", "hello", args->rest.item[0]));
  cli_print("hello, %s\n", args->rest.item[0]);
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_JSON, CLI_OPT_HELP, CLI_END};
const cli_command cli_cmd_hello = {"hello", "NAME", "greet somebody", NULL, options, 1, 1, run};
