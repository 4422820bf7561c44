/* A's rows in a task's scratch: brought together tap by tap, or as padded lines that rows are read from. */
#include "backends/cpu/quantized/int8_rows.h"

#include <string.h>

#include "base/fault.h"
#include "base/integers.h"

typedef struct line_at {
  int64_t n, z, y; /* of the output */
} line_at;

/* `bytes` of a run to d, which has 64 bytes to spare; `left` of them may be read from s. */
static inline void copy_run(uint8_t *d, const uint8_t *s, int64_t bytes, int64_t left) {
  if (bytes <= 16 && left >= 16) {
    memcpy(d, s, 16);
  } else if (bytes <= 32 && left >= 32) {
    memcpy(d, s, 32);
  } else if (left >= bytes + 63) {
    for (int64_t i = 0; i < bytes; i += 64) memcpy(d + i, s + i, 64);
  } else {
    memcpy(d, s, (size_t)bytes);
  }
}

/* One run for output x of a line; `from`: the input's line, or NULL when that lies outside. */
static void bring_edge(const hn_int8_conv *c, const uint8_t *from, const uint8_t *end, int64_t at,
                       uint8_t *d) {
  if (from && at >= 0 && at + c->run_taps <= c->in[2]) {
    const uint8_t *s = from + at * c->in_pitch;
    copy_run(d, s, c->run, end - s);
    return;
  }
  memset(d, (int)c->padding ^ (c->flip ? 0x80 : 0), (size_t)c->run);
  if (!from) return;
  /* With several taps a run, a tap is a pixel. */
  const int64_t first = hn_max(0, -at), last = hn_min(c->run_taps, c->in[2] - at);
  if (last > first)
    memcpy(d + (HN_FAULT("int8_left_padding") ? 0 : first) * c->cin, from + (at + first) * c->in_pitch,
           (size_t)((last - first) * c->cin));
}

/* n runs whose copies of a multiple of 16 bytes may be read as a whole. (Distances by value: stores of bytes
 * may be of anything, for all that the compiler knows.) */
static void copy_runs(uint8_t *d, int64_t ld, const uint8_t *s, int64_t step, int64_t run, int64_t n) {
  if (run <= 16)
    for (; n-- > 0; d += ld, s += step) memcpy(d, s, 16);
  else if (run <= 32)
    for (; n-- > 0; d += ld, s += step) memcpy(d, s, 32);
  else
    for (; n-- > 0; d += ld, s += step)
      for (int64_t i = 0; i < run; i += 64) memcpy(d + i, s + i, 64);
}

/* One run for each of the outputs [x0, x1) of a line. */
static void bring_runs(const hn_int8_conv *c, const uint8_t *from, const uint8_t *end, int64_t dx, int64_t x0,
                       int64_t x1, uint8_t *d) {
  int64_t first = x1, last = x1; /* outputs whose runs lie inside, with what whole copies read behind them */
  if (from) {
    const int64_t read = c->run <= 16   ? 16
                         : c->run <= 32 ? 32
                                        : (int64_t)hn_int8_round((size_t)c->run, 64),
                  most = hn_min(c->in[2] - c->run_taps, (end - from - read) / c->in_pitch) - dx;
    first = hn_min(hn_max(x0, dx < 0 ? hn_div_up(-dx, c->stride[2]) : 0), x1);
    last = end - from < read || most < 0 ? first : hn_max(first, hn_min(x1, most / c->stride[2] + 1));
  }
  for (int64_t x = x0; x < first; x++, d += c->ld) bring_edge(c, from, end, x * c->stride[2] + dx, d);
  if (last > first)
    copy_runs(d, c->ld, from + (first * c->stride[2] + dx) * c->in_pitch, c->stride[2] * c->in_pitch, c->run,
              last - first);
  d += (last - first) * c->ld;
  for (int64_t x = last; x < x1; x++, d += c->ld) bring_edge(c, from, end, x * c->stride[2] + dx, d);
}

static void turn(uint8_t *d, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++) d[i] ^= 0x80;
}

void hn_int8_bring_rows(const hn_int8_conv *c, const uint8_t *x, int64_t group, int64_t r0, int64_t r1,
                        uint8_t *d) {
  const uint8_t *end = x + c->in_bytes;
  x += group * c->cin;
  while (r0 < r1) {
    int64_t r = r0, x0 = r % c->out[2];
    r /= c->out[2];
    const line_at at = {r / c->out[1] / c->out[0], r / c->out[1] % c->out[0], r % c->out[1]};
    const int64_t count = hn_min(c->out[2] - x0, r1 - r0);
    uint8_t *to = d;
    for (int64_t tz = 0; tz < c->kernel[0]; tz++)
      for (int64_t ty = 0; ty < c->kernel[1]; ty++) {
        const int64_t z = at.z * c->stride[0] + tz * c->dilation[0] - c->pad[0],
                      y = at.y * c->stride[1] + ty * c->dilation[1] - c->pad[1];
        const bool inside = z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1];
        const uint8_t *line =
            inside ? x + ((at.n * c->in[0] + z) * c->in[1] + y) * c->in[2] * c->in_pitch : NULL;
        for (int64_t tx = 0; tx < c->kernel[2]; tx += c->run_taps, to += c->run)
          bring_runs(c, line, end, tx * c->dilation[2] - c->pad[2], x0, x0 + count, to);
      }
    if (c->flip)
      for (int64_t i = 0; i < count; i++) turn(d + i * c->ld, c->k);
    r0 += count, d += count * c->ld;
  }
}

/* ---------------------------------------------------------------- lines */

/* Line `from` of the input, NULL outside of it, with its padding. */
static void bring_line(const hn_int8_conv *c, const uint8_t *from, const uint8_t *end, uint8_t *d) {
  const int padding = (int)c->padding ^ (c->flip ? 0x80 : 0);
  const int64_t first = hn_min(c->pad[2], c->width),
                last = from ? hn_min(hn_max(c->in[2] + c->pad[2], first), c->width) : first;
  memset(d, padding, (size_t)((HN_FAULT("int8_left_padding") ? 0 : first) * c->cin));
  if (from && c->in_pitch == c->cin)
    memcpy(d + first * c->cin, from, (size_t)((last - first) * c->cin));
  else if (from)
    for (int64_t i = first; i < last; i++, from += c->in_pitch)
      copy_run(d + i * c->cin, from, c->cin, end - from);
  memset(d + last * c->cin, padding, (size_t)((c->width - last) * c->cin));
  if (c->flip) turn(d, c->width * c->cin);
}

void hn_int8_bring_lines(const hn_int8_conv *c, const uint8_t *x, int64_t group, int64_t r0, int64_t r1,
                         uint8_t *d) {
  const int64_t l0 = r0 / c->out[2], l1 = r1 / c->out[2], n = l0 / c->out[1];
  const int64_t y0 = l0 % c->out[1] * c->stride[1] - c->pad[1], count = hn_int8_lines(c, l1 - l0);
  const uint8_t *end = x + c->in_bytes;
  x += group * c->cin + n * c->in[1] * c->in[2] * c->in_pitch;
  for (int64_t y = y0; y < y0 + count; y++, d += c->line)
    bring_line(c, y >= 0 && y < c->in[1] ? x + y * c->in[2] * c->in_pitch : NULL, end, d);
}

/* ---------------------------------------------------------------- sums */

void hn_int8_sum_rows(const hn_int8_conv *c, const hn_int8_ops *o, const uint8_t *x, int64_t group,
                      const uint8_t *d, int64_t r0, int64_t r1, int32_t *sums) {
  hn_int8_rows r = {.a = c->direct ? x + r0 * c->in_pitch + group * c->cin : d,
                    .lda = c->direct  ? c->in_pitch
                           : c->lines ? c->stride[2] * c->cin
                                      : c->ld,
                    .k = (size_t)(c->k / c->n_segments),
                    .segments = (uint32_t)c->n_segments,
                    .segment_at = c->segment_at,
                    .rows = c->lines ? c->out[2] : r1 - r0,
                    .sums = sums};
  for (; r0 < r1; r0 += r.rows, r.a += c->stride[1] * c->line, r.sums += r.rows) o->sum_rows(&r);
}
