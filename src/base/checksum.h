/* Checksum of large data at the speed of memory: finds damage, not malice. */
#ifndef HN_BASE_CHECKSUM_H
#define HN_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Data is summed in pieces of this size, each by itself, so that threads can share the work. */
enum { HN_CHECKSUM_PIECE = 4 << 20 };

static inline size_t hn_checksum_pieces(size_t size) {
  return (size + HN_CHECKSUM_PIECE - 1) / HN_CHECKSUM_PIECE;
}
/* Sum of piece i of the data. Any single changed byte changes it. */
uint64_t hn_checksum_piece(const void *data, size_t size, size_t i);
/* One number from the sums of all pieces. */
uint64_t hn_checksum_join(const uint64_t *sums, size_t n, size_t size);
/* Both at once, on this thread. */
uint64_t hn_checksum(const void *data, size_t size);

#endif
