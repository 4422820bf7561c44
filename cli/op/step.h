/* A step of one operator, as a plan of hone's has it. */
#ifndef HONE_CLI_OP_STEP_H
#define HONE_CLI_OP_STEP_H

#include "cli/op/buffer.h"
#include "cli/op/sample.h"

typedef struct op_step {
  hone_step step;
  hone_step_tensor in[OP_MOST], out[OP_MOST];
  char anchor[300];
  op_buffer constant[OP_MOST]; /* bytes of constant inputs */
  uint32_t n_in, n_out;
} op_step;

/* The layout is that of input 0 and of the outputs, where they have three dimensions and more, and where the
 * operator says so of the other inputs. Not to be moved. Free it in any case. */
bool op_step_make(op_step *s, const op_sample *sample, hone_layout layout, hone_math math);
void op_step_free(op_step *s);
/* Elements in row-major order to where a descriptor has them, or back. */
void op_lay_out(const hone_tensor_desc *desc, const void *row_major, void *to);
void op_take_out(const hone_tensor_desc *desc, const void *from, void *row_major);

#endif
