#include "base/checksum.h"

#include "base/wide.h"

#include <string.h>

enum { LANES = 16 };

/* Two running sums a lane: the first sees every word, the second also their order. */
HN_WIDE_BODY void sum_body(const unsigned char *p, size_t blocks, uint64_t *restrict a,
                           uint64_t *restrict b) {
  uint64_t s[LANES], t[LANES];
  memcpy(s, a, sizeof s);
  memcpy(t, b, sizeof t);
  for (size_t i = 0; i < blocks; i++) {
    uint64_t x[LANES];
    memcpy(x, p + i * sizeof x, sizeof x);
    for (int k = 0; k < LANES; k++) s[k] += x[k];
    for (int k = 0; k < LANES; k++) t[k] += s[k];
  }
  memcpy(a, s, sizeof s);
  memcpy(b, t, sizeof t);
}

HN_WIDE(void, sum, sum_body,
        (const unsigned char *p, size_t blocks, uint64_t *restrict a, uint64_t *restrict b),
        (p, blocks, a, b))

/* Mixes v into h; a bijection of v for each h. */
static uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

uint64_t hn_checksum_piece(const void *data, size_t size, size_t i) {
  const unsigned char *p = (const unsigned char *)data + i * HN_CHECKSUM_PIECE;
  size_t n = size - i * HN_CHECKSUM_PIECE;
  if (n > HN_CHECKSUM_PIECE) n = HN_CHECKSUM_PIECE;
  uint64_t a[LANES] = {0}, b[LANES] = {0}, h = n;
  size_t blocks = n / sizeof a;
  sum(p, blocks, a, b);
  if (n % sizeof a) {
    uint64_t last[LANES] = {0};
    memcpy(last, p + blocks * sizeof a, n % sizeof a);
    sum((const unsigned char *)last, 1, a, b);
  }
  for (int k = 0; k < LANES; k++) h = mix(mix(h, a[k]), b[k]);
  return h;
}

uint64_t hn_checksum_join(const uint64_t *sums, size_t n, size_t size) {
  uint64_t h = mix(0x686f6e65, size);
  for (size_t i = 0; i < n; i++) h = mix(h, sums[i]);
  return h;
}

uint64_t hn_checksum(const void *data, size_t size) {
  uint64_t h = mix(0x686f6e65, size);
  for (size_t i = 0; i < hn_checksum_pieces(size); i++) h = mix(h, hn_checksum_piece(data, size, i));
  return h;
}
