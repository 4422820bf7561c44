/* The axes that a step's anchor reduces. */
#ifndef HN_OPTIMIZE_STEP_AXES_H
#define HN_OPTIMIZE_STEP_AXES_H

#include <hone/plugin.h>

/* From the attribute "axes", else from the anchor's second input: bit i for axis i of input 0. None named:
 * all of them, unless noop_with_empty_axes. False with a reason where they are not known or lie outside the
 * rank. */
bool hn_step_axes(const hone_step *step, uint32_t *axes, hone_reason *why);

#endif
