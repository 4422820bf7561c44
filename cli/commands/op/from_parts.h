/* The files that hone op new --from writes. */
#ifndef HONE_CLI_OP_FROM_PARTS_H
#define HONE_CLI_OP_FROM_PARTS_H

#include "cli/commands/op/text.h"

typedef struct op_from {
  op_text json;
  op_text reference, cpu, cuda; /* of elementwise operators */
  op_text nodes;                /* of others: NAME_nodes.h; their kernel and reference are templates */
  uint32_t inputs;
} op_from;

#endif
