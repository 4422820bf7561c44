/* A sample as a model of one node, on an accelerator: its tactics are run in a plan, not alone. */
#ifndef HONE_CLI_OP_DEVICE_H
#define HONE_CLI_OP_DEVICE_H

#include "cli/op/sample.h"

typedef struct op_device_run {
  hone_plan *plan;
  hone_context *context;
  const hone_tensor *in[OP_MOST];
} op_device_run;

/* Constants of the sample are constants of the model where they can be written down: finite and not too many.
 * HONE_ERROR_UNSUPPORTED: the plan has not this tactic; says why. Free it in any case. */
hone_status op_device_make(hone_engine *engine, const op_sample *sample, const char *tactic,
                           op_device_run *out, hone_error *error);
void op_device_free(op_device_run *run);

#endif
