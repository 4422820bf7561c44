/* Tactics on conv_wgmma.cu: Conv, Gemm and MatMul with constant B on Hopper's warpgroup products (arch 90). A
 * tactic is a tile. */
#ifndef HN_CUDA_PRODUCT_WGMMA_H
#define HN_CUDA_PRODUCT_WGMMA_H

#include "backends/cuda/wgmma/wgmma_problem.h"
#include "backends/tactic.h"
#include "base/str.h"

typedef struct hn_wgmma_tile {
  uint32_t wm;     /* 64s of rows that a warpgroup multiplies at once */
  uint32_t bn;     /* columns */
  bool alternate;  /* the two warpgroups take turns in tiles; else they share one */
  bool split;      /* a cluster divides K of a tile of 64 rows */
  uint32_t groups; /* warpgroups that multiply: 2, or 3 that share a tile */
} hn_wgmma_tile;
typedef hn_wgmma_tile hn_wgmma_config;

HN_FAMILY_PACKED(hn_wgmma);
HN_FAMILY_SHARED(hn_wgmma);

/* Shared memory: the ring and what is on its way out. Two tiles on their way where K is so short that storing
 * them is what takes time. */
typedef struct hn_wgmma_layout {
  uint32_t stages, buffers, bytes;
} hn_wgmma_layout;

/* For any problem that hn_wgmma_read or hn_wgmma_fits has taken (`staged` and `unread` are set): its tiles
 * and splits, or a refusal; seconds; bytes of packed weights; the text's prefix but for the epilogue; and the
 * launch, for which the caller has filled in the epilogue's or the codes' arguments. staged: the tensor that
 * comes ahead of time, where one does. */
bool hn_wgmma_tiles(hn_wgmma_problem *q, const hone_machine *m, const hn_wgmma_tile *t, hone_reason *why);
double hn_wgmma_seconds(const hn_wgmma_problem *q, const hone_machine *m, const hn_wgmma_tile *t,
                        uint32_t splits);
size_t hn_wgmma_weights(const hn_wgmma_problem *q);
void hn_wgmma_prefix(const hn_wgmma_problem *q, const hn_wgmma_tile *t, hn_str *text);
hone_status hn_wgmma_launch(const hone_step_run *run, const hn_wgmma_problem *q, const hn_wgmma_tile *t,
                            const void *staged, hn_conv_wgmma_args *args, const hn_str *text,
                            hone_error *error);

/* The tiles, named by rows x columns. */
#define HN_WGMMA_64x64 1, 64, true, false, 2
#define HN_WGMMA_64x128 1, 128, true, false, 2
#define HN_WGMMA_128x64 2, 64, true, false, 2
#define HN_WGMMA_128x128 2, 128, true, false, 2
#define HN_WGMMA_256x128 2, 128, false, false, 2
#define HN_WGMMA_128x256 1, 256, false, false, 2
#define HN_WGMMA_192x128 1, 128, false, false, 3
#define HN_WGMMA_SPLIT_64 1, 64, false, true, 2
#define HN_WGMMA_SPLIT_32 1, 32, false, true, 2

#define hn_cuda_wgmma_tactic(NAME, ANCHOR, ...)                                                              \
  HN_TACTIC_PACKED_SHARED(cuda, NAME, ANCHOR, 2, hn_wgmma, __VA_ARGS__)

#endif
