/* hone op: custom operators, from a definition to a plugin that is used. What stands behind it is a command
 * of its own, with its own options: VERB(name) of op/verbs.def is cli/commands/op/<name>.c with
 * cli_op_<name>. */
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#define VERB(name) extern const cli_command cli_op_##name;
#include "cli/commands/op/verbs.def"
#undef VERB

const cli_command *const cli_op_verbs[] = {
#define VERB(name) &cli_op_##name,
#include "cli/commands/op/verbs.def"
#undef VERB
    NULL};

/* Without a verb. */
static int run(const cli_args *args) {
  (void)args;
  cli_print("custom operators: written once, tested, measured, and used in every model where they fit\n\n");
  for (const cli_command *const *v = cli_op_verbs; *v; v++) {
    cli_print("  hone %s%s%s\n", (*v)->name, *(*v)->arguments ? " " : "", (*v)->arguments);
    cli_print("      %s\n", (*v)->summary);
  }
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_END};
const cli_command cli_cmd_op = {
    "op",
    "[WHAT ARGUMENT...]",
    "make, test, measure and use custom operators",
    "`hone op` alone lists what there is to do, `hone op WHAT --help` tells the options of one.",
    options,
    0,
    0,
    run};
