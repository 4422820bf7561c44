/* Depthwise convolution of codes, one or two dimensions, channels-last: cuts the output into blocks of rows
 * and slabs of channels (the input rows that neighbouring output rows share stay in L1) and calls the
 * depthwise_int8 kernels. */
#ifndef HN_CPU_QUANTIZED_DEPTHWISE_INT8_DRIVER_H
#define HN_CPU_QUANTIZED_DEPTHWISE_INT8_DRIVER_H

#include "backends/cpu/kernels/code_table/code_table.h"
#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/depthwise_int8/depthwise_int8.h"
#include "backends/cpu/quantized/code_rows.h"
#include "backends/cpu/quantized/weight_codes.h"

/* At most: kernel rows; parts of a weight, which less its zero point may be 255. Lines that are kept where
 * pixels are folded. */
enum { HN_DW8_KERNEL_ROWS = 64, HN_DW8_PARTS = 3, HN_DW8_LINES = 16 };

typedef struct hn_dw8 {
  int64_t batch, channels;
  int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* height, width */
  int64_t in_pitch, out_pitch; /* bytes from pixel to pixel; lines and images follow without a gap */
  int64_t wide;                /* sums become f32 */
  int64_t whole;               /* and wide: stay i32 */
  int64_t coded;               /* and then, behind the epilogue, codes */
  int64_t flip, padding, zero, is_signed; /* as in hn_int8_conv */
  int64_t parts; /* weights are sums of so many i8: kernel rows follow each other so many times; 0: one */
  /* set by hn_dw8_plan */
  int64_t fold;                   /* pixels beside each other that share a block of few channels; 1: none */
  int64_t phases;                 /* with fold: input pixels are sorted by their place modulo the stride */
  int64_t taps;                   /* of a kernel row in one phase */
  int64_t groups;                 /* of kernel rows */
  int64_t blocks, slab;           /* blocks of 32 channels; that a slab has */
  int64_t row_blocks, slab_tasks; /* tasks: batch * row_blocks * slab_tasks */
} hn_dw8;

void hn_dw8_plan(hn_dw8 *d, uint32_t threads, size_t l1);
/* How many parts the weights need; what is packed and run after hn_dw8_split has no more. */
int64_t hn_dw8_parts(const hn_dw8 *d, const hn_weight_codes *w);
void hn_dw8_split(hn_dw8 *d, int64_t parts);
double hn_dw8_seconds(const hn_dw8 *d, const hn_dw8_ops *o, double peak, double cache);

/* Bytes of the packed weights; values of bias and scale; bytes of a line of padding, which stands for the
 * input's rows outside of the image. */
size_t hn_dw8_weights(const hn_dw8 *d);
size_t hn_dw8_values(const hn_dw8 *d);
size_t hn_dw8_line(const hn_dw8 *d);
/* A thread's: a line of a block that becomes codes; lines of folded pixels. */
size_t hn_dw8_scratch(const hn_dw8 *d);
/* The channel of value i in the kernels' order; -1: none. */
int64_t hn_dw8_value_channel(const hn_dw8 *d, int64_t i);

/* w: [channels][kernel rows][taps].  sums: of each channel's weights less their zero point, in the kernels'
 * order. */
void hn_dw8_pack(const hn_dw8 *d, const hn_weight_codes *w, int8_t *dst, int32_t *sums);
void hn_dw8_fill_line(const hn_dw8 *d, uint8_t *line);

typedef struct hn_dw8_args {
  const hn_dw8 *d;
  const hn_dw8_ops *ops;
  const uint8_t *x, *line;
  const int8_t *w;
  const int32_t *bias;
  const float *scale;          /* NULL where d->whole */
  const hn_epilogue *epilogue; /* of f32 results, all of it row operations; NULL: none */
  const hn_code_rows *codes;   /* of d->coded: what the epilogue's results become */
  uint8_t *scratch;            /* hn_dw8_scratch bytes a thread */
  const uint8_t *table;        /* what becomes of each of the 256 codes of a result; NULL: they stay */
  const hn_code_table_ops *tables;
  void *y;
} hn_dw8_args;

void hn_dw8_exec(const hn_dw8_args *a, hn_parallel_fn parallel, void *pool);

#endif
