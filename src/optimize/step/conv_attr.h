/* The attributes of Conv and ConvTranspose with their defaults resolved, always as three spatial dimensions.
 */
#ifndef HN_OPTIMIZE_STEP_CONV_ATTR_H
#define HN_OPTIMIZE_STEP_CONV_ATTR_H

#include "optimize/step/pixels.h"

typedef struct hn_conv_attr {
  hn_pixels x, y;
  int64_t groups, cin, cout;                         /* cin, cout: of one group */
  int64_t kernel[3], stride[3], dilation[3], pad[3]; /* pad: at the begin of each dimension */
} hn_conv_attr;

/* Conv: x channels-last, weights [groups * cout, cin, kernel...], constant or not.  False with a reason
 * otherwise.  Data types are for the caller to look at. */
bool hn_conv_attr_of(const hone_step *s, hn_conv_attr *a, hone_reason *why);

/* One slice makes one slice, by one tap of depth that finds it (not padding beside it). */
static inline bool hn_conv_is_picture(const hn_conv_attr *a) {
  return a->x.size[0] == 1 && a->y.size[0] == 1 && a->kernel[0] == 1 && a->pad[0] == 0;
}

/* Where a volume's convolution is one of pictures, it becomes that: of every slice by itself, or along the
 * slices alone (each slice is a row then). Of densely stored tensors. */
void hn_conv_attr_flatten(hn_conv_attr *a);

/* ConvTranspose: constant weights [groups * cin, cout, kernel...]. */
bool hn_conv_transpose_attr_of(const hone_step *s, hn_conv_attr *a, hone_reason *why);

#endif
