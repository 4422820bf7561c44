/* Denormal numbers (below 2^-126) in products. Processors compute with them in microcode, some 150 cycles an
 * instruction, and trained weights hold many where regularisation drove whole channels towards zero. From
 * level 2 on (HONE_MATH_F32) products count them as zero, as tensor units and most accelerators do. */
#ifndef HN_OPTIMIZE_STEP_DENORMALS_H
#define HN_OPTIMIZE_STEP_DENORMALS_H

#include <hone/plugin.h>

/* Percent of a product's constant f32 weights that are denormal. Negative: no product, or no such weights. */
double hn_denormal_weights(const hone_step *step);

/* May the step count denormals as zero? A product, or a chain of them, under that licence. */
bool hn_step_flushes(const hone_step *step);

#endif
