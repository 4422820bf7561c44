/* Copies to memory that is not read soon, past the caches: lines that are written whole need not be fetched
 * first, and what the caches hold stays. Other threads see them after hn_stream_end. */
#ifndef HN_BASE_STREAM_H
#define HN_BASE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static inline void hn_stream_copy(void *to, const void *from, size_t bytes) {
  enum { LINE = 64 };
  size_t n = (uintptr_t)to % LINE ? 0 : bytes / LINE * LINE;
  for (size_t i = 0; i < n; i += LINE)
    for (size_t k = 0; k < LINE; k += sizeof(__m128i))
      _mm_stream_si128((__m128i *)(void *)((char *)to + i + k),
                       _mm_loadu_si128((const void *)((const char *)from + i + k)));
  if (n < bytes) memcpy((char *)to + n, (const char *)from + n, bytes - n);
}

static inline void hn_stream_end(void) { _mm_sfence(); }
#else
static inline void hn_stream_copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }
static inline void hn_stream_end(void) {}
#endif

#endif
