/* Completion for zsh. */
#include "cli/manual/manual.h"
#include "cli/manual/words.h"
#include "cli/terminal/term.h"

/* An argument of _arguments: '(-b --batch)'{-b,--batch}'[help]:N:(words)'. */
static void put_option(void *user, const cli_option *o) {
  FILE *out = user;
  char words[200];
  cli_put(out, " \\\n      ");
  const char letter[2] = {o->letter, 0};
  if (o->kind == CLI_LIST)
    cli_put(out, "'*'");
  else if (o->letter)
    cli_print_to(out, "'(-%s --%s)'", letter, o->name);
  if (o->letter)
    cli_print_to(out, "{-%s,--%s}'[", letter, o->name);
  else
    cli_print_to(out, "'--%s[", o->name);
  cli_put_quoted(out, o->help, "[]\\:");
  cli_put(out, "]");
  if (o->kind != CLI_FLAG) {
    cli_put(out, ":");
    cli_put_quoted(out, o->value, "[]\\:");
    cli_put(out, ":");
    if (cli_value_is_file(o))
      cli_put(out, "_files");
    else if (cli_value_words(o, words, sizeof words))
      cli_print_to(out, "(%s)", words);
  }
  cli_put(out, "'");
}

static void put_command(FILE *out, const cli_command *c, const char *name) {
  cli_print_to(out, "  (%s)\n    _arguments", name);
  cli_each_option(c, put_option, out);
  if (cli_takes_model(c))
    cli_put(out, " \\\n      '*:model:_hone_model'");
  else if (cli_takes_files(c))
    cli_put(out, " \\\n      '*:file:_files'");
  else if (c == cli_find("zoo"))
    cli_put(out, " \\\n      '1:network:($networks)'");
  else if (c == cli_find("help"))
    cli_put(out, " \\\n      '1:command:($commands)'");
  cli_put(out, " ;;\n");
}

/* 'name:summary' lines of an array. */
static void put_described(FILE *out, const cli_command *const *list, bool verbs) {
  for (; *list; list++) {
    cli_print_to(out, "    '%s:", verbs ? cli_verb_name(*list) : (*list)->name);
    cli_put_quoted(out, (*list)->summary, "\\:");
    cli_put(out, "'\n");
  }
}

void cli_complete_zsh(FILE *out) {
  cli_put(out,
          "#compdef hone\n# Completion of hone for zsh; hone help --format zsh writes it.\n"
          "_hone_model() {\n"
          "  _alternative 'files:file:_files' \"networks:built-in network:(${networks/#/zoo\\\\:})\"\n}\n"
          "_hone_op() {\n  local -a described\n  described=(\n");
  put_described(out, cli_op_verbs, true);
  cli_put(out, "  )\n"
               "  if ((CURRENT == 2)); then _describe command described; return; fi\n"
               "  shift words; ((CURRENT--))\n"
               "  case $words[1] in\n");
  for (const cli_command *const *v = cli_op_verbs; *v; v++) put_command(out, *v, cli_verb_name(*v));
  cli_put(out, "  esac\n}\n"
               "_hone() {\n  local -a described commands networks\n  networks=(");
  for (uint32_t i = 0; i < hone_zoo_count(); i++) cli_print_to(out, "%s%s", i ? " " : "", hone_zoo_name(i));
  cli_put(out, ")\n  described=(\n");
  put_described(out, cli_commands, false);
  cli_put(out, "  )\n"
               "  commands=(${described%%:*})\n"
               "  if ((CURRENT == 2)); then _describe command described; _hone_model; return; fi\n"
               "  shift words; ((CURRENT--))\n"
               "  # hone MODEL\n"
               "  (($commands[(Ie)$words[1]])) || { words=(loop $words); ((CURRENT++)); }\n"
               "  case $words[1] in\n"
               "  (op) _hone_op ;;\n");
  for (const cli_command *const *c = cli_commands; *c; c++)
    if (*c != &cli_cmd_op) put_command(out, *c, (*c)->name);
  cli_put(out, "  esac\n}\n_hone \"$@\"\n");
}
