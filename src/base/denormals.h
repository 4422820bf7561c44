/* The calling thread's mode for denormal numbers (x86-64: MXCSR). */
#ifndef HN_BASE_DENORMALS_H
#define HN_BASE_DENORMALS_H

#include <stdint.h>
#include <xmmintrin.h>

enum { HN_DENORMALS_ZERO = 0x8040 /* results (FTZ, bit 15) and operands (DAZ, bit 6) count as zero */ };

/* Without the flags of exceptions that have happened: those stay as they are, also the caller's. */
enum { HN_FLOAT_FLAGS = 0x3f };
static inline uint32_t hn_float_mode(void) { return _mm_getcsr() & ~(uint32_t)HN_FLOAT_FLAGS; }
static inline void hn_set_float_mode(uint32_t mode) { _mm_setcsr(mode | (_mm_getcsr() & HN_FLOAT_FLAGS)); }

#endif
