/* Images by products of warpgroups (conv_image_wgmma.cu): how a step is run, of floats and of codes. */
#ifndef HN_CUDA_CONV_IMAGE_WGMMA_H
#define HN_CUDA_CONV_IMAGE_WGMMA_H

#include <hone/plugin.h>

#include "backends/cuda/product/conv_image_args.h"
#include "base/str.h"
#include "optimize/step/conv_attr.h"

/* Names as in conv_image_wgmma.cu. */
typedef struct hn_image_plan {
  int64_t win, steps, bn, blocks; /* blocks: of bn channels */
  int64_t rows;                   /* of the output, of a warpgroup */
  int64_t n, parts, buffers, resident;
  int64_t tiles_w, tiles_h, tiles;
  int64_t shared; /* bytes */
  bool codes;
} hn_image_plan;

bool hn_image_plan_of(const hone_machine *m, const hn_conv_attr *a, bool codes, hn_image_plan *p,
                      hone_reason *why);
double hn_image_seconds(const hone_machine *m, const hn_image_plan *p, double bytes);
/* Bytes of packed weights; output channel, row and column of the kernel and channel of the pixel of byte i of
 * a thread's 16 of a product. */
size_t hn_image_weights(const hn_image_plan *p);
typedef struct hn_image_weight {
  int64_t n, y, x, c;
} hn_image_weight;
hn_image_weight hn_image_weight_of(const hn_image_plan *p, const hn_conv_attr *a, int64_t block, int64_t step,
                                   int64_t thread, int64_t byte);
/* The text's prefix but for types, products and epilogue; the launch, but for g->tiles and what follows. */
void hn_image_prefix(const hn_conv_attr *a, const hn_image_plan *p, hn_str *t);
hone_status hn_image_launch(const hone_step_run *r, const hn_image_plan *p, hn_conv_image_args *g,
                            const hn_str *text, hone_error *error);

#endif
