/* CropAndResize: a box of an image (corners as shares of height - 1 and width - 1), sampled at crop_size
 * places, the corners of the box among them. Places outside of the image give extrapolation_value. */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/images/crop.h"
#include "model/ops/microsoft/common/inner.h"

enum { X, ROIS, BATCH, SIZE };

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[X], *r = io->input[ROIS];
  const char *mode = hone_node_string(io->node, "mode", "bilinear");
  int64_t size[2] = {HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN}, given[2];
  if (strcmp(mode, "bilinear") != 0 && strcmp(mode, "nearest") != 0)
    return hn_op_bad(io->node, error, "mode is '%s'", mode);
  if ((x->rank >= 0 && x->rank != 4) || (r->rank >= 0 && (r->rank != 2 || hn_dims_differ(r->dim[1], 4))))
    return hn_op_bad(io->node, error, "expected 4 dimensions and boxes of 4 numbers");
  hone_status s = hn_infer_same_dtype(io, X, ROIS, error);
  if (!s) s = hn_infer_dtype_in(io, BATCH, HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_vector(io, BATCH, hn_dim(r, 0), error);
  if (!s) s = hn_infer_vector(io, SIZE, 2, error);
  if (s) return s;
  if (hn_infer_ints(io, SIZE, given, 2) == 2) {
    if (given[0] < 1 || given[1] < 1)
      return hn_op_bad(io->node, error, "crop_size is %lld x %lld", (long long)given[0], (long long)given[1]);
    size[0] = given[0], size[1] = given[1];
  }
  hn_infer_set(io, 0, x->dtype, 4, (const int64_t[]){hn_dim(r, 0), hn_dim(x, 1), size[0], size[1]});
  return HONE_OK;
}

typedef struct image {
  const float *at;
  int64_t height, width;
  float outside;
  bool nearest;
} image;

static float pixel(const image *m, float y, float x) {
  if (!(y >= 0 && y <= (float)(m->height - 1) && x >= 0 && x <= (float)(m->width - 1))) return m->outside;
  if (m->nearest) return m->at[(int64_t)roundf(y) * m->width + (int64_t)roundf(x)];
  const int64_t top = (int64_t)floorf(y), low = (int64_t)ceilf(y), left = (int64_t)floorf(x),
                right = (int64_t)ceilf(x);
  const float dy = y - (float)top, dx = x - (float)left;
  const float *a = m->at + top * m->width, *b = m->at + low * m->width;
  const float upper = a[left] + (a[right] - a[left]) * dx, lower = b[left] + (b[right] - b[left]) * dx;
  return upper + (lower - upper) * dy;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[X];
  int64_t size[2];
  if (hn_tensor_ints(call->input[SIZE], size, 2) != 2 || size[0] < 1 || size[1] < 1)
    return hn_op_bad(call->node, error, "crop_size is not two positive numbers");
  const int64_t channels = x->desc.dim[1], h = x->desc.dim[2], w = x->desc.dim[3],
                boxes = call->input[ROIS]->desc.dim[0];
  const hone_tensor_desc d =
      hone_desc(x->desc.dtype, 4, (const int64_t[]){boxes, channels, size[0], size[1]});
  hone_status s = call->output[0]->data ? HONE_OK : call->alloc_output(call, 0, &d, error);
  if (s || hone_desc_count(&d) == 0) return s;
  if (h < 1 || w < 1) return hn_op_bad(call->node, error, "the images are empty");
  const float *all = hn_all_f32(call, x, error),
              *box = all ? hn_all_f32(call, call->input[ROIS], error) : NULL, *end = box;
  float *row = box ? hn_scratch(call, size[1], sizeof *row, error) : NULL;
  if (!row) return HONE_ERROR_MEMORY;
  image m = {.height = h,
             .width = w,
             .outside = hone_node_float(call->node, "extrapolation_value", 0),
             .nearest = strcmp(hone_node_string(call->node, "mode", "bilinear"), "nearest") == 0};
  for (int64_t b = 0; b < boxes; b++, end += 4) {
    const int64_t image_at = hn_get_i64(call->input[BATCH], b);
    if (image_at < 0 || image_at >= x->desc.dim[0])
      return hn_op_bad(call->node, error, "box %lld is of image %lld of %lld", (long long)b,
                       (long long)image_at, (long long)x->desc.dim[0]);
    if ((s = hn_call_check(call, error))) return s;
    for (int64_t c = 0; c < channels; c++)
      for (int64_t i = 0; i < size[0]; i++) {
        m.at = all + (image_at * channels + c) * h * w;
        for (int64_t k = 0; k < size[1]; k++)
          row[k] = pixel(&m, hn_crop_place(end[0], end[2], i, size[0], h),
                         hn_crop_place(end[1], end[3], k, size[1], w));
        hone_tensor *y = call->output[0];
        hn_write_f32(y->data, y->desc.dtype, ((b * channels + c) * size[0] + i) * size[1], row, size[1]);
      }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "mode", .type = HONE_ATTR_STRING},
                                       {.name = "extrapolation_value", .type = HONE_ATTR_FLOAT},
                                       {0}};

HN_OP(crop_and_resize) = {HONE_DESC_HEAD(hone_op_desc),
                          .domain = "com.microsoft",
                          .op_type = "CropAndResize",
                          .since = 1,
                          HN_INPUTS(4, 4),
                          HN_OUTPUTS(1, 1),
                          .types = HN_TYPES_FLOAT,
                          .attrs = attrs,
                          .infer = infer,
                          .reference = reference,
                          .host_inputs = 1u << SIZE};
