/* Copies and fills of blocks that may be as short as an element: a call costs more than they do. */
#ifndef HN_CPU_MOVEMENT_BLOCKS_H
#define HN_CPU_MOVEMENT_BLOCKS_H

#include <stdint.h>
#include <string.h>

/* Copies at most 64 bytes. Copies of a constant size are one or two instructions each; what lies between two
 * sizes is two copies that overlap. Nothing outside of the block is touched; dst and src do not overlap. */
static inline void hn_copy_short(unsigned char *dst, const unsigned char *src, int64_t bytes) {
#define ENDS(SIZE) (memcpy(dst, src, SIZE), memcpy(dst + bytes - (SIZE), src + bytes - (SIZE), SIZE))
  if (bytes >= 32)
    ENDS(32);
  else if (bytes >= 16)
    ENDS(16);
  else if (bytes >= 8)
    ENDS(8);
  else if (bytes >= 4)
    ENDS(4);
  else if (bytes >= 2)
    ENDS(2);
  else if (bytes == 1)
    *dst = *src;
#undef ENDS
}

/* The same for any size. */
static inline void hn_copy_block(unsigned char *dst, const unsigned char *src, int64_t bytes) {
  if (bytes > 64)
    memcpy(dst, src, (size_t)bytes);
  else
    hn_copy_short(dst, src, bytes);
}

enum { HN_PATTERN_BYTES = 64 };

/* An element of 1, 2, 4 or 8 bytes, again and again. */
static inline void hn_pattern(unsigned char pattern[HN_PATTERN_BYTES], const unsigned char *value,
                              int32_t element) {
  uint64_t v = 0;
  switch (element) {
  case 1: v = *value * (UINT64_MAX / UINT8_MAX); break;
  case 2: {
    uint16_t one;
    memcpy(&one, value, sizeof one), v = one * (UINT64_MAX / UINT16_MAX);
    break;
  }
  case 4: {
    uint32_t one;
    memcpy(&one, value, sizeof one), v = one * (UINT64_MAX / UINT32_MAX);
    break;
  }
  default: memcpy(&v, value, sizeof v); break;
  }
  for (int32_t i = 0; i < HN_PATTERN_BYTES; i += 8) memcpy(pattern + i, &v, sizeof v);
}

/* Whole elements of a pattern. */
static inline void hn_fill_block(unsigned char *dst, const unsigned char pattern[HN_PATTERN_BYTES],
                                 int64_t bytes) {
  int64_t at = 0;
  for (; at + HN_PATTERN_BYTES <= bytes; at += HN_PATTERN_BYTES) memcpy(dst + at, pattern, HN_PATTERN_BYTES);
  hn_copy_short(dst + at, pattern, bytes - at);
}

#endif
