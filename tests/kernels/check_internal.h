/* State of one run of check_kernels, shared by check.c, roof.c and check_kernels.c. */
#ifndef HN_TESTS_KERNELS_CHECK_INTERNAL_H
#define HN_TESTS_KERNELS_CHECK_INTERNAL_H

#include "check.h"

typedef struct ck_block {
  unsigned char *map; /* whole mapping */
  size_t map_bytes;
  float *data;
  size_t n, misalign;
  struct ck_block *next;
} ck_block;

struct ck {
  const struct hn_kernel *kernel;
  uint64_t random;
  char label[200];
  uint64_t comparisons, failures;
  const char *lacks; /* what the processor has not, or NULL */
  ck_block *blocks;
  void (*on_failure)(const ck *c); /* called at each one, or NULL; need not return */
  int fills;
  unsigned fill_loops; /* that asked for them */
  unsigned cases;
};

/* One thread, measured at the first call: operations a second of a tier, divisions of f32 numbers a second.
 */
double ck_peak_flops(hn_isa isa, ck_unit unit);
double ck_divide_rate(hn_isa isa);
/* The least time that the work can take: the largest of the roofs' times; *which names that roof. */
double ck_roof_seconds(hn_isa isa, const ck_work *work, const char **which);
/* bench.c: after all kernels, a line for each: its share of the roof over its shapes, and why it is low. */
void ck_bench_summary(bool markdown);
double ck_now(void);

#endif
