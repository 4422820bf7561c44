/* What an operator's reference says of a sample. */
#ifndef HONE_CLI_OP_REFERENCE_H
#define HONE_CLI_OP_REFERENCE_H

#include "cli/op/sample.h"

/* Outputs [n_out], to be freed by op_outputs_free; data NULL where not wanted. dtype F64: its floats are
 * widened first; NONE: as they are. nudge: every float of the inputs is moved by this share of itself, up or
 * down. */
hone_status op_reference(const op_sample *sample, hone_dtype dtype, double nudge, op_random *r,
                         hone_tensor *out, hone_error *error);
void op_outputs_free(hone_tensor *out, uint32_t n);

#endif
