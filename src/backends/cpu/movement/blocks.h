/* Copies of blocks that may be as short as an element: a call costs more than they do. */
#ifndef HN_CPU_MOVEMENT_BLOCKS_H
#define HN_CPU_MOVEMENT_BLOCKS_H

#include <stdint.h>
#include <string.h>

/* Copies of a constant size are one or two instructions each. What lies between two sizes is two copies that
 * overlap; nothing outside of the block is touched. dst and src do not overlap. */
static inline void hn_copy_block(unsigned char *dst, const unsigned char *src, int64_t bytes) {
#define ENDS(SIZE) (memcpy(dst, src, SIZE), memcpy(dst + bytes - (SIZE), src + bytes - (SIZE), SIZE))
  if (bytes > 64)
    memcpy(dst, src, (size_t)bytes);
  else if (bytes >= 32)
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

#endif
