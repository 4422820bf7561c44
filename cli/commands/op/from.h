/* hone op new --from: an operator out of some nodes of a model. */
#ifndef HONE_CLI_OP_FROM_H
#define HONE_CLI_OP_FROM_H

#include "cli/commands/op/from_parts.h"

/* `rewritten`: the same nodes as hone's passes leave them, which is what a pattern meets in a plan; NULL: not
 * known. Definition, reference and kernels of the operator `op` (files and functions: `name`) that computes
 * what the nodes compute. HONE_ERROR_UNSUPPORTED names the node that hone cannot write down. Free the texts.
 */
hone_status op_from_part(const hone_subgraph *part, const hone_subgraph *rewritten, const char *name,
                         const char *op, op_from *out, hone_error *error);

#endif
