/* Completion for bash. */
#include "cli/manual/manual.h"
#include "cli/manual/words.h"
#include "cli/terminal/term.h"

static void put_name(void *out, const cli_option *o) { cli_print_to(out, "--%s ", o->name); }

/* A line of `case $prev in`. */
static void put_value(void *out, const cli_option *o) {
  char words[200];
  if (o->kind == CLI_FLAG) return;
  cli_put(out, "    ");
  if (o->letter) cli_put(out, (const char[]){'-', o->letter, '|', 0});
  cli_print_to(out, "--%s) ", o->name);
  const size_t n = cli_value_words(o, words, sizeof words);
  if (n) cli_print_to(out, "words='%s' ", words);
  cli_print_to(out, "what=%s ;;\n", cli_value_is_file(o) ? "file" : "value");
}

static void put_command(FILE *out, const cli_command *c) {
  cli_print_to(out, "  '%s')\n    options='", c->name);
  cli_each_option(c, put_name, out);
  cli_print_to(out, "' what=%s\n    case $prev in\n",
               cli_takes_model(c)   ? "model"
               : cli_takes_files(c) ? "file"
                                    : "none");
  cli_each_option(c, put_value, out);
  cli_put(out, "    esac ;;\n");
}

static void put_list(FILE *out, const cli_command *const *list, bool verbs) {
  for (; *list; list++) cli_print_to(out, "%s ", verbs ? cli_verb_name(*list) : (*list)->name);
}

void cli_complete_bash(FILE *out) {
  cli_put(out, "# Completion of hone for bash; hone help --format bash writes it.\n"
               "_hone() {\n"
               "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= i options= "
               "words= what=none\n  local commands='");
  put_list(out, cli_commands, false);
  cli_put(out, "' verbs='");
  put_list(out, cli_op_verbs, true);
  cli_put(out, "' networks='");
  for (uint32_t i = 0; i < hone_zoo_count(); i++) cli_print_to(out, "%s ", hone_zoo_name(i));
  cli_put(out,
          "'\n"
          "  COMPREPLY=()\n"
          "  # A colon separates words: zoo, :, NAME\n"
          "  if [[ $prev = zoo && $cur = : ]]; then COMPREPLY=($(compgen -W \"$networks\")); return; fi\n"
          "  if [[ $prev = : && ${COMP_WORDS[COMP_CWORD-2]} = zoo ]]; then\n"
          "    COMPREPLY=($(compgen -W \"$networks\" -- \"$cur\")); return\n"
          "  fi\n"
          "  if ((COMP_CWORD > 1)); then\n"
          "    command=${COMP_WORDS[1]}\n"
          "    if [[ $command = op ]]; then\n"
          "      if ((COMP_CWORD == 2)); then COMPREPLY=($(compgen -W \"$verbs --help\" -- \"$cur\")); "
          "return; fi\n"
          "      command=\"op ${COMP_WORDS[2]}\"\n"
          "    elif [[ \" $commands \" != *\" $command \"* ]]; then\n"
          "      command=loop # hone MODEL\n"
          "    fi\n"
          "  fi\n"
          "  case $command in\n"
          "  '') options='--help --version' words=$commands what=model ;;\n");
  for (const cli_command *const *c = cli_commands; *c; c++) put_command(out, *c);
  for (const cli_command *const *v = cli_op_verbs; *v; v++) put_command(out, *v);
  cli_put(out, "  esac\n"
               "  if [[ $cur = -* && $what != value ]]; then words=$options what=none; fi\n"
               "  [[ $command = zoo ]] && words=$networks\n"
               "  [[ $command = help && $cur != -* && $what = none ]] && words=\"$commands passes\"\n"
               "  [[ $what = model && -n $cur && zoo: = \"$cur\"* ]] && words+=' zoo:'\n"
               "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
               "  if [[ $what = file || $what = model ]]; then\n"
               "    compopt -o filenames 2>/dev/null\n"
               "    COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
               "  fi\n"
               "  [[ ${COMPREPLY[0]} = zoo: ]] && compopt -o nospace 2>/dev/null\n"
               "  return 0\n"
               "}\n"
               "complete -F _hone hone\n");
}
