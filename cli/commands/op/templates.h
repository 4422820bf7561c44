/* What hone op new writes. @NAME@ stands for the name of files and functions, @OP@ for the operator's. */
#ifndef HONE_CLI_OP_TEMPLATES_H
#define HONE_CLI_OP_TEMPLATES_H

typedef struct op_template {
  const char *file, *text; /* file NULL ends the list */
} op_template;

extern const op_template op_templates_elementwise[], op_templates_general[], op_templates_nodes[];

#endif
