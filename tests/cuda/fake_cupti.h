/* What the test of traces tells the fake CUPTI; found by dlsym. */
#ifndef HN_TESTS_FAKE_CUPTI_H
#define HN_TESTS_FAKE_CUPTI_H

#include <stdint.h>

#define FAKE_CUPTI_AHEAD 123456789012345

void fake_cupti_refuse(int yes);
void fake_cupti_created(uintptr_t node);
void fake_cupti_cloned(uintptr_t node, uintptr_t original);
void fake_cupti_kernel(const char *name, int64_t start, int64_t end, uint64_t node);
void fake_cupti_copy(int64_t start, int64_t end, void *stream, uint64_t bytes);

#endif
