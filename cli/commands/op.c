/* hone op: custom operators, from a definition to a plugin that is used. */
#include "cli/commands/op/verb.h"
#include "cli/terminal/term.h"

#include <string.h>

#define VERB(name) extern const op_verb cli_op_##name;
#include "cli/commands/op/verbs.def"
#undef VERB

static const op_verb *const verbs[] = {
#define VERB(name) &cli_op_##name,
#include "cli/commands/op/verbs.def"
#undef VERB
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static int unknown(const char *word) {
  const char *names[VERBS];
  for (size_t i = 0; i < VERBS; i++) names[i] = verbs[i]->name;
  const char *near = cli_nearest(word, names, VERBS);
  return near ? cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s'; did you mean '%s'?", word, near)
              : cli_error(HONE_ERROR_USAGE, "hone op: there is no '%s' (hone op --help)", word);
}

static int overview(void) {
  cli_print("custom operators: written once, tested, measured, and used in every model where they fit\n\n");
  for (size_t i = 0; i < VERBS; i++) {
    cli_print("  hone op %s%s%s\n", verbs[i]->name, *verbs[i]->arguments ? " " : "", verbs[i]->arguments);
    cli_print("      %s\n", verbs[i]->about);
  }
  return cli_flush();
}

static int run(const cli_args *args) {
  const char *const *rest = args->rest.item;
  if (!args->rest.n) return overview();
  for (size_t i = 0; i < VERBS; i++) {
    const op_verb *v = verbs[i];
    const size_t n = args->rest.n - 1;
    if (strcmp(v->name, rest[0]) != 0) continue;
    if (n < v->min_rest)
      return cli_error(HONE_ERROR_USAGE, "hone op %s: missing argument; usage: hone op %s %s", v->name,
                       v->name, v->arguments);
    if (n > v->max_rest)
      return cli_error(HONE_ERROR_USAGE, "hone op %s: unexpected argument '%s'; usage: hone op %s %s",
                       v->name, rest[1 + v->max_rest], v->name, v->arguments);
    return v->run(args, rest + 1, n);
  }
  return unknown(rest[0]);
}

static const cli_option options[] = {
    {0, "output-dir", CLI_TEXT, CLI_FIELD(output_dir), "DIR",
     "new: where the folder is made (.); build: where the plugin is made (its folder's build)"},
    {0, "from", CLI_TEXT, CLI_FIELD(from), "MODEL",
     "new: the operator computes what nodes of this model compute"},
    {0, "nodes", CLI_TEXT, CLI_FIELD(nodes), "A,B,...", "new: their names, between commas"},
    {0, "general", CLI_FLAG, CLI_FIELD(general), NULL, "new: an operator that is not elementwise"},
    {0, "c-only", CLI_FLAG, CLI_FIELD(c_only), NULL,
     "build: write NAME_op.c and NAME_op.h, and compile nothing"},
    {'n', "runs", CLI_SOME, CLI_FIELD(runs), "N",
     "test: cases of each tactic, type and layout (100); bench, why: measured runs (50, 10)"},
    {'w', "warmup", CLI_COUNT, CLI_FIELD(warmup), "N", "bench, why: runs before that (3)"},
    {'i', "input", CLI_LIST, CLI_FIELD(inputs), "[NAME=]FILE",
     "why: an input file or number (seeded random)"},
    CLI_OPT_RUN,
    CLI_OPT_PASSES,
    CLI_OPT_QUIET,
    {0, "threshold", CLI_LIST, CLI_FIELD(thresholds), "NAME=X",
     "why: override one, such as min_gain=3 (diagnose --thresholds lists)"},
    {0, "filter", CLI_TEXT, CLI_FIELD(filter), "TACTIC", "test: this tactic alone"},
    {0, "case", CLI_COUNT, CLI_FIELD(at_case), "N", "test: this case alone"},
    {0, "markdown", CLI_TEXT, CLI_FIELD(markdown), "FILE", "bench: the table as Markdown"},
    CLI_OPT_VERBOSE,
    CLI_OPT_JSON,
    CLI_OPT_HELP,
    CLI_END};
const cli_command cli_cmd_op = {"op",
                                "[WHAT ARGUMENT...]",
                                "make, test, measure and use custom operators",
                                "`hone op` alone lists what there is to do.",
                                options,
                                0,
                                16,
                                run};
