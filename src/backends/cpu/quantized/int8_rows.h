/* What the driver of the gemm_int8 kernels writes into a task's scratch (int8_driver.h says what for). */
#ifndef HN_CPU_QUANTIZED_INT8_ROWS_H
#define HN_CPU_QUANTIZED_INT8_ROWS_H

#include "backends/cpu/quantized/int8_conv.h"

/* Lines of the input that so many lines of the output read. */
static inline int64_t hn_int8_lines(const hn_int8_conv *c, int64_t out) {
  return (out - 1) * c->stride[1] + (c->kernel[1] - 1) * c->dilation[1] + 1;
}

/* Rows [r0, r1) of A for a group, c->ld bytes from row to row, behind each of which as many may be written.
 */
void hn_int8_bring_rows(const hn_int8_conv *c, const uint8_t *x, int64_t group, int64_t r0, int64_t r1,
                        uint8_t *d);

/* Of c->lines: the input of the rows [r0, r1), whole lines of one image, c->line bytes from line to line. */
void hn_int8_bring_lines(const hn_int8_conv *c, const uint8_t *x, int64_t group, int64_t r0, int64_t r1,
                         uint8_t *d);

/* The sums of the rows [r0, r1) of A, which lie in the input x or were brought to d. */
void hn_int8_sum_rows(const hn_int8_conv *c, const hn_int8_ops *o, const uint8_t *x, int64_t group,
                      const uint8_t *d, int64_t r0, int64_t r1, int32_t *sums);

#endif
