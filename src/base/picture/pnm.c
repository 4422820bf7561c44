/* PNM: grey (P5) and colour (P6) pixels of 8 bits. */
#include "base/picture/picture.h"

#include "base/error.h"

/* The next number of the head, comments and white space before it; -1: there is none. */
static int64_t next_number(hn_bytes f, size_t *at) {
  int64_t v = -1;
  while (*at < f.size &&
         (f.data[*at] == '#' || f.data[*at] == ' ' || (f.data[*at] >= '\t' && f.data[*at] <= '\r')))
    if (f.data[(*at)++] == '#')
      while (*at < f.size && f.data[*at] != '\n') ++*at;
  for (; *at < f.size && f.data[*at] >= '0' && f.data[*at] <= '9' && v < 1000000; ++*at)
    v = (v < 0 ? 0 : 10 * v) + (f.data[*at] - '0');
  return v;
}

hone_status hn_pnm_decode(hn_bytes file, hn_arena *arena, hn_picture *out, hone_error *error) {
  size_t at = 2;
  const int64_t width = next_number(file, &at), height = next_number(file, &at),
                most = next_number(file, &at);
  if (width < 1 || height < 1 || most < 1 || at >= file.size)
    return hn_fail(error, HONE_ERROR_INPUT, "bad PNM: its head is of no use");
  if (most > 255) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "the PNM has more than 8 bits a colour");
  const hone_status s = hn_picture_size((uint64_t)width, (uint64_t)height, arena, out, error);
  if (s) return s;
  const size_t pixels = (size_t)width * (size_t)height, step = file.data[1] == '6' ? 3 : 1;
  at++; /* one white space */
  if (file.size - at < pixels * step)
    return hn_fail(error, HONE_ERROR_INPUT, "bad PNM: it ends in its pixels");
  for (size_t i = 0; i < pixels; i++)
    for (size_t k = 0; k < 3; k++) {
      const unsigned v = file.data[at + i * step + (step == 3 ? k : 0)];
      out->rgb[3 * i + k] =
          (uint8_t)(v >= (unsigned)most ? 255 : (v * 255 + (unsigned)most / 2) / (unsigned)most);
    }
  return HONE_OK;
}
