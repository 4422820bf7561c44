/* Completion for fish. */
#include "cli/manual/manual.h"
#include "cli/manual/words.h"
#include "cli/terminal/term.h"

typedef struct target {
  FILE *out;
  const char *when; /* condition */
} target;

static void put_option(void *user, const cli_option *o) {
  const target *t = user;
  char words[200];
  cli_print_to(t->out, "complete -c hone -n '%s' -l %s", t->when, o->name);
  if (o->letter) cli_print_to(t->out, " -s %s", (const char[]){o->letter, 0});
  if (o->kind != CLI_FLAG) {
    cli_put(t->out, cli_value_is_file(o) ? " -rF" : " -x");
    if (cli_value_words(o, words, sizeof words)) cli_print_to(t->out, " -a '%s'", words);
  }
  cli_put(t->out, " -d '");
  cli_put_quoted(t->out, o->help, "\\");
  cli_put(t->out, "'\n");
}

/* A word that may stand there, and what it is. */
static void put_word(const target *t, const char *word, const char *about) {
  cli_print_to(t->out, "complete -c hone -n '%s' -f -a %s -d '", t->when, word);
  cli_put_quoted(t->out, about, "\\");
  cli_put(t->out, "'\n");
}

static void put_command(FILE *out, const cli_command *c, const char *when) {
  target t = {out, when};
  if (!cli_takes_files(c)) cli_print_to(out, "complete -c hone -n '%s' -f\n", when);
  cli_each_option(c, put_option, &t);
  if (c == cli_find("zoo"))
    for (uint32_t i = 0; i < hone_zoo_count(); i++) put_word(&t, hone_zoo_name(i), hone_zoo_about(i));
  if (c == cli_find("help"))
    for (const cli_command *const *k = cli_commands; *k; k++) put_word(&t, (*k)->name, (*k)->summary);
}

void cli_complete_fish(FILE *out) {
  char when[100];
  cli_put(out, "# Completion of hone for fish; hone help --format fish writes it.\n"
               "# The command, or its verb (__hone_is op new); hone MODEL is hone loop MODEL.\n"
               "function __hone_is\n"
               "    set -l words (commandline -opc)\n"
               "    test (count $words) -gt (count $argv); or return 1\n"
               "    for i in (seq (count $argv))\n"
               "        test $words[(math $i + 1)] = $argv[$i]; or return 1\n"
               "    end\n"
               "end\n"
               "function __hone_first\n"
               "    test (count (commandline -opc)) -eq 1\n"
               "end\n"
               "function __hone_loop\n"
               "    set -l words (commandline -opc)\n"
               "    test (count $words) -gt 1; and not contains -- $words[2]");
  for (const cli_command *const *c = cli_commands; *c; c++)
    if (*c != cli_find("loop")) cli_print_to(out, " %s", (*c)->name);
  cli_put(out, "\nend\n");
  target first = {out, "__hone_first"}, op = {out, "__hone_is op; and not __fish_seen_argument -s h -l help"};
  for (const cli_command *const *c = cli_commands; *c; c++) put_word(&first, (*c)->name, (*c)->summary);
  for (const cli_command *const *v = cli_op_verbs; *v; v++) put_word(&op, cli_verb_name(*v), (*v)->summary);
  for (const cli_command *const *c = cli_commands; *c; c++) {
    snprintf(when, sizeof when, "__hone_is %s", (*c)->name);
    put_command(out, *c, *c == cli_find("loop") ? "__hone_loop" : when);
  }
  for (const cli_command *const *v = cli_op_verbs; *v; v++) {
    snprintf(when, sizeof when, "__hone_is %s", (*v)->name);
    put_command(out, *v, when);
  }
}
