/* Strips of pixels by products of warpgroups (conv_strip.cu): how a step is run, of floats and of codes. */
#ifndef HN_CUDA_CONV_STRIP_H
#define HN_CUDA_CONV_STRIP_H

#include <hone/plugin.h>

#include "backends/cuda/wgmma/conv_strip_args.h"
#include "base/str.h"
#include "optimize/step/conv_attr.h"

/* Names as in conv_strip.cu. */
typedef struct hn_strip_plan {
  int64_t steps, blocks; /* products of 32 bytes; blocks of channels */
  int64_t channels;      /* of x, in whole swizzled pixels: 32, 64, 128 bytes */
  int64_t n, strips, lines, pixels;
  int64_t row, rows; /* bytes of a row in shared memory; rows in the ring */
  int64_t buffers;   /* panels of a warpgroup */
  int64_t shared, grid;
  int64_t size; /* bytes of an element: 1, codes, or 2 */
  bool staged, bordered, table;
} hn_strip_plan;

/* For a convolution of x and constant weights; p->size, staged, bordered and table are set. */
bool hn_strip_plan_of(const hone_machine *m, const hn_conv_attr *a, hn_strip_plan *p, hone_reason *why);
double hn_strip_seconds(const hone_machine *m, const hn_strip_plan *p, double bytes);
size_t hn_strip_weights(const hn_strip_plan *p);
/* Output channel, tap and channel of x of byte `byte` of a thread's 16 of a product. */
typedef struct hn_strip_weight {
  int64_t n, tap, c;
} hn_strip_weight;
hn_strip_weight hn_strip_weight_of(const hn_strip_plan *p, int64_t block, int64_t step, int64_t thread,
                                   int64_t byte);
/* The text's prefix but for types, products and epilogue; the launch, but for the epilogue's or the codes'
 * arguments. added: the tensor that comes through shared memory. */
void hn_strip_prefix(const hn_conv_attr *a, const hn_strip_plan *p, hn_str *t);
hone_status hn_strip_launch(const hone_step_run *r, const hn_conv_attr *a, const hn_strip_plan *p,
                            const void *added, hn_conv_strip_args *g, const hn_str *text, hone_error *error);

#endif
