#include "backends/cpu/product/conv_rows.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

static void copy_floats(float *restrict d, const float *restrict s, int64_t n) {
  if (n >= 64)
    memcpy(d, s, (size_t)n * sizeof *d);
  else
    for (int64_t i = 0; i < n; i++) d[i] = s[i];
}

static void zero_floats(float *d, int64_t n) {
  if (n > 0) memset(d, 0, (size_t)n * sizeof *d);
}

/* Row of A for the grid position p: values k0 .. k1-1 of its taps, zeros where a tap lies outside the image.
 */
static void gather_row(const hn_conv *c, const hn_tap_run *runs, const float *x, const hn_conv_place *p,
                       int64_t k0, int64_t k1, float *dst) {
  int64_t begin = 0;
  for (int64_t r = 0; r < c->n_runs && begin < k1; r++) {
    const hn_tap_run *t = &runs[r];
    int64_t length = t->taps * c->cin, end = begin + length;
    if (end <= k0) {
      begin = end;
      continue;
    }
    int64_t lo = begin > k0 ? begin : k0, hi = end < k1 ? end : k1;
    int64_t z = p->z * c->stride[0] + t->dz, y = p->y * c->stride[1] + t->dy,
            x0 = p->x * c->stride[2] + t->dx;
    float *d = dst + (lo - k0);
    if (z < 0 || z >= c->in[0] || y < 0 || y >= c->in[1] || x0 >= c->in[2] || x0 + (int64_t)t->taps <= 0) {
      zero_floats(d, hi - lo);
    } else {
      /* In floats from the run's begin: [live0, live1) lies inside the image. */
      int64_t live0 = x0 < 0 ? -x0 * c->cin : 0;
      int64_t live1 = x0 + t->taps > c->in[2] ? (c->in[2] - x0) * c->cin : length;
      if (HN_FAULT("conv_right_padding")) live1 = length;
      if (HN_FAULT("conv_left_padding")) live0 = 0;
      int64_t a = lo - begin, b = hi - begin;
      int64_t from = a > live0 ? a : live0, to = b < live1 ? b : live1;
      if (to <= from)
        zero_floats(d, b - a);
      else {
        const float *row = x + p->n * c->in_batch + ((z * c->in[1] + y) * c->in[2] + x0) * c->in_pitch;
        zero_floats(d, from - a);
        copy_floats(d + (from - a), row + from, to - from);
        zero_floats(d + (to - a), b - to);
      }
    }
    begin = end;
  }
}

int64_t hn_conv_gather(const hn_conv *c, const hn_tap_run *runs, const float *x, hn_conv_place p, int64_t m,
                       int64_t k0, int64_t k1, float *scratch) {
  int64_t ld = hn_conv_tile_ld(c);
  for (int64_t i = 0; i < m; i++, hn_conv_advance(c, &p)) {
    float *d = scratch + i * ld;
    if (c->in_k != 1) {
      const float *s = x + p.n * c->in_batch + p.x * c->in_pitch + k0 * c->in_k;
      for (int64_t k = 0; k < k1 - k0; k++) d[k] = s[k * c->in_k];
    } else if (c->read == HN_CONV_COPIED) {
      const float *s = x + p.n * c->in_batch + ((p.z * c->in[1] + p.y) * c->in[2] + p.x) * c->in_pitch;
      copy_floats(d, s + k0, k1 - k0);
    } else {
      gather_row(c, runs, x, &p, k0, k1, d);
    }
  }
  return ld;
}

void hn_conv_copy_rows(const hn_conv_args *a, int64_t group, const hn_conv_cursor *from, int64_t end,
                       hn_conv_room *to) {
  const hn_conv *c = a->conv;
  const int64_t ld = hn_conv_copied_ld(c), per_line = c->tiles_per_line;
  hn_conv_place p = hn_conv_locate(c, from->line, from->m);
  to->first = hn_conv_number(c, from, from->m);
  int64_t n = end / per_line * c->line + end % per_line * c->line / per_line - to->first;
  if (HN_FAULT("conv_last_copied_row")) n--;
  for (int64_t i = 0; i < n; i++, hn_conv_advance(c, &p)) {
    const int64_t z = p.z * c->stride[0], y = p.y * c->stride[1], x = p.x * c->stride[2];
    const float *row =
        a->x + group * c->cin + p.n * c->in_batch + ((z * c->in[1] + y) * c->in[2] + x) * c->in_pitch;
    copy_floats(to->floats + i * ld, row, c->k);
  }
}

/* cin floats of each of n pixels, which leave gaps between each other, side by side. */
static void copy_pixels(const hn_conv *c, float *restrict d, const float *restrict x, int64_t n) {
  enum { BLOCK = 8 };
  for (int64_t i = 0; i < n; i++, d += c->cin, x += c->in_pitch) {
    int64_t k = 0;
    for (; k + BLOCK <= c->cin; k += BLOCK) memcpy(d + k, x + k, BLOCK * sizeof *d);
    for (; k < c->cin; k++) d[k] = x[k];
  }
}

void hn_conv_pad_rows(const hn_conv_args *a, int64_t group, int64_t t0, int64_t t1, float *to) {
  const hn_conv *c = a->conv;
  const int64_t row = c->padded_size[1] * c->cin, last = hn_div_up(t1, c->tiles_per_line);
  const int64_t left = c->pad[1] * c->cin, width = hn_min(c->in[2] * c->cin, row - left);
  for (int64_t line = t0 / c->tiles_per_line, made = 0; line < last;
       line++) { /* made: rows of the image so far */
    const int64_t n = line / c->grid[1], y = line % c->grid[1] * c->stride[1], end = y + c->window[0];
    if (made < y || y == 0) made = y;
    for (; made < end; made++) {
      float *d = to + (n * c->padded_size[0] + made) * row;
      const int64_t from = made - c->pad[0];
      if (from < 0 || from >= c->in[1] || width <= 0) {
        zero_floats(d, row);
        continue;
      }
      const float *x = a->x + group * c->cin + n * c->in_batch + from * c->in[2] * c->in_pitch;
      zero_floats(d, left);
      if (c->in_pitch == c->cin)
        copy_floats(d + (HN_FAULT("conv_left_padding") ? 0 : left), x, width);
      else
        copy_pixels(c, d + left, x, width / c->cin);
      const int64_t end_of = left + width - (HN_FAULT("conv_right_padding") ? c->cin : 0);
      zero_floats(d + end_of, row - end_of);
    }
  }
}
