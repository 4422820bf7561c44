/* hone help [COMMAND | passes] */
#include "cli/options/options.h"
#include "cli/terminal/term.h"

#include <hone/model.h>
#include <stdio.h>
#include <string.h>

static void passes_of(bool fusions) {
  hone_pass_info p;
  for (uint32_t i = 0; hone_pass_at(i, &p); i++)
    if (p.fusion == fusions) cli_print("  %-24s level %d  %s\n", p.name, p.level, p.about);
}

/* What --passes may name. */
static int passes(void) {
  cli_print("--passes takes names and globs, comma-separated: NAME alone of its kind, -NAME all but it\n"
            "\ngraph passes, in this order:\n");
  passes_of(false);
  cli_print("\nfusions of lowering:\n");
  passes_of(true);
  return cli_flush();
}

static int run(const cli_args *args) {
  if (!args->rest.n) {
    cli_print_overview(stdout);
    return cli_flush();
  }
  if (strcmp(args->rest.item[0], "passes") == 0) return passes();
  const cli_command *c = cli_find(args->rest.item[0]);
  if (!c) {
    const char *near = cli_nearest_command(args->rest.item[0]);
    return cli_error(HONE_ERROR_USAGE, "unknown command '%s'%s%s%s", args->rest.item[0],
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  if (c == &cli_cmd_op && args->rest.n > 1) {
    int at;
    c = cli_op_verb(1, (char *[]){(char *)(uintptr_t)args->rest.item[1]}, &at);
    if (!c)
      return cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s' (hone op lists them)",
                       args->rest.item[1]);
  } else if (args->rest.n > 1)
    return cli_error(HONE_ERROR_USAGE, "hone %s has no parts: hone help %s", c->name, c->name);
  cli_print_help(c);
  return cli_flush();
}

static const cli_option options[] = {CLI_OPT_HELP, CLI_END};
const cli_command cli_cmd_help = {"help",
                                  "[COMMAND | op WHAT | passes]",
                                  "tell what a command does, or what --passes may name",
                                  NULL,
                                  options,
                                  0,
                                  2,
                                  run};
