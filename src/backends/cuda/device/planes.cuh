/* Images of up to HN_CHANNELS channels: planes to pixels (HN_TO_PIXELS) or back, a thread a pixel. Planes are
 * read and written by neighbouring threads side by side, pixels in one vector. Prefix: HN_FROM, HN_TO (element
 * types), HN_PLANE_SIZE and HN_PIXEL_SIZE (bytes of an element on either side), HN_CHANNELS (of a pixel's
 * pitch), HN_TO_PIXELS 0 or 1. */
#include "elements.cuh"
#include "divide.cuh"
#include "moves_args.h"

enum { HN_PIXELS_EACH = 4 };

HN_KERNEL(planes, hn_planes_args, a) {
  const u32 image = hn_quotient(blockIdx.x, &a.groups);
  const u32 first = (blockIdx.x - image * a.groups.by) * (blockDim.x * HN_PIXELS_EACH) + threadIdx.x;
  HN_GRID_GO();
  HN_GRID_WAIT();
#if HN_TO_PIXELS
  const char *from = (const char *)a.from + image * a.image_planes * HN_PLANE_SIZE;
  char *to = (char *)a.to + image * a.image_pixels * HN_PIXEL_SIZE;
  HN_PASTE(hn_value_, HN_TO) x[HN_PIXELS_EACH][HN_CHANNELS];
  HN_UNROLL for (int e = 0; e < HN_PIXELS_EACH; e++) {
    const u32 p = first + (u32)e * blockDim.x;
    HN_UNROLL for (int c = 0; c < HN_CHANNELS; c++)
      x[e][c] = p < a.pixels && c < (int)a.channels ? HN_PASTE(hn_get_, HN_FROM)(from, c * a.plane + p) : 0;
  }
  HN_UNROLL for (int e = 0; e < HN_PIXELS_EACH; e++) {
    const u32 p = first + (u32)e * blockDim.x;
    u32 w[(HN_CHANNELS * HN_PIXEL_SIZE + 3) / 4];
    HN_PASTE(hn_pack_, HN_TO)(w, x[e], HN_CHANNELS);
    if (p < a.pixels) hn_st_words(to + (i64)p * (HN_CHANNELS * HN_PIXEL_SIZE), w, HN_CHANNELS * HN_PIXEL_SIZE);
  }
#else
  const char *from = (const char *)a.from + image * a.image_pixels * HN_PIXEL_SIZE;
  char *to = (char *)a.to + image * a.image_planes * HN_PLANE_SIZE;
  u32 w[HN_PIXELS_EACH][(HN_CHANNELS * HN_PIXEL_SIZE + 3) / 4];
  HN_UNROLL for (int e = 0; e < HN_PIXELS_EACH; e++) {
    const u32 p = first + (u32)e * blockDim.x;
    if (p < a.pixels)
      hn_ld_words(w[e], from + (i64)p * (HN_CHANNELS * HN_PIXEL_SIZE), HN_CHANNELS * HN_PIXEL_SIZE);
  }
  HN_UNROLL for (int e = 0; e < HN_PIXELS_EACH; e++) {
    const u32 p = first + (u32)e * blockDim.x;
    HN_UNROLL for (int c = 0; c < HN_CHANNELS; c++)
      if (p < a.pixels && c < (int)a.channels)
        HN_PASTE(hn_put_, HN_TO)(to, c * a.plane + p, HN_PASTE(hn_word_, HN_FROM)(w[e], c));
  }
#endif
}
