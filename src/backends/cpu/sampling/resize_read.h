/* What a Resize or Upsample step means, where its scales or sizes are constant. */
#ifndef HN_CPU_SAMPLING_RESIZE_READ_H
#define HN_CPU_SAMPLING_RESIZE_READ_H

#include "backends/cpu/step/step.h"
#include "model/ops/sampling/resample.h"

/* False with a reason: sizes are not known, do not fit the output, or something follows in the step. */
bool hn_resize_read(const hone_step *step, hn_resize *resize, hone_reason *why);

#endif
