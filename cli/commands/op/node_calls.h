/* Nodes of ONNX as calls of hone/nodes.h. */
#ifndef HONE_CLI_OP_NODE_CALLS_H
#define HONE_CLI_OP_NODE_CALLS_H

#include "cli/commands/op/text.h"

/* An operand of the operator: it comes from outside, and is neither a number nor a list of axes or sizes. */
bool op_is_operand(const hone_subgraph_value *v);
/* A list of axes or sizes, which is part of what is computed. */
bool op_is_list(const hone_subgraph_value *v);
/* Lines that compute node k. NULL, or why it cannot be written down. */
const char *op_put_node(const hone_subgraph *part, uint32_t k, op_text *out);

#endif
