/* Values of inputs. */
#ifndef HONE_CLI_OP_VALUES_H
#define HONE_CLI_OP_VALUES_H

#include "cli/op/random.h"

#include <hone/tensor.h>

typedef enum op_values {
  OP_NORMAL = 0, /* around 1 */
  OP_SMALL,      /* small whole numbers */
  OP_WIDE,       /* of very different sizes */
  OP_SPECIAL,    /* normal ones with NaN, infinities and both zeros between them */
  OP_DENORMAL,   /* below the smallest normal number, and it */
  OP_EXTREME,    /* the largest and the smallest numbers */
  OP_VALUES
} op_values;
const char *op_values_name(op_values v);

/* All elements of a dense tensor. */
void op_fill(op_random *r, op_values kind, const hone_tensor *t);

#endif
