/* Conv, Gemm and MatMul as matrix products: what the product kernels want to know of a step. */
#ifndef HN_CUDA_PRODUCT_PRODUCT_H
#define HN_CUDA_PRODUCT_PRODUCT_H

#include <hone/plugin.h>

#include "backends/cuda/device/product_args.h"
#include "backends/cuda/driver/cuda.h"
#include "base/str.h"

typedef struct hn_product {
  hn_product_args args;                        /* without addresses and tiling */
  hone_dtype a_type, b_type, c_type, out_type; /* b_type: of dynamic B; c_type: NONE without a general C */
  bool conv, one_tap;                          /* one_tap: a row of A is one run of memory */
  bool constant;                               /* B is packed at plan time */
  bool a_chunks;                               /* rows of A begin at chunks and consist of whole ones */
  bool b_chunks;                               /* the same of the columns of a dynamic B */
  bool b_lines;   /* rows of a dynamic B begin at chunks and consist of whole ones */
  int bias;       /* input that the generated epilogue adds first; HN_CUDA_NO_BIAS */
  uint32_t store; /* columns that are stored at once: 8, 4 or 1 */
  uint32_t chunk; /* elements of a chunk of A */
  double flops, bytes;
  const hn_codes_args *codes; /* of products of codes; NULL for all others */
} hn_product;

/* Reads the step of any of the three anchors. */
bool hn_product_of(const hone_step *s, hn_product *p, hone_reason *why);
/* The same of a step whose operands and result are codes of 8 bits, and no more than that (inputs x and w, no
 * epilogue). `codes`: what hn_product_launch gives the kernel; has to last as long as p. */
bool hn_product_of_codes(const hone_step *s, const hn_codes_args *codes, hn_product *p, hone_reason *why);

/* Elements that a packed B has: [product][n][k] with k in whole chunks (`rows` false), or [product][k][n]
 * with n rounded up to 4 (`rows`). Sets B's distances in p->args to match. */
size_t hn_product_pack_layout(hn_product *p, bool rows);
/* Packs the step's B as `type`, that layout; TF32 rounds f32 to tf32. */
typedef enum hn_product_type {
  HN_PRODUCT_F32,
  HN_PRODUCT_TF32,
  HN_PRODUCT_F16,
  HN_PRODUCT_BF16,
  HN_PRODUCT_I8 /* weights that are i8 */
} hn_product_type;
void hn_product_pack(const hone_step *s, const hn_product *p, bool rows, hn_product_type type, void *blob);
/* hone_tactic_desc.shared of a blob that is the packed B alone. */
size_t hn_product_shared(const hn_product *p, bool rows, hn_product_type type, uint64_t *key);
/* To 10 bits of mantissa, ties away from zero as the device's conversion. */
float hn_product_to_tf32(float f);

/* Splits of K that a launch may have: blocks that share a tile. They are a cluster where there are clusters;
 * elsewhere they meet through memory, in this much workspace. */
enum { HN_PRODUCT_SPLITS = 8 };
/* Bytes of shared memory that device/product.cuh has beside the tile: which block of a divided K was last. */
enum { HN_PRODUCT_OWN_SHARED = 16 };
size_t hn_product_workspace(const hn_product *p, const hone_machine *m, uint32_t bm, uint32_t bn);

static inline bool hn_product_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }

/* Launches kernel `name` (text and entry) on all tiles and splits of p. text: the kernel's own part of the
 * prefix, behind which comes what product.cuh wants; it is freed. */
hone_status hn_product_launch(const hone_step_run *run, hn_product *p, hn_str *text, const char *name,
                              hn_cuda_shape *shape, hone_error *error);

#endif
