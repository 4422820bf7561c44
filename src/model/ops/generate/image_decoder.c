/* ImageDecoder: the bytes of a picture's file become its pixels, [height, width, 3] (1 for grey). */
#include "base/picture/picture.h"
#include "model/ops/common/op.h"

typedef enum pixels { PIXELS_RGB, PIXELS_BGR, PIXELS_GREY } pixels;

static hone_status pixels_of(const hone_node *node, pixels *out, hone_error *error) {
  static const char *const names[] = {"RGB", "BGR", "Grayscale"};
  const char *said = hone_node_string(node, "pixel_format", "RGB");
  for (int i = 0; i < 3; i++)
    if (strcmp(said, names[i]) == 0) return *out = (pixels)i, HONE_OK;
  return hn_op_bad(node, error, "pixel_format is '%.40s'; expected RGB, BGR or Grayscale", said);
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  pixels p = PIXELS_RGB;
  const hone_status s = pixels_of(io->node, &p, error);
  if (s) return s;
  hn_infer_set(io, 0, HONE_DTYPE_U8, 3,
               (int64_t[]){HONE_DIM_UNKNOWN, HONE_DIM_UNKNOWN, p == PIXELS_GREY ? 1 : 3});
  return HONE_OK;
}

/* Grey is the luma of ITU-R 601. */
static void write_pixels(pixels p, const hn_picture *picture, uint8_t *y) {
  for (int64_t i = 0, n = picture->width * picture->height; i < n; i++) {
    const uint8_t *c = picture->rgb + 3 * i;
    if (p == PIXELS_GREY)
      y[i] = (uint8_t)((19595u * c[0] + 38470u * c[1] + 7471u * c[2] + 0x8000u) >> 16);
    else
      for (int k = 0; k < 3; k++) y[3 * i + k] = c[p == PIXELS_BGR ? 2 - k : k];
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hn_arena arena = {0};
  hn_picture picture;
  pixels p = PIXELS_RGB;
  hone_status s = pixels_of(call->node, &p, error);
  if (!s) s = hn_picture_decode((hn_bytes){x->data, (size_t)hn_count(x)}, &arena, &picture, error);
  if (!s) {
    const hone_tensor_desc d =
        hone_desc(HONE_DTYPE_U8, 3, (int64_t[]){picture.height, picture.width, p == PIXELS_GREY ? 1 : 3});
    s = call->alloc_output(call, 0, &d, error);
  }
  if (!s) write_pixels(p, &picture, call->output[0]->data);
  hn_arena_free(&arena);
  return s;
}

static const hone_attr_desc attrs[] = {{.name = "pixel_format", .type = HONE_ATTR_STRING}, {0}};

HN_OP(image_decoder) = {HN_OP_HEAD,
                        .op_type = "ImageDecoder",
                        .since = 20,
                        .flags = HONE_OP_DATA_DEPENDENT,
                        HN_INPUTS(1, 1),
                        HN_OUTPUTS(1, 1),
                        .types = HONE_TYPES(HONE_DTYPE_U8),
                        .attrs = attrs,
                        .infer = infer,
                        .reference = reference};
