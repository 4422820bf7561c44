/* PNG through libpng's simplified interface, which turns every fault into one message. */
#include "runtime/data/data.h"

#include <png.h>
#include <string.h>

hone_status hn_picture_size(uint64_t width, uint64_t height, hn_arena *arena, hn_picture *out,
                            hone_error *error) {
  if (!width || !height || width > 65535 || height > 65535 || width * height > 100000000u) {
    hn_fail(error, HONE_ERROR_INPUT, "picture of an impossible size");
    hn_error_got(error, "%llux%llu", (unsigned long long)width, (unsigned long long)height);
    hn_error_expected(error, "at most 100 megapixels");
    return HONE_ERROR_INPUT;
  }
  *out = (hn_picture){(int64_t)width, (int64_t)height, hn_arena_alloc(arena, (size_t)(width * height * 3))};
  return out->rgb ? HONE_OK : hn_fail_memory(error, width * height * 3, "a picture");
}

hone_status hn_png_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  png_image image;
  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  hone_status status = HONE_OK;
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
