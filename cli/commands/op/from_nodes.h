/* hone op new --from, of nodes that are not all elementwise: a general operator that computes them one by
 * one. */
#ifndef HONE_CLI_OP_FROM_NODES_H
#define HONE_CLI_OP_FROM_NODES_H

#include "cli/commands/op/from_parts.h"

/* As op_from_part. */
hone_status op_from_nodes(const hone_subgraph *part, const hone_subgraph *rewritten, const char *name,
                          const char *op, op_from *out, hone_error *error);

#endif
