/* The body of pool_int8_<tier>.c.  The including file defines bytes (a vector of BYTES codes), load, store,
 * load_some and store_some of n < BYTES codes, max_u8 and max_i8. */
#include <string.h>

#include "backends/cpu/kernels/pool_int8/pool_int8.h"
#include "base/fault.h"

static inline __attribute__((always_inline)) bytes max_of(bytes a, bytes b, const bool is_signed) {
  return is_signed ? max_i8(a, b) : max_u8(a, b);
}

static inline __attribute__((always_inline)) void
max_over(uint8_t *dst, const uint8_t *const *tap, size_t taps, size_t channels, const bool is_signed) {
  size_t c = 0;
  for (; c + BYTES <= channels; c += BYTES) {
    bytes best = load(tap[0] + c);
    for (size_t t = 1; t < taps; t++) best = max_of(best, load(tap[t] + c), is_signed);
    store(dst + c, best);
  }
  if (c == channels) return;
  const size_t n = channels - c;
  bytes best = load_some(tap[0] + c, n);
  for (size_t t = 1; t < taps; t++) best = max_of(best, load_some(tap[t] + c, n), is_signed);
  store_some(dst + c, best, HN_FAULT("pool_int8_tail") ? n - 1 : n);
}

static void max(uint8_t *dst, const uint8_t *const *tap, size_t taps, size_t channels, bool is_signed) {
  if (HN_FAULT("pool_int8_last_tap") && taps > 1) taps--;
  if (taps == 0)
    memset(dst, is_signed ? 0x80 : 0, channels);
  else if (is_signed && !HN_FAULT("pool_int8_sign"))
    max_over(dst, tap, taps, channels, true);
  else
    max_over(dst, tap, taps, channels, false);
}

/* Channels that are summed together, in words: 256 codes fit. */
enum { GROUP = 64, WORDS_HOLD = 256 };

/* `turn`: 0x80 makes i8 codes u8 ones, larger by 128. */
static inline __attribute__((always_inline)) void sum_group(int32_t *sums, const uint8_t *x, ptrdiff_t pitch,
                                                            size_t pixels, size_t channels,
                                                            const uint8_t turn) {
  while (pixels) {
    const size_t n = pixels < WORDS_HOLD ? pixels : WORDS_HOLD;
    uint16_t words[GROUP] = {0};
    for (size_t p = 0; p < n; p++, x += pitch)
      for (size_t c = 0; c < channels; c++) words[c] = (uint16_t)(words[c] + (x[c] ^ turn));
    for (size_t c = 0; c < channels; c++) sums[c] += (int32_t)words[c] - (turn ? 128 * (int32_t)n : 0);
    pixels -= HN_FAULT("pool_int8_sum_rest") ? pixels : n;
  }
}

static void sum(int32_t *sums, const uint8_t *x, ptrdiff_t pitch, size_t pixels, size_t channels,
                bool is_signed) {
  const uint8_t turn = is_signed ? 0x80 : 0;
  for (; channels >= GROUP; channels -= GROUP, sums += GROUP, x += GROUP)
    sum_group(sums, x, pitch, pixels, GROUP, turn);
  if (channels) sum_group(sums, x, pitch, pixels, channels, turn);
}

static const hn_pool_int8_ops table = {.max = max, .sum = sum};
