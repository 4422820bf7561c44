/* Convolutions that adapters send through their drivers; the list is of the gemm families. */
#ifndef HN_TESTS_KERNELS_CONV_CASES_H
#define HN_TESTS_KERNELS_CONV_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ck_conv_case {
  int64_t batch, groups, cin, cout, in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
  int64_t extra_in, extra_out; /* channel pitch beyond the channels */
  uint32_t flags;
  bool post; /* followed by 2 x^2 r; by -2 x in conv_oracle.c */
} ck_conv_case;

/* A family leaves out what its driver refuses by rule. */
extern const ck_conv_case ck_conv_cases[];
extern const size_t ck_n_conv_cases;

/* All tasks, one after the other, as two threads. */
void ck_serial(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg);
/* The same as one thread. */
void ck_alone(void *pool, int64_t tasks, void (*fn)(void *, int64_t, uint32_t), void *arg);

/* The activation of `post`. */
void ck_square(float *x, size_t n, const float *p);

#endif
