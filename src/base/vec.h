/* Growing arrays: HN_VEC(int) v = {0}; if (!hn_vec_push(&v, 3)) out of memory; v.ptr[i], v.len;
 * hn_vec_free(&v). */
#ifndef HN_BASE_VEC_H
#define HN_BASE_VEC_H

#include "base/mem.h"

#include <stdbool.h>

#define HN_VEC(type)                                                                                         \
  struct {                                                                                                   \
    type *ptr;                                                                                               \
    size_t len, cap;                                                                                         \
  }

/* Makes room for `want` elements of `size` bytes; false when out of memory (the vector is unchanged). */
bool hn_vec_grow(void **ptr, size_t *cap, size_t want, size_t size);

#define hn_vec_reserve(v, n) hn_vec_grow((void **)&(v)->ptr, &(v)->cap, (n), sizeof *(v)->ptr)
#define hn_vec_push(v, ...)                                                                                  \
  (hn_vec_reserve((v), (v)->len + 1) ? ((v)->ptr[(v)->len++] = (__VA_ARGS__), true) : false)
#define hn_vec_free(v) (hn_free((v)->ptr), (v)->ptr = NULL, (v)->len = (v)->cap = 0)

#endif
