/* Small arithmetic on sizes and counts. (hn_round_up for bytes of memory: base/mem.h.) */
#ifndef HN_BASE_INTEGERS_H
#define HN_BASE_INTEGERS_H

#include <stdint.h>

static inline int64_t hn_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t hn_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* How many pieces of `piece` > 0 hold n >= 0. */
static inline int64_t hn_div_up(int64_t n, int64_t piece) { return (n + piece - 1) / piece; }

/* n >= 0, and so much more that whole pieces are full. */
static inline int64_t hn_fill_up(int64_t n, int64_t piece) { return hn_div_up(n, piece) * piece; }

#endif
