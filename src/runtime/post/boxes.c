/* The public side of decoding boxes. */
#include "runtime/post/decode.h"
#include "runtime/post/post.h"

#include <math.h>

hone_status hone_post_boxes(const hone_tensor *const *out, const char *const *names, uint32_t n, int64_t rows,
                            int64_t row, uint32_t classes, const hone_picture_map *map,
                            const hone_boxes_options *options, hone_boxes *boxes, hone_error *error) {
  static const hone_boxes_options usual = {0};
  /* No picture: any size, and a pixel of it is one of the tensor. */
  static const hone_picture_map as_is = {.width = INT64_MAX / 2,
                                         .height = INT64_MAX / 2,
                                         .tensor_width = 1,
                                         .tensor_height = 1,
                                         .dx = 1,
                                         .dy = 1};
  if (!out || !names || !boxes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_boxes: out, names and boxes may not be NULL");
  *boxes = (hone_boxes){0};
  if (rows < 1 || row < 0 || row >= rows)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_boxes: there are %lld samples, and no sample %lld",
                   (long long)rows, (long long)row);
  hone_status status = HONE_OK;
  for (uint32_t i = 0; status == HONE_OK && i < n; i++)
    status = hn_post_check("hone_post_boxes", out[i], error);
  hn_decoder decoder;
  hn_detections found = {0};
  if (status == HONE_OK)
    status = hn_decode_find(options ? options : &usual, out, names, n, rows, classes, &decoder, error);
  if (status == HONE_OK) status = hn_decode_row(&decoder, out, row, map ? map : &as_is, &found, error);
  if (status != HONE_OK) {
    hn_vec_free(&found);
    return status;
  }
  *boxes = (hone_boxes){found.ptr, (uint32_t)found.len};
  return HONE_OK;
}

void hone_boxes_free(hone_boxes *boxes) {
  if (!boxes) return;
  hn_free(boxes->box);
  *boxes = (hone_boxes){0};
}

hone_status hone_post_suppress(hone_detection *boxes, uint32_t *n, double iou, hone_error *error) {
  if (!n || !boxes)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_post_suppress: boxes and n may not be NULL");
  hn_detections list = {.ptr = boxes, .len = *n, .cap = *n};
  hn_suppress(&list, iou);
  *n = (uint32_t)list.len;
  return HONE_OK;
}
