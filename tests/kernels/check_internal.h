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
  ck_block *blocks;
  bool json;
};

/* Peak f32 FLOP/s of one thread with the instructions of that tier, and read bandwidth (bytes/s) of one
 * thread at a footprint of that many bytes; measured at the first call. */
double ck_peak_flops(hn_isa isa);
double ck_read_bandwidth(double footprint);
double ck_now(void);

#endif
