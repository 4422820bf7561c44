/* BMP: pixels of 8 (with a palette), 24 or 32 bits that are not compressed; of 32 bits with the colours in
 * any bytes. */
#include "base/picture/picture.h"

#include "base/error.h"

static uint32_t u32(const uint8_t *p) {
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

typedef struct header {
  uint32_t pixels, palette, colours, bits;
  int64_t width, height;
  bool down;     /* the first row is the top one */
  size_t rgb[3]; /* bytes of a pixel where the colours are */
} header;

/* Masks that say where the colours of 32 bits are: whole bytes. */
static bool read_masks(hn_bytes f, header *h) {
  for (size_t k = 0; k < 3; k++) {
    const uint32_t mask = u32(f.data + 54 + 4 * k);
    for (h->rgb[k] = 0; h->rgb[k] < 4 && mask != 0xffu << 8 * h->rgb[k];) h->rgb[k]++;
    if (h->rgb[k] == 4) return false;
  }
  return true;
}

static hone_status read_header(hn_bytes f, header *h, hone_error *error) {
  if (f.size < 54) return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: it ends in its header");
  const uint32_t head = u32(f.data + 14), packing = u32(f.data + 30);
  const int32_t height = (int32_t)u32(f.data + 22);
  h->pixels = u32(f.data + 10);
  h->bits = f.data[28] | (uint32_t)f.data[29] << 8;
  h->width = (int32_t)u32(f.data + 18);
  h->down = height < 0;
  h->height = h->down ? -(int64_t)height : height;
  h->colours = u32(f.data + 46);
  if (head < 40 || head > f.size - 14 || h->width < 1 || h->height < 1)
    return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: its header is of no use");
  if ((packing != 0 && !(packing == 3 && h->bits == 32)) || (h->bits != 8 && h->bits != 24 && h->bits != 32))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the BMP has %u bits a pixel, packed as %u", h->bits,
                   packing);
  h->rgb[0] = 2, h->rgb[1] = 1, h->rgb[2] = 0;
  if (packing == 3 && f.size < 66) return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: it ends in its header");
  if (packing == 3 && !read_masks(f, h))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the BMP has colours that are no whole bytes");
  h->palette = 14 + head;
  if (!h->colours || h->colours > 256) h->colours = 256;
  if (h->bits == 8 && h->palette + 4 * (uint64_t)h->colours > f.size)
    return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: it ends in its palette");
  return HONE_OK;
}

static hone_status read_row(hn_bytes f, const header *h, const uint8_t *from, uint8_t *rgb,
                            hone_error *error) {
  for (int64_t x = 0; x < h->width; x++, rgb += 3) {
    const uint8_t *p = from + x * (h->bits / 8);
    if (h->bits == 8) {
      if (*p >= h->colours) return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: a pixel is not in the palette");
      p = f.data + h->palette + 4 * (size_t)*p;
    }
    for (int k = 0; k < 3; k++) rgb[k] = p[h->rgb[k]];
  }
  return HONE_OK;
}

hone_status hn_bmp_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  header h = {0};
  hone_status s = read_header(file, &h, error);
  if (!s) s = hn_picture_size((uint64_t)h.width, (uint64_t)h.height, arena, out, error);
  if (s) return s;
  const uint64_t pitch = ((uint64_t)h.width * h.bits + 31) / 32 * 4;
  if (h.pixels + pitch * (uint64_t)h.height > file.size)
    return hn_fail(error, HONE_ERROR_INPUT, "bad BMP: it ends in its pixels");
  for (int64_t y = 0; y < h.height && !s; y++) {
    const int64_t row = h.down ? y : h.height - 1 - y;
    s = read_row(file, &h, file.data + h.pixels + (uint64_t)row * pitch, out->rgb + 3 * y * h.width, error);
  }
  return s;
}
