/* A product of the gemm_int8 kernels, and how its driver goes about it (int8_driver.h). */
#ifndef HN_CPU_QUANTIZED_INT8_CONV_H
#define HN_CPU_QUANTIZED_INT8_CONV_H

#include <stdint.h>

#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"

typedef struct hn_int8_conv {
  /* the problem; distances in bytes */
  int64_t batch, groups, cin, cout; /* channels of one group */
  int64_t in[3], out[3];
  int64_t kernel[3], stride[3], dilation[3], pad[3];
  int64_t in_pitch, in_bytes; /* from pixel to pixel, of the whole input */
  int64_t out_pitch;          /* bytes */
  int64_t wide;               /* sums become f32 */
  int64_t whole;              /* and wide: stay i32 */
  int64_t coded;              /* and then, behind the epilogue, codes */
  int64_t flip;               /* the input is i8 */
  int64_t halves;             /* the input are codes of 16 bits: all high bytes, and all low ones */
  int64_t padding;            /* byte of a tap that lies outside, as u8; of halves the high one */
  int64_t padding_low;        /* and the low one */
  int64_t zero, is_signed;    /* of the output */
  int64_t offsets;            /* weights have them (weight_codes.h) */
  /* the plan */
  int64_t joined;      /* groups of the problem that are one here: groups, cin and cout count those */
  int64_t k, k_packed; /* of a group: cin * taps; the same in steps of the kernel */
  int64_t segment;     /* of the packed k: parts that follow each other, in steps of the kernel */
  int64_t n_segments, segment_at[HN_INT8_SEGMENTS]; /* bytes from a row's first segment */
  int64_t listed; /* behind the packed weights of a group lie its blocks' hn_int8_fours */
  int64_t rows;   /* of all images */
  int64_t direct, lines;
  int64_t width, line;                       /* lines: pixels with padding, bytes from line to line */
  int64_t run_taps, run;                     /* taps, bytes that follow each other in the input */
  int64_t ld, slab;                          /* scratch: from row to row, rows */
  int64_t unit;                              /* rows that tasks do not share: a tile, or a line */
  int64_t tiles, m_tasks, n_tasks, n_panels; /* tiles: units */
  int64_t weights_outside; /* a panel of weights meets all tiles of a slab before the next panel's turn */
} hn_int8_conv;

#endif
