/* Convolutions by their definition (tactics/conv_direct.cu). */
#ifndef HN_CUDA_COMMON_CONV_DIRECT_H
#define HN_CUDA_COMMON_CONV_DIRECT_H

#include <hone/plugin.h>

bool hn_cuda_conv_direct_accepts(const hone_step *s, bool transposed, hone_reason *why);
double hn_cuda_conv_direct_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_conv_direct_need(const hone_step *s, bool transposed, hone_tactic_need *need,
                                     hone_error *error);
hone_status hn_cuda_conv_direct_prepack(const hone_step *s, bool transposed, void *blob, hone_error *error);
hone_status hn_cuda_conv_direct_run(const hone_step_run *r, bool transposed, hone_error *error);

#define HN_CUDA_CONV_DIRECT(nm, op, transposed)                                                              \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    (void)m;                                                                                                 \
    return hn_cuda_conv_direct_accepts(s, transposed, why);                                                  \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *e) {   \
    (void)m;                                                                                                 \
    return hn_cuda_conv_direct_need(s, transposed, n, e);                                                    \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *e) {         \
    (void)m;                                                                                                 \
    return hn_cuda_conv_direct_prepack(s, transposed, blob, e);                                              \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *e) {                                            \
    return hn_cuda_conv_direct_run(r, transposed, e);                                                        \
  }                                                                                                          \
  const struct hone_tactic_desc hn_cuda_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                     \
                                                       .name = #nm,                                          \
                                                       .device = "cuda",                                     \
                                                       .anchor = op,                                         \
                                                       .version = 1,                                         \
                                                       .accepts = accepts,                                   \
                                                       .cost = hn_cuda_conv_direct_cost,                     \
                                                       .need = need,                                         \
                                                       .prepack = prepack,                                   \
                                                       .run = run}

#endif
