/* PNG through libpng's simplified interface, which turns every fault into one message. */
#include "base/picture/picture.h"

#include "base/error.h"
#include "base/late/late.h"
#include "base/late/png.h"
#include "base/mem.h"

#include <string.h>

hone_status hn_png_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  hone_status status = hn_late_need(HN_LATE_LIBRARY_PNG, error);
  if (status != HONE_OK) return status;
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  uint8_t *rgba = NULL;
  hn_mem_foreign_begin();
  if (!png_image_begin_read_from_memory(&image, file.data, file.size)) {
    hn_mem_foreign_end();
    status = hn_fail(error, HONE_ERROR_INPUT, "bad PNG: %.60s", image.message);
    goto done;
  }
  status = hn_picture_size(image.width, image.height, arena, out, error);
  if (status != HONE_OK) goto done;
  /* Transparency is dropped, not blended: that is what training pipelines do. */
  image.format = PNG_FORMAT_RGBA;
  size_t pixels = (size_t)(out->width * out->height);
  rgba = hn_malloc(pixels * 4);
  if (!rgba) {
    status = hn_fail_memory(error, pixels * 4, "a picture");
    goto done;
  }
  hn_mem_foreign_begin();
  if (!png_image_finish_read(&image, NULL, rgba, 0, NULL)) {
    hn_mem_foreign_end();
    status = hn_fail(error, HONE_ERROR_INPUT, "bad PNG: %.60s", image.message);
    goto done;
  }
  for (size_t i = 0; i < pixels; i++) memcpy(out->rgb + 3 * i, rgba + 4 * i, 3);
done:
  hn_free(rgba);
  png_image_free(&image);
  return status;
}
