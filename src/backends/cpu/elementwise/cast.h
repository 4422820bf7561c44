/* What casts of all types ask of their operands. */
#ifndef HN_CPU_ELEMENTWISE_CAST_H
#define HN_CPU_ELEMENTWISE_CAST_H

#include "backends/cpu/step/step.h"
#include "base/error.h"

/* One shape and one dense layout, without an epilogue. */
static inline bool hn_cast_takes(const hone_step *s, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  if (!hone_desc_known(x) || !hone_desc_same_dims(x, y) || x->layout != y->layout ||
      x->channel_pitch != y->channel_pitch)
    return hn_refuse(why, "input and output are not of one shape and layout");
  if (x->layout == HONE_LAYOUT_CHANNELS_LAST && x->channel_pitch != x->dim[1])
    return hn_refuse(why, "channels have gaps");
  return s->n_epilogue ? hn_refuse(why, "no epilogue") : true;
}

#endif
