/* hone op new --from: an elementwise operator out of some nodes of a model. */
#ifndef HONE_CLI_OP_FROM_H
#define HONE_CLI_OP_FROM_H

#include "cli/commands/op/text.h"

typedef struct op_from {
  op_text json, reference, cpu, cuda;
} op_from;

/* `rewritten`: the same nodes as hone's passes leave them, which is what a pattern meets in a plan; NULL: not
 * known. Definition, reference and kernels of the operator `op` (files and functions: `name`) that computes
 * what the nodes compute. HONE_ERROR_UNSUPPORTED names the node that is no elementwise function hone can
 * write down. Free the texts. */
hone_status op_from_part(const hone_subgraph *part, const hone_subgraph *rewritten, const char *name,
                         const char *op, op_from *out, hone_error *error);

#endif
