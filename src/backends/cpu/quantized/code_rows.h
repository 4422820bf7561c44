/* Blocks of f32 rows that become codes where they belong. */
#ifndef HN_CPU_QUANTIZED_CODE_ROWS_H
#define HN_CPU_QUANTIZED_CODE_ROWS_H

#include <stdint.h>

#include "backends/cpu/kernels/act_codes/act_codes.h"
#include "backends/cpu/kernels/post/epilogue.h"
#include "backends/cpu/kernels/quantize/quantize.h"

typedef struct hn_code_rows {
  const struct hn_quantize_ops *ops;
  const float *scale, *zero; /* one, or one a column */
  bool vectors, is_signed;
  const struct hn_act_codes_ops *joined; /* does the epilogue as well; NULL: that went before */
  hn_act_codes act;
} hn_code_rows;

/* Lets *c do the epilogue e, too, where that is a bias and a function at most and there is one zero point.
 * over: memory for as many floats as there are scales, `count`; e is then empty. */
void hn_code_rows_join(hn_code_rows *c, hn_epilogue *e, hn_isa isa, float *over, int64_t count);

/* Bytes of scratch of a block: the floats, and codes that are not yet in their place. */
size_t hn_code_rows_bytes(int64_t rows, int64_t n);

/* `rows` rows of n floats, one after the other at `block`, of columns c0 and on: their codes go to y, `pitch`
 * bytes from row to row. */
void hn_code_rows_put(const hn_code_rows *c, float *block, int64_t rows, int64_t n, int64_t c0, uint8_t *y,
                      int64_t pitch);

#endif
