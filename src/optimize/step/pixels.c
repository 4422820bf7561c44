#include "optimize/step/pixels.h"

#include <string.h>

bool hn_pixels_of(const hone_tensor_desc *d, hn_pixels *out) {
  if (d->rank < 3 || d->rank > 5 || !hone_desc_known(d)) return false;
  int lead = 5 - d->rank;
  int64_t stride[3] = {0};
  memset(out, 0, sizeof *out);
  out->batch = d->dim[0], out->channels = d->dim[1];
  for (int i = 0; i < 3; i++) out->size[i] = i < lead ? 1 : d->dim[2 + i - lead];
  if (d->dim[1] > 1 && d->stride[1] != 1) return false;
  /* The stride of a dimension of size 1 means nothing: give it the value that keeps the pixels even. */
  int64_t expected = d->dim[1];
  for (int i = 2; i >= 0; i--)
    if (out->size[i] != 1) {
      expected = d->stride[2 + i - lead];
      break;
    }
  if (d->layout == HONE_LAYOUT_CHANNELS_LAST && d->channel_pitch > expected &&
      out->size[0] * out->size[1] * out->size[2] == 1)
    expected = d->channel_pitch;
  out->even = true;
  for (int i = 2; i >= 0; i--) {
    bool one = out->size[i] == 1;
    stride[i] = one ? expected : d->stride[2 + i - lead];
    if (stride[i] != expected) out->even = false;
    expected = stride[i] * out->size[i];
  }
  if (stride[2] < out->channels) return false;
  out->view = (hn_view){out->batch == 1 ? expected : d->stride[0], stride[0], stride[1], stride[2]};
  return true;
}
