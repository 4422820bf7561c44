#include "backends/cpu/conv/grouped_shape.h"

#include "base/error.h"

bool hn_grouped_shape_of(const hn_conv_attr *a, hn_grouped_shape *g, hone_reason *why) {
  if (a->groups < 2 || (a->cin == 1 && a->cout == 1)) return hn_refuse(why, "one group, or depthwise");
  if (!hn_conv_is_picture(a)) return hn_refuse(why, "three spatial dimensions");
  if (a->groups * a->cin > INT32_MAX) return hn_refuse(why, "too many channels");
  g->batch = a->x.batch, g->groups = a->groups, g->cin = a->cin, g->cout = a->cout;
  for (int i = 0; i < 2; i++) {
    g->in[i] = a->x.size[i + 1], g->out[i] = a->y.size[i + 1], g->kernel[i] = a->kernel[i + 1];
    g->stride[i] = a->stride[i + 1], g->dilation[i] = a->dilation[i + 1], g->pad[i] = a->pad[i + 1];
  }
  g->in_batch = a->x.view.batch, g->in_row = a->x.view.row, g->in_pixel = a->x.view.pixel;
  g->y = a->y.view;
  return true;
}
