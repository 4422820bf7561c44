#include "base/mersenne.h"

#include <math.h>

enum { MIDDLE = 397 };

void hn_mt_seed(hn_mt *g, uint64_t seed) {
  g->word[0] = (uint32_t)seed;
  for (uint32_t i = 1; i < HN_MT_WORDS; i++)
    g->word[i] = 1812433253u * (g->word[i - 1] ^ (g->word[i - 1] >> 30)) + i;
  g->next = HN_MT_WORDS;
}

/* Matsumoto and Nishimura's recurrence: the highest bit of one word and the others of the next. */
static void renew(hn_mt *g) {
  for (uint32_t i = 0; i < HN_MT_WORDS; i++) {
    const uint32_t y = (g->word[i] & 0x80000000u) | (g->word[(i + 1) % HN_MT_WORDS] & 0x7fffffffu);
    g->word[i] = g->word[(i + MIDDLE) % HN_MT_WORDS] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
  }
  g->next = 0;
}

uint32_t hn_mt_u32(hn_mt *g) {
  if (g->next >= HN_MT_WORDS) renew(g);
  uint32_t y = g->word[g->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

double hn_mt_unit(hn_mt *g) {
  const double low = hn_mt_u32(g), high = hn_mt_u32(g);
  const double unit = (low + high * 0x1p32) * 0x1p-64;
  return unit < 1 ? unit : nextafter(1, 0);
}

double hn_mt_res53(hn_mt *g) {
  const uint32_t high = hn_mt_u32(g) >> 5, low = hn_mt_u32(g) >> 6;
  return ((double)high * 0x1p26 + low) * 0x1p-53;
}

double hn_mt_exponential(hn_mt *g, double rate) { return -log(1 - hn_mt_unit(g)) / rate; }

uint32_t hn_mt_below(hn_mt *g, uint32_t n) {
  uint64_t product = (uint64_t)hn_mt_u32(g) * n;
  if ((uint32_t)product < n) {
    const uint32_t floor = -n % n;
    while ((uint32_t)product < floor) product = (uint64_t)hn_mt_u32(g) * n;
  }
  return (uint32_t)(product >> 32);
}

static void swap(uint32_t *items, uint32_t a, uint32_t b) {
  const uint32_t item = items[a];
  items[a] = items[b];
  items[b] = item;
}

void hn_mt_shuffle(hn_mt *g, uint32_t *items, uint32_t n) {
  if (n == 0) return;
  const bool pairs = UINT32_MAX / n >= n;
  uint32_t i = 1;
  if (pairs && n % 2 == 0) swap(items, i++, hn_mt_below(g, 2));
  for (; pairs && i < n; i += 2) {
    const uint32_t x = hn_mt_below(g, (i + 1) * (i + 2));
    swap(items, i, x / (i + 2));
    swap(items, i + 1, x % (i + 2));
  }
  for (; i < n; i++) swap(items, i, hn_mt_below(g, i + 1));
}
