#include "base/dims.h"
#include "optimize/step/layout.h"

bool hn_layout_free(const hone_tensor_desc *d) {
  if (d->rank < 3 || !hone_desc_known(d)) return d->rank < 3;
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch != d->dim[1]) return false;
  return hn_dims(d, 2, d->rank) == 1 || d->dim[1] == 1;
}
