/* The driver of the gemm_int8 kernels: Conv of 1 to 3 dimensions with any kernel, stride, dilation and
 * groups, and products of a matrix with constant weights, from codes to codes.
 *
 * Output pixels are the rows of A.  Where an input pixel is a row as it lies (`direct`), kernels read the
 * input itself; elsewhere a task brings a slab of rows together in its own scratch, with the input's zero
 * point as padding (taps follow the image's lines, channels fastest), or, of images (`lines`), the lines that
 * they are read from, a segment of a row in each.  Signed codes are brought with their
 * top bit turned: u8 with a zero point larger by 128.  Codes of 16 bits are two inputs, bytes each: a tile
 * has both sums, each exact in i32, and 256 times the one and the other as f32.  Results are codes, or f32
 * with an epilogue, or what that makes as codes. */
#ifndef HN_CPU_QUANTIZED_INT8_DRIVER_H
#define HN_CPU_QUANTIZED_INT8_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/cpu/kernels/code_table/code_table.h"
#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/quantized/code_rows.h"
#include "backends/cpu/quantized/int8_conv.h"
#include "backends/cpu/quantized/weight_codes.h"

/* Fills the plan; where that is less work, several groups become one (joined). False with a reason: outside
 * what the driver does. */
bool hn_int8_plan(hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads, size_t l2, const char **why);

/* Seconds on a machine of `peak` f32 FLOP/s and `cache` bytes/s, all threads together. */
double hn_int8_seconds(const hn_int8_conv *c, const hn_int8_ops *o, double peak, double cache);

/* Of one group: bytes of the packed weights (and lists behind them), columns of bias and scale. */
size_t hn_int8_weights(const hn_int8_conv *c);
/* What the order of packed weights follows from, beside themselves, as one number. */
uint64_t hn_int8_order(const hn_int8_conv *c);
size_t hn_int8_columns(const hn_int8_conv *c);
size_t hn_int8_workspace(const hn_int8_conv *c, const hn_int8_ops *o, uint32_t threads);

/* Packs group `group`, cout channels: value k of channel j is w[at(k) + j * column], at(k) = tap * s_tap +
 * channel * s_channel for k = tap * cin + channel, where channels count from the first of the group that j
 * has in the weights; joined groups' channels other than those are 0.  sums: of each channel's weights less
 * their zero point. True: there are offsets other than 0. */
bool hn_int8_pack(const hn_int8_conv *c, const hn_int8_ops *o, const hn_weight_codes *w, int64_t group,
                  int64_t column, int64_t s_tap, int64_t s_channel, int8_t *dst, int32_t *sums,
                  int32_t *offsets);

typedef struct hn_int8_args {
  const hn_int8_conv *conv;
  const hn_int8_ops *ops;
  const uint8_t *x;
  const uint8_t *x_low;                 /* of conv->halves: x are the high bytes */
  const int8_t *w;                      /* groups one after the other */
  const int32_t *bias;                  /* hn_int8_columns a group, zero point of the input taken off */
  const int32_t *bias_low;              /* of conv->halves, with the low byte of the zero point */
  const int32_t *offset;                /* hn_int8_columns a group; read where conv->offsets */
  const float *scale;                   /* NULL where conv->whole */
  const hn_epilogue *epilogue;          /* of f32 results, all of it row operations; NULL: none */
  const struct hn_quantize_ops *halves; /* of conv->halves */
  const hn_code_rows *codes;            /* of conv->coded: what the epilogue's results become */
  const uint8_t *table; /* what becomes of each of the 256 codes of a result; NULL: they stay */
  const hn_code_table_ops *tables;
  void *y;
  uint8_t *scratch;
} hn_int8_args;

void hn_int8_exec(const hn_int8_args *a, hn_parallel_fn parallel, void *pool);

#endif
