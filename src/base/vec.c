#include "base/vec.h"

bool hn_vec_grow(void **ptr, size_t *cap, size_t want, size_t size) {
  if (want <= *cap) return true;
  size_t n = *cap ? *cap : 8;
  while (n < want) {
    if (n > SIZE_MAX / 2 / size) return false;
    n *= 2;
  }
  void *p = hn_realloc(*ptr, n * size);
  if (!p) return false;
  *ptr = p;
  *cap = n;
  return true;
}
