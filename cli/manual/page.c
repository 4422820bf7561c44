/* docs/reference/options.md: what `hone COMMAND --help` prints, for every command. */
#include "cli/manual/manual.h"
#include "cli/terminal/term.h"

static void section(const cli_command *c) {
  cli_print("\n## hone %s\n\n```\n", c->name);
  cli_print_help(c);
  cli_put(stdout, "```\n");
}

void cli_options_page(void) {
  cli_put(stdout,
          "# Commands and their options\n\n"
          "What `hone COMMAND --help` prints. `hone help --format markdown` writes this page and\n`--format "
          "man` the man pages; [commands](commands) has a page of examples a command.\n");
  for (const cli_command *const *c = cli_commands; *c; c++) {
    section(*c);
    for (const cli_command *const *v = cli_op_verbs; *c == &cli_cmd_op && *v; v++) section(*v);
  }
}
