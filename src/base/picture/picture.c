#include "base/picture/picture.h"

#include "base/error.h"

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

static bool begins(hn_bytes file, size_t at, const char *with, size_t n) {
  return file.size >= at + n && memcmp(file.data + at, with, n) == 0;
}

/* A format without a decoder; NULL: none that is known. */
static const char *known(hn_bytes file) {
  static const struct {
    size_t at, n;
    const char *with, *name;
  } formats[] = {{0, 4, "II*\0", "TIFF"},
                 {0, 4, "MM\0*", "TIFF"},
                 {8, 4, "WEBP", "WebP"},
                 {4, 4, "jP  ", "JPEG 2000"},
                 {0, 4, "\xff\x4f\xff\x51", "JPEG 2000"},
                 {0, 4, "GIF8", "GIF"},
                 {4, 8, "ftypavif", "AVIF"},
                 {4, 8, "ftypheic", "HEIC"}};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (begins(file, formats[i].at, formats[i].with, formats[i].n)) return formats[i].name;
  return NULL;
}

hone_status hn_picture_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  if (begins(file, 0, "\xff\xd8", 2)) return hn_jpeg_decode(file, arena, out, error);
  if (begins(file, 0, "\x89PNG", 4)) return hn_png_decode(file, arena, out, error);
  if (begins(file, 0, "BM", 2)) return hn_bmp_decode(file, arena, out, error);
  if (begins(file, 0, "P5", 2) || begins(file, 0, "P6", 2)) return hn_pnm_decode(file, arena, out, error);
  const char *name = known(file);
  if (!name) return hn_fail(error, HONE_ERROR_INPUT, "the bytes are no picture (JPEG, PNG, BMP or PNM)");
  return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the picture is %s; JPEG, PNG, BMP and PNM are read", name);
}
