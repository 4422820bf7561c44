/* Allocation. Every allocation of the library comes through here, so that tests can make each one fail once.
 */
#ifndef HN_BASE_MEM_H
#define HN_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return NULL on failure, also when count * size overflows. A size of 0 gives a valid unique pointer. */
void *hn_malloc(size_t size);
void *hn_calloc(size_t count, size_t size);
void *hn_realloc(void *old, size_t size);
void *hn_aligned(size_t alignment, size_t size); /* freed with hn_free */
/* Zeros, straight from the system, at least a page each: size and alignment are multiples of pages. */
void *hn_pages(size_t alignment, size_t size);
void hn_pages_free(void *p, size_t size);
char *hn_strdup(const char *s);
void hn_free(void *p);

/* How often this thread was refused memory so far: hn_settle (base/error.h) asks. */
uint64_t hn_mem_lost(void);
/* What was refused since hn_mem_lost() said `lost` was got after all, elsewhere or later. */
void hn_mem_forgive(uint64_t lost);

/* Around a call of another library that says "bad file" when its own memory is lacking, or loses a character
 * without a word (jansson): end counts ENOMEM since begin as a refusal of this thread. */
void hn_mem_foreign_begin(void);
void hn_mem_foreign_end(void);

/* Tests: the n-th allocation from now (1 is the next) fails once; 0 switches it off. */
void hn_mem_fail_after(uint64_t n);
/* True when the allocation that hn_mem_fail_after named was reached. */
bool hn_mem_failed(void);
/* Allocations made so far in this process. */
uint64_t hn_mem_count(void);

#define HN_MEM_ALIGN 64 /* cache line and widest vector */

static inline size_t hn_round_up(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

#endif
