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

/* What hn_conv_attr_of said of a step and of its parts while tactics are asked about it one after the other:
 * each of them begins with it. Of these steps alone, which do not change meanwhile; copies are read anew. */
enum { HN_CONV_MEMO = 4 };
typedef struct hn_conv_memo {
  const hone_step *step[HN_CONV_MEMO];
  bool known[HN_CONV_MEMO];
  uint32_t n;
  hn_conv_attr attr[HN_CONV_MEMO];
} hn_conv_memo;
/* From here to the end the calling thread uses this memo; begin gives the one before, which end takes. */
hn_conv_memo *hn_conv_memo_begin(hn_conv_memo *memo, const hone_step *s);
void hn_conv_memo_end(hn_conv_memo *before);

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
