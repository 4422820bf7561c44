/* InstanceNormalization: each channel of each image by its own mean and deviation; row-major and
 * channels-last. */
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels/norm/norm.h"
#include "backends/cpu/normalize/images.h"
#include "backends/tactic.h"
#include "base/error.h"
#include "base/fault.h"
#include "base/integers.h"

typedef struct blob_head {
  hn_images images;
  float eps;
} blob_head;

enum { BLOCK = 64 }; /* channels that one task of the channels-last form does */

static bool describe(const hone_step *s, const hone_machine *m, blob_head *h, hone_reason *why) {
  const hone_tensor_desc *x = &s->input[0].desc, *y = &s->output[0].desc;
  memset(h, 0, sizeof *h);
  if (!hn_step_is_f32(s, why)) return false;
  if (s->n_epilogue) return hn_refuse(why, "instance normalisation has no epilogue");
  if (x->rank < 3 || hone_desc_count(x) == 0 || !hone_desc_same_dims(x, y))
    return hn_refuse(why, "no image, or an empty one");
  if (!hn_images_of(s, m, &h->images, why)) return false;
  h->eps = hone_node_float(s->node, "epsilon", 1e-5f);
  if (hone_desc_count(&s->input[1].desc) != h->images.channels ||
      hone_desc_count(&s->input[2].desc) != h->images.channels)
    return hn_refuse(why, "scale and shift have not one value a channel");
  return true;
}

HN_DESCRIBED(blob_head)

static double cost(const hone_step *s, const hone_machine *m) {
  const double n = (double)hone_desc_count(&s->input[0].desc);
  return hn_step_seconds(m, 12 * n, 16 * n, 0.5);
}

static void plane_task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->images.isa);
  const int64_t c = HN_FAULT("instance_norm_channel") ? 0 : index % h->images.channels,
                at = index * h->images.pixels;
  float mean, var;
  (void)thread;
  ops->stats((const float *)r->in[0] + at, (size_t)h->images.pixels, &mean, &var);
  const float scale = ((const float *)r->in[1])[c] / sqrtf(var + h->eps);
  ops->affine((float *)r->out[0] + at, (const float *)r->in[0] + at, (size_t)h->images.pixels, mean, scale,
              ((const float *)r->in[2])[c]);
}

static void block_task(void *arg, int64_t index, uint32_t thread) {
  const hone_step_run *r = arg;
  const blob_head *h = r->blob;
  const struct hn_norm_ops *ops = hn_norm_find(h->images.isa);
  const int64_t blocks = hn_div_up(h->images.channels, BLOCK), n = index / blocks, c = index % blocks * BLOCK;
  const size_t count = (size_t)(h->images.channels - c < BLOCK ? h->images.channels - c : BLOCK);
  const float *x = (const float *)r->in[0] + n * h->images.image_x + c, *gamma = (const float *)r->in[1] + c;
  float mean[BLOCK], scale[BLOCK];
  (void)thread;
  ops->column_stats(x, (size_t)h->images.pixels, count, (ptrdiff_t)h->images.pixel_x, mean, scale);
  for (size_t i = 0; i < count; i++) scale[i] = gamma[i] / sqrtf(scale[i] + h->eps);
  ops->column_affine((float *)r->out[0] + n * h->images.image_y + c, (ptrdiff_t)h->images.pixel_y, x,
                     (ptrdiff_t)h->images.pixel_x, (size_t)h->images.pixels, count, mean, scale,
                     (const float *)r->in[2] + c);
}

static hone_status run(const hone_step_run *r, hone_error *error) {
  const blob_head *h = r->blob;
  (void)error;
  if (h->images.channels_last)
    r->parallel(r->pool, h->images.batch * hn_div_up(h->images.channels, BLOCK), block_task,
                (void *)(uintptr_t)r);
  else
    r->parallel(r->pool, h->images.batch * h->images.channels, plane_task, (void *)(uintptr_t)r);
  return HONE_OK;
}

HN_TACTIC(cpu, instance_norm, "InstanceNormalization", 1, .accepts = accepts, .cost = cost, .need = need,
          .prepack = prepack, .run = run);
