/* Tactics on product_simt.cu: Conv, Gemm and MatMul in f32 arithmetic, of operands in any form. */
#ifndef HN_CUDA_COMMON_PRODUCT_SIMT_H
#define HN_CUDA_COMMON_PRODUCT_SIMT_H

#include "backends/cuda/common/product.h"

typedef struct hn_simt_tile {
  uint32_t bm, bn;   /* rows and columns of a block of 256 threads: 64 or 128 */
  double efficiency; /* of the f32 peak where a launch fills the machine */
} hn_simt_tile;

bool hn_product_simt_accepts(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                             hone_reason *why);
double hn_product_simt_cost(const hone_step *s, const hone_machine *m, const hn_simt_tile *t);
hone_status hn_product_simt_need(const hone_step *s, const hone_machine *m, const hn_simt_tile *t,
                                 hone_tactic_need *need, hone_error *error);
hone_status hn_product_simt_prepack(const hone_step *s, void *blob, hone_error *error);
hone_status hn_product_simt_run(const hone_step_run *run, const hn_simt_tile *t, hone_error *error);

/* A tactic file is one line. */
#define HN_PRODUCT_SIMT_TACTIC(NAME, ANCHOR, ...)                                                            \
  static const hn_simt_tile tile = {__VA_ARGS__};                                                            \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_product_simt_accepts(s, m, &tile, why);                                                        \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) {                                            \
    return hn_product_simt_cost(s, m, &tile);                                                                \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n,                    \
                          hone_error *error) {                                                               \
    return hn_product_simt_need(s, m, &tile, n, error);                                                      \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error) {     \
    (void)m;                                                                                                 \
    return hn_product_simt_prepack(s, blob, error);                                                          \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    return hn_product_simt_run(r, &tile, error);                                                             \
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
