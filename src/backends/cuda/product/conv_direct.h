/* Convolutions by their definition (product/conv_direct.cu). */
#ifndef HN_CUDA_PRODUCT_CONV_DIRECT_H
#define HN_CUDA_PRODUCT_CONV_DIRECT_H

#include "backends/tactic.h"

typedef struct hn_cuda_conv_direct_config {
  bool transposed;
} hn_cuda_conv_direct_config;

bool hn_cuda_conv_direct_accepts(const hone_step *s, const hone_machine *m,
                                 const hn_cuda_conv_direct_config *config, hone_reason *why);
double hn_cuda_conv_direct_cost(const hone_step *s, const hone_machine *m,
                                const hn_cuda_conv_direct_config *config);
hone_status hn_cuda_conv_direct_need(const hone_step *s, const hone_machine *m,
                                     const hn_cuda_conv_direct_config *config, hone_tactic_need *need,
                                     hone_error *error);
hone_status hn_cuda_conv_direct_prepack(const hone_step *s, const hone_machine *m,
                                        const hn_cuda_conv_direct_config *config, void *blob,
                                        hone_error *error);
hone_status hn_cuda_conv_direct_run(const hone_step_run *r, const hn_cuda_conv_direct_config *config,
                                    hone_error *error);

#define hn_cuda_conv_direct_tactic(NAME, ANCHOR, ...)                                                        \
  HN_TACTIC_PACKED(cuda, NAME, ANCHOR, 1, hn_cuda_conv_direct, __VA_ARGS__)

#endif
