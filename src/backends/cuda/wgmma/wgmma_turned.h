/* Conv with constant weights on conv_turned.cu (arch 90): tiles of channels x any eights of pixels. A
 * tactic is a number of channels, and of blocks that divide K; how many pixels a tile has follows from the
 * step. */
#ifndef HN_CUDA_PRODUCT_WGMMA_TURNED_H
#define HN_CUDA_PRODUCT_WGMMA_TURNED_H

#include "backends/cuda/wgmma/wgmma_problem.h"
#include "backends/tactic.h"
#include "base/str.h"

typedef struct hn_wgmma_turned_config {
  uint32_t wm;     /* 64s of channels of a warpgroup */
  uint32_t splits; /* blocks of a cluster, which divide K; 1: no clusters */
} hn_wgmma_turned_config;

HN_FAMILY_PACKED(hn_wgmma_turned);
HN_FAMILY_SHARED(hn_wgmma_turned);

/* How a step is run; names as in conv_turned.cu. */
typedef struct hn_turned {
  hn_wgmma_problem q;
  uint32_t channels, n, stages, panels, n_tiles, splits;
  bool bordered; /* of codes: kinds of pixels lie in shared memory */
} hn_turned;

/* For any problem that hn_wgmma_read or hn_wgmma_fits has taken (p->q: `staged`, `unread` and `functions` are
 * set): its tiles, or a refusal; seconds; bytes of weights; the text's prefix but for the epilogue; and the
 * launch, for which the caller has filled in the epilogue's or the codes' arguments. added: the tensor that
 * comes through shared memory. */
bool hn_turned_tiles(hn_turned *p, const hone_machine *m, const hn_wgmma_turned_config *c, hone_reason *why);
double hn_turned_seconds(const hone_machine *m, const hn_turned *p);
size_t hn_turned_weights(const hn_turned *p);
void hn_turned_prefix(const hn_turned *p, const hn_wgmma_turned_config *c, hn_str *text);
hone_status hn_turned_launch(const hone_step_run *run, const hn_turned *p, const void *added,
                             hn_conv_wgmma_args *args, const hn_str *text, hone_error *error);

#define hn_cuda_wgmma_turned_tactic(NAME, ANCHOR, ...)                                                       \
  HN_TACTIC_PACKED_SHARED(cuda, NAME, ANCHOR, 1, hn_wgmma_turned, __VA_ARGS__)

#endif
