/* What `hone op` can do: VERB(name) of verbs.def is cli/commands/op/<name>.c with cli_op_<name>. */
#ifndef HONE_CLI_OP_VERB_H
#define HONE_CLI_OP_VERB_H

#include "cli/options/options.h"

typedef struct op_verb {
  const char *name, *arguments, *about;
  size_t min_rest, max_rest; /* arguments behind the verb */
  int (*run)(const cli_args *args, const char *const *rest, size_t n);
} op_verb;

#endif
