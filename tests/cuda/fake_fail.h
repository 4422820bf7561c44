/* Failures on purpose, for both fake libraries. HONE_FAKE_FAIL is a list with commas of
 *   FUNCTION:N[:CODE[:TEXT]]   the N-th call of the function answers CODE (without one: what is usual for it)
 *   FUNCTION:N+[...]           and so does every later one
 * FUNCTION is a symbol ("cuMemAlloc_v2"), or "kernel" for the N-th kernel that runs: the fault shows at the
 * next call that waits, and the context is lost. HONE_FAKE_MISSING is a list of symbols that the library then
 * lacks. */
#ifndef HN_TESTS_CUDA_FAKE_FAIL_H
#define HN_TESTS_CUDA_FAKE_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* Counts a call of the function; true when this one has to fail. *code is left alone where the list has none.
 */
bool fake_fails(const char *function, int *code, char *text, size_t size);
/* Forgets all counts. A list that has changed is noticed without. */
void fake_fail_reset(void);
/* Hides the symbols of HONE_FAKE_MISSING; to be called from the library's constructor. */
void fake_hide_missing(void);

#endif
