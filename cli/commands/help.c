/* hone help [COMMAND | passes] */
#include "cli/manual/manual.h"
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

/* man pages, completion, the page of the docs. */
static int formatted(const cli_args *args, const cli_command *c) {
  static const struct {
    const char *name;
    void (*write)(FILE *out);
  } shells[] = {{"bash", cli_complete_bash}, {"zsh", cli_complete_zsh}, {"fish", cli_complete_fish}};
  hone_error error = {0};
  const bool man = strcmp(args->format, "man") == 0, page = strcmp(args->format, "markdown") == 0;
  if (args->output_dir && !man)
    return cli_error(HONE_ERROR_USAGE, "hone help: --output-dir is for --format man");
  if (args->output_dir) return cli_man_folder(args->output_dir, &error) == HONE_OK ? 0 : cli_report(&error);
  if (man) {
    cli_man_page(stdout, c);
    return cli_flush();
  }
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (strcmp(args->format, shells[i].name) == 0) {
      shells[i].write(stdout);
      return cli_flush();
    }
  if (!page)
    return cli_error(HONE_ERROR_USAGE,
                     "hone help: there is no format '%s' (text, man, bash, zsh, fish, markdown)",
                     args->format);
  cli_options_page();
  return cli_flush();
}

static int run(const cli_args *args) {
  const bool text = !args->format || strcmp(args->format, "text") == 0;
  if (text && args->output_dir)
    return cli_error(HONE_ERROR_USAGE, "hone help: --output-dir is for --format man");
  if (!args->rest.n) {
    if (!text) return formatted(args, NULL);
    cli_print_overview(stdout);
    return cli_flush();
  }
  if (strcmp(args->rest.item[0], "passes") == 0) return passes();
  const cli_command *c = cli_find(args->rest.item[0]);
  if (!c) {
    const char *near = cli_nearest_command(args->rest.item[0]);
    return near ? cli_error(HONE_ERROR_USAGE, "unknown command '%s'; did you mean '%s'?", args->rest.item[0],
                            near)
                : cli_error(HONE_ERROR_USAGE, "unknown command '%s' (hone help lists the commands)",
                            args->rest.item[0]);
  }
  if (c == &cli_cmd_op && args->rest.n > 1) {
    int at;
    c = cli_op_verb(1, (char *[]){(char *)(uintptr_t)args->rest.item[1]}, &at);
    if (!c)
      return cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s' (hone op lists them)",
                       args->rest.item[1]);
  } else if (args->rest.n > 1)
    return cli_error(HONE_ERROR_USAGE, "hone %s has no parts: hone help %s", c->name, c->name);
  if (!text) return formatted(args, c);
  cli_print_help(c);
  return cli_flush();
}

static const cli_option options[] = {
    {0, "format", CLI_TEXT, CLI_FIELD(format), "text|man|bash|zsh|fish|markdown",
     "a man page, completion for a shell, or the page of all options (text)"},
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR", "--format man: all pages, into this folder"},
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_help = {
    "help",
    "[COMMAND | op WHAT | passes]",
    "tell what a command does, or what --passes may name",
    "eval \"$(hone help --format bash)\" completes commands and options in bash; hone help --format fish "
    ">~/.config/fish/completions/hone.fish does in fish, and hone help --format zsh >DIR/_hone in zsh, where "
    "DIR is of $fpath. make install and packages bring all of it.",
    options,
    0,
    2,
    run};
