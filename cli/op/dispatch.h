/* What a plan's step of a custom operator costs beside the operator's own work. */
#ifndef HONE_CLI_OP_DISPATCH_H
#define HONE_CLI_OP_DISPATCH_H

#include "cli/op/sample.h"
#include "cli/op/subject.h"

/* Microseconds, of a step of few elements; NaN: not known.
 *
 * On the CPU: what a run of the plan takes more than the tactic's own function.
 *
 * On an accelerator, outside of captured work: the host's time to give the step to the device, less what the
 * driver's function for launching kernels takes of it: what hone and the tactic's function add to a launch.
 * Captured work is launched as a whole, whosever its kernels are: there a custom step costs nothing. Of
 * tactics that launch by themselves alone (hone_cuda_stream) it is not known. */
double op_dispatch(const op_subject *s, const op_sample *like, const char *device);

#endif
