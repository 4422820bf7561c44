/* Inner loops that ASan and UBSan do not watch step by step, as that would take most of a test's time: the
 * ends of what a loop touches are watched instead, before it begins. */
#ifndef HN_BASE_UNWATCHED_H
#define HN_BASE_UNWATCHED_H

#include "base/asan.h"

#include <stdint.h>

#if HN_ASAN
#define HN_UNWATCHED __attribute__((no_sanitize("address", "undefined")))

/* Touches the first and the last of n elements of so many bytes, step elements apart. Not inlined: it would
 * not be watched in an unwatched function. */
__attribute__((noinline, unused)) static void hn_watch_ends(const void *first, int64_t n, int64_t step,
                                                            int64_t bytes) {
  const volatile char *p = first;
  if (n <= 0) return;
  (void)p[0];
  (void)p[((n - 1) * step + 1) * bytes - 1];
}
#else
#define HN_UNWATCHED
#define hn_watch_ends(first, n, step, bytes) ((void)0)
#endif

#endif
