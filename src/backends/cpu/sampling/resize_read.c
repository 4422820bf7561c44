#include "backends/cpu/sampling/resize_read.h"

#include "backends/tactic.h"

bool hn_resize_read(const hone_step *step, hn_resize *resize, hone_reason *why) {
  const hone_tensor_desc *input[4] = {NULL}, *x = &step->input[0].desc, *y = &step->output[0].desc;
  hone_tensor tensor[4];
  const hone_tensor *value[4] = {NULL};
  hone_error error = {0};
  bool known = false;
  if (!hone_desc_known(x) || !hone_desc_known(y)) return hn_refuse(why, "dimensions are not known");
  if (step->n_epilogue) return hn_refuse(why, "a resize has no epilogue");
  const uint32_t n = step->n_anchor_inputs < 4 ? step->n_anchor_inputs : 4;
  for (uint32_t i = 0; i < n; i++) {
    if (!hn_step_has(step, i)) continue;
    tensor[i] = (hone_tensor){step->input[i].desc, (void *)(uintptr_t)step->input[i].constant};
    input[i] = &tensor[i].desc;
    if (step->input[i].constant) value[i] = &tensor[i];
  }
  if (hn_resize_init(resize, step->node, input, value, n, &known, &error))
    return hn_refuse(why, "%.140s", error.what);
  if (!known) return hn_refuse(why, "scales or sizes are not constant");
  for (int32_t i = 0; i < x->rank; i++)
    if (resize->out[i] != y->dim[i]) return hn_refuse(why, "the output's dimension %d does not fit", (int)i);
  if (hone_desc_count(x) == 0) return hn_refuse(why, "an empty input");
  return true;
}
