/* Lists of integers that say what a step's anchor does, and axes. */
#ifndef HN_OPTIMIZE_STEP_AXES_H
#define HN_OPTIMIZE_STEP_AXES_H

#include <hone/plugin.h>

/* The list `name`: an attribute (old opsets), else the anchor's constant input `index` of i32 or i64. *n is 0
 * where neither is there. False: it is there, but not constant. */
bool hn_step_ints(const hone_step *step, const char *name, uint32_t index, int64_t out[HONE_MAX_RANK],
                  int32_t *n);

/* An axis of a tensor of that rank, counted from its end where it is negative; false with a reason outside of
 * it. */
bool hn_step_axis(int64_t given, int32_t rank, int32_t *axis, hone_reason *why);

/* From the attribute "axes", else from the anchor's second input: bit i for axis i of input 0. None named:
 * all of them, unless noop_with_empty_axes. False with a reason where they are not known or lie outside the
 * rank. */
bool hn_step_axes(const hone_step *step, uint32_t *axes, hone_reason *why);

#endif
