/* Tactics on conv_chain.cu: a convolution and the 1x1 behind it, whose input never reaches memory, on
 * Hopper's warpgroup products (arch 90). */
#ifndef HN_CUDA_COMMON_WGMMA_CHAIN_H
#define HN_CUDA_COMMON_WGMMA_CHAIN_H

#include <hone/plugin.h>

/* wm: 64s of rows that a warpgroup multiplies at once; a tile has 128 wm. */
bool hn_wgmma_chain_accepts(const hone_step *s, const hone_machine *m, uint32_t wm, hone_reason *why);
double hn_wgmma_chain_cost(const hone_step *s, const hone_machine *m, uint32_t wm);
hone_status hn_wgmma_chain_need(const hone_step *s, const hone_machine *m, uint32_t wm,
                                hone_tactic_need *need, hone_error *error);
hone_status hn_wgmma_chain_prepack(const hone_step *s, const hone_machine *m, uint32_t wm, void *blob,
                                   hone_error *error);
hone_status hn_wgmma_chain_run(const hone_step_run *run, uint32_t wm, hone_error *error);

/* A tactic file is one line. */
#define HN_WGMMA_CHAIN_TACTIC(NAME, ANCHOR, WM)                                                              \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_wgmma_chain_accepts(s, m, WM, why);                                                            \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_wgmma_chain_cost(s, m, WM); }    \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_wgmma_chain_need(s, m, WM, n, error);                                                          \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    return hn_wgmma_chain_prepack(s, m, WM, blob, error);                                                    \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    return hn_wgmma_chain_run(r, WM, error);                                                                 \
  }                                                                                                          \
  const struct hone_tactic_desc hn_cuda_tactic_##NAME = {HONE_DESC_HEAD(hone_tactic_desc),                   \
                                                         .name = #NAME,                                      \
                                                         .device = "cuda",                                   \
                                                         .anchor = ANCHOR,                                   \
                                                         .version = 1,                                       \
                                                         .accepts = accepts,                                 \
                                                         .cost = cost,                                       \
                                                         .need = need,                                       \
                                                         .prepack = prepack,                                 \
                                                         .run = run}

#endif
