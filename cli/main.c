/* hone: finds the command and runs it. */
#include "cli/terminal/interrupts.h"
#include "cli/terminal/memory.h"
#include "cli/options/options.h"
#include "cli/options/plugins.h"
#include "cli/terminal/term.h"

#include <string.h>
#include <sys/stat.h>

#define COMMAND(name) extern const cli_command cli_cmd_##name;
#include "cli/commands.def"
#undef COMMAND

const cli_command *const cli_commands[] = {
#define COMMAND(name) &cli_cmd_##name,
#include "cli/commands.def"

#include <stdio.h>
#undef COMMAND
    NULL};

/* `hone MODEL.onnx` is short for `hone loop MODEL.onnx`. */
static bool looks_like_model(const char *word) {
  struct stat st;
  if (word[0] == '-') return false;
  /* No command has a dot or a slash: a name that has one is a file's, also where it is mistyped. */
  return strncmp(word, "zoo:", 4) == 0 || strpbrk(word, "./") || stat(word, &st) == 0;
}

/* "hone op new ...": the verb is a command, and leaves the words. */
static int find_verb(const cli_command **command, int argc, char **argv, int *first) {
  const char *names[32];
  size_t n = 0;
  int at;
  const cli_command *verb = cli_op_verb(argc - *first, argv + *first, &at);
  if (at < 0) return 0;
  const char *word = argv[*first + at];
  if (!verb) {
    for (const cli_command *const *v = cli_op_verbs; *v && n < 32; v++)
      names[n++] = (*v)->name + strlen("op ");
    const char *near = cli_nearest(word, names, n);
    return near ? cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s'; did you mean '%s'?", word, near)
                : cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s' (hone op --help)", word);
  }
  *command = verb;
  for (int i = *first + at; i > *first; i--) argv[i] = argv[i - 1];
  ++*first;
  return 0;
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) {
    cli_print_overview(stderr);
    return 2;
  }
  const char *word = argv[1];
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    cli_print_overview(stdout);
    return cli_flush();
  }
  if (strcmp(word, "--version") == 0) word = "version";
  int first = 2;
  const cli_command *command = cli_find(word);
  if (!command) {
    bool model = false; /* options may stand before the model */
    for (int i = 1; i < argc && !model; i++) model = (i == 1 || word[0] == '-') && looks_like_model(argv[i]);
    if (model) {
      command = cli_find("loop");
      first = 1;
    }
  }
  if (!command && word[0] == '-') { /* hone --lang zh diagnose */
    const cli_command *meant = NULL;
    for (int i = 2; i < argc && !meant; i++) meant = cli_find(argv[i]);
    if (meant) return cli_options_first(meant);
    return cli_error(HONE_ERROR_USAGE, "'%s' is no command (hone help lists them)", word);
  }
  if (!command) {
    const char *near = cli_nearest_command(word);
    return near ? cli_error(HONE_ERROR_USAGE, "unknown command '%s'; did you mean '%s'?", word, near)
                : cli_error(HONE_ERROR_USAGE,
                            "unknown command '%s', and no file has that name (hone help lists the commands)",
                            word);
  }
  cli_args args;
  int code = command == &cli_cmd_op ? find_verb(&command, argc, argv, &first) : 0;
  if (code) return code;
  code = cli_parse(command, argc - first, argv + first, &args);
  if (code == 0 && args.help) {
    cli_print_help(command);
    code = cli_flush();
  } else if (code == 0) {
    /* Those that make operators, and the one that says what there is. */
    const bool before = strcmp(command->name, "op new") == 0 || strcmp(command->name, "op build") == 0 ||
                        strcmp(command->name, "op list") == 0;
    const bool works = command != &cli_cmd_help && command != &cli_cmd_version;
    hone_error error = {0};
    if (strcmp(command->name, "op test") == 0 || strcmp(command->name, "op bench") == 0)
      code = cli_plugin_folders(&args);
    if (works && code == 0 && hone_system_instructions(&error) != HONE_OK) code = cli_report(&error);
    if (works && code == 0) code = cli_load_plugins(&args, before);
    if (code == 0) code = command->run(&args);
  }
  cli_args_free(&args);
  return code;
}

int main(int argc, char **argv) {
  cli_signals(cli_progress_wipe);
  cli_memory();
  int code = dispatch(argc, argv);
  cli_progress_end();
  return code;
}
