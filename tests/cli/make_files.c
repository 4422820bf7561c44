#include "cli/make_files.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

void npy_header(char *out, size_t size, const char *dict) {
  memset(out, ' ', size);
  memcpy(out, "\x93NUMPY\1\0", 8);
  out[8] = (char)((size - 10) & 255);
  out[9] = (char)((size - 10) >> 8);
  memcpy(out + 10, dict, strlen(dict));
  out[size - 1] = '\n';
}

static void le(uint8_t *p, uint64_t v, int n) {
  for (int i = 0; i < n; i++) p[i] = (uint8_t)(v >> (8 * i));
}

size_t make_zip(uint8_t *out, const uint8_t *npy, size_t size, bool deflated, size_t claimed) {
  uLongf packed = compressBound(size) + 64;
  uint8_t *body = malloc(packed);
  z_stream z = {.next_in = (Bytef *)npy, .avail_in = (uInt)size, .next_out = body, .avail_out = (uInt)packed};
  if (deflated) {
    deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    packed = z.total_out;
    deflateEnd(&z);
  } else {
    memcpy(body, npy, packed = size);
  }
  uint32_t crc = (uint32_t)crc32(0, npy, (uInt)size);
  uint8_t *p = out;
  memset(p, 0, 30);
  le(p, 0x04034b50, 4), le(p + 8, deflated ? 8 : 0, 2), le(p + 14, crc, 4), le(p + 18, packed, 4),
      le(p + 22, claimed, 4), le(p + 26, 5, 2);
  memcpy(p + 30, "x.npy", 5);
  memcpy(p + 35, body, packed);
  free(body);
  size_t dir = 35 + packed;
  p = out + dir;
  memset(p, 0, 46);
  le(p, 0x02014b50, 4), le(p + 10, deflated ? 8 : 0, 2), le(p + 16, crc, 4), le(p + 20, packed, 4),
      le(p + 24, claimed, 4), le(p + 28, 5, 2);
  memcpy(p + 46, "x.npy", 5);
  p += 51;
  memset(p, 0, 22);
  le(p, 0x06054b50, 4), le(p + 8, 1, 2), le(p + 10, 1, 2), le(p + 12, 51, 4), le(p + 16, dir, 4);
  return dir + 51 + 22;
}
