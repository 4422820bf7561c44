#include "backends/cpu/normalize/images.h"

#include "base/error.h"

bool hn_images_of(const hone_step *s, const hone_machine *m, hn_images *out, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  hn_pixels px, py;
  if (x->layout != y->layout) return hn_refuse(why, "input and output differ in layout");
  out->isa = hn_isa_of(m->isa);
  out->batch = x->dim[0], out->channels = x->dim[1];
  out->pixels = hone_desc_count(x) / (out->batch * out->channels);
  if (x->layout == HONE_LAYOUT_ROW_MAJOR) return true;
  out->channels_last = true;
  if (!hn_pixels_of(x, &px) || !hn_pixels_of(y, &py) || !px.even || !py.even)
    return hn_refuse(why, "pixels are not evenly spaced");
  out->image_x = px.view.batch, out->pixel_x = px.view.pixel;
  out->image_y = py.view.batch, out->pixel_y = py.view.pixel;
  return true;
}
