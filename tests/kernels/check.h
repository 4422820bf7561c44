/* Test harness of the CPU kernels.  check_kernels walks kernels.def; every family has one adapter file
 * (tests/kernels/family_<family>.c, one line in src/backends/cpu/families.def) that knows how to call kernels
 * of that family through their real driver, an oracle with double accumulation, and a bench.  A kernel whose
 * family has no adapter, or whose adapter made no comparison at all, fails the run: an untested kernel cannot
 * exist. */
#ifndef HN_TESTS_KERNELS_CHECK_H
#define HN_TESTS_KERNELS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/kernel.h"

typedef struct ck ck; /* state of one check of one kernel */

typedef struct ck_family {
  const char *family;
  void (*check)(ck *c, const struct hn_kernel *k);
  void (*bench)(ck *c, const struct hn_kernel *k); /* calls ck_bench_line; may be NULL */
} ck_family;

/* ---- values */
enum ck_fill {
  CK_RANDOM,   /* uniform in [-1, 1] */
  CK_SPECIAL,  /* random with a few Inf, -Inf and NaN */
  CK_ZEROS,    /* +0 and -0 */
  CK_DENORMAL, /* denormals of both signs, mixed with a few normal values near FLT_MIN */
  CK_WIDE,     /* magnitudes from 2^-20 to 2^20 */
  CK_FILLS
};
/* How many of them a loop goes through: all, or (--fills N) the first or the first N. Asked once before it.
 */
int ck_fills(ck *c);
const char *ck_fill_name(enum ck_fill f);
uint64_t ck_random(ck *c); /* seeded per kernel, the same in every run */
void ck_fill(ck *c, float *x, size_t n, enum ck_fill f);

/* ---- memory that ends at a guard page
 * n floats whose last byte is the last one before an inaccessible page: an overrun of one byte faults, the
 * fault is reported with the case's label.  misalign (in floats) > 0 leaves that many floats between the end
 * and the guard page to get odd alignments (they hold a pattern that ck_release checks); the area in front of
 * the block holds one, too, so that an underrun is seen.  Outputs: pre-filled with a signalling pattern, so
 * an element not written is seen. */
float *ck_alloc(ck *c, size_t n, size_t misalign);
void ck_release_all(
    ck *c); /* checks the patterns, frees every block; the harness calls it after check, too */

/* ---- comparisons
 * Names the case for all messages until the next call. */
void ck_case(ck *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* One output element: got against the oracle; fails unless |got - want| <= bound.  A NaN wants a NaN, an
 * infinity the same infinity (an infinite bound accepts everything but the wrong NaN-ness). */
void ck_near(ck *c, size_t index, float got, double want, double bound);
/* Bit-exact (integers, moves, max-pooling); NaN equals NaN. */
void ck_same(ck *c, size_t index, float got, float want);
void ck_true(ck *c, bool ok, const char *what);
/* The processor is of the kernel's tier but lacks this feature: the kernel is skipped. */
void ck_lacks(ck *c, const char *feature);
bool ck_failed(const ck *c); /* this kernel has failed already: an adapter may stop early */

/* Rounding unit of float: 2^-24.  Bounds are derived: for a sum of k products, (k + 2) * CK_EPS * sum|a||b| +
 * k * CK_TINY. */
#define CK_EPS 5.9604644775390625e-08
#define CK_TINY 1.401298464324817e-45 /* smallest denormal: absolute error of an underflowing product */
#define CK_WEIGHT 1.65e-38            /* exp(-87): weights beside one of 1 below it are 0 */

/* ---- bench
 * Runs fn(arg) until the time is stable; returns the best seconds a call. */
double ck_time(void (*fn)(void *), void *arg);
/* What a call has to do at least. */
typedef enum ck_unit { CK_F32, CK_BF16, CK_INT8, CK_UNITS } ck_unit;
typedef struct ck_work {
  ck_unit unit;        /* of flops; a tier without such instructions is measured in f32's */
  double flops;        /* multiply-adds count 2 */
  double instructions; /* of f32, other than multiply-adds, times lanes: each takes the place of one
                          multiply-add */
  double divisions;
  double read, written; /* bytes, each once */
} ck_work;
/* Prints one line: label, time, GFLOP/s, GB/s, % of the measured roof (whichever bounds), x scalar
 * (scalar_seconds <= 0: not shown). */
void ck_bench_line(ck *c, const char *label, double seconds, const ck_work *work, double scalar_seconds);

#endif
