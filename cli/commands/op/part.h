/* Nodes of a model, read for hone op new --from and for what hone op why proposes. */
#ifndef HONE_CLI_OP_PART_H
#define HONE_CLI_OP_PART_H

#include "cli/commands/op/from_parts.h"

#include <hone/hone.h>

typedef struct op_source {
  hone_model *bound, *optimized; /* optimized NULL: the passes refuse the model */
} op_source;

/* The model is not kept. Close it in any case. */
hone_status op_source_open(hone_model *model, op_source *out, hone_error *error);
void op_source_close(op_source *source);
/* Files of the operator `op` (files and functions: `name`) that computes what the nodes compute. */
hone_status op_part_read(const op_source *source, const char *const *nodes, uint32_t n, const char *name,
                         const char *op, op_from *out, hone_error *error);
void op_from_drop(op_from *from);

#endif
