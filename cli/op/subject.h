/* Which operators a command is about. */
#ifndef HONE_CLI_OP_SUBJECT_H
#define HONE_CLI_OP_SUBJECT_H

#include "cli/op/sample.h"
#include "cli/options/options.h"

typedef struct op_subject {
  const char *plugin;
  const hone_plugin *of;
  const hone_op_desc *op;
  const hone_pattern_desc *pattern; /* the first that makes it, or NULL */
  char name[300];                   /* "domain.Type" */
} op_subject;

typedef struct op_subjects {
  op_subject *list;
  uint32_t n;
} op_subjects;

/* Operators of loaded plugins: of these names (a plugin's, "Swish", "domain.Swish"), or all. free() the list.
 * HONE_ERROR_USAGE: a name that nothing has; HONE_ERROR_MISSING: no operator at all. */
hone_status op_subjects_find(const char *const *names, size_t n, op_subjects *out, hone_error *error);
bool op_has_tactic(const op_subject *s, const hone_tactic_desc *tactic);
/* "x": as the pattern calls input i, else "x0", "x1"... */
const char *op_input_name(const op_subject *s, uint32_t i, char *buf, size_t size);
/* --shape NAME=DIMS: every input of the operator, in order. *n: 0 without any. */
hone_status op_shapes_given(const cli_args *args, const op_subject *s, op_shape *out, uint32_t *n,
                            hone_error *error);
/* Adds a word to a command, quoted for a shell; returns the new length (past size: cut). */
size_t op_word(const char *word, char *buf, size_t size, size_t n);
/* "--op-path D" for each that was given. */
size_t op_path_flags(const cli_args *args, char *buf, size_t size, size_t n);
/* What cost models and tactics know of this processor. */
hone_status op_machine(hone_machine *out, hone_error *error);

#endif
