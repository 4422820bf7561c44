/* Pointwise programs as device text: registers become variables. */
#ifndef HN_CUDA_STEP_PROGRAM_H
#define HN_CUDA_STEP_PROGRAM_H

#include <hone/plugin.h>

#include "base/str.h"

/* Whether all of the step's program can be written. */
bool hn_cuda_program_accepts(const hone_step *s, hone_reason *why);

/* Statements that set o0, o1... (the outputs) from i0, i1... (the inputs), on elements' values as
 * device/elements.cuh has them. */
void hn_cuda_program(const hone_step *s, hn_str *text);

#endif
