/* Values of inputs. */
#ifndef HONE_CLI_OP_VALUES_H
#define HONE_CLI_OP_VALUES_H

#include "cli/op/sample.h"

/* All elements of a dense tensor. */
void op_fill(op_random *r, op_values kind, const hone_tensor *t);

#endif
