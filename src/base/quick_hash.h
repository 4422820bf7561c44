/* A hash for tables of this process, eight bytes at a time. Not for what is kept: hn_hash is (base/map.h). */
#ifndef HN_BASE_QUICK_HASH_H
#define HN_BASE_QUICK_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t hn_quick_hash(const void *data, size_t size, uint64_t seed) {
  const uint64_t factor = 0xd6e8feb86659fd93u;
  const unsigned char *p = data;
  uint64_t h = (seed ^ size) * 0x9e3779b97f4a7c15u, word;
  for (; size >= sizeof word; p += sizeof word, size -= sizeof word) {
    memcpy(&word, p, sizeof word);
    h = (h ^ word) * factor;
    h ^= h >> 32;
  }
  word = 0;
  while (size) word = word << 8 | p[--size];
  h = (h ^ word) * factor;
  return h ^ h >> 32;
}

#endif
