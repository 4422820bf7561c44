/* Decoders of pictures. */
#ifndef HN_BASE_PICTURE_H
#define HN_BASE_PICTURE_H

#include "base/arena.h"

#include <hone/status.h>
#include <stdint.h>

/* A block of bytes being read. */
typedef struct hn_bytes {
  const uint8_t *data;
  size_t size;
} hn_bytes;

/* 8-bit RGB, row by row. */
typedef struct hn_picture {
  int64_t width, height;
  uint8_t *rgb;
} hn_picture;

/* Whatever the first bytes say: JPEG, PNG, BMP, or PNM (P5 and P6). HONE_ERROR_UNSUPPORTED, with its name,
 * for a format that hone does not read. */
hone_status hn_picture_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error);

hone_status hn_png_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error);
hone_status hn_jpeg_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error);
hone_status hn_bmp_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error);
hone_status hn_pnm_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error);
/* Refuses sizes that no honest picture has, before anything is allocated for them. */
hone_status hn_picture_size(uint64_t width, uint64_t height, hn_arena *arena, hn_picture *out,
                            hone_error *error);

#endif
