/* A Conv step as a graph of cuDNN, and the tactics made of it. */
#ifndef HN_CUDA_COMMON_CUDNN_CONV_H
#define HN_CUDA_COMMON_CUDNN_CONV_H

#include "backends/cuda/common/cudnn_graph.h"
#include "optimize/lower/conv_attr.h"

typedef enum hn_cudnn_form {
  /* What cuDNN has whole kernels for: convolution, residual, bias in the storage type, ReLU, in this order and
   * each but the convolution optional (the residual only with a bias). */
  HN_CUDNN_NATIVE,
  /* Any list of epilogues, in f32 and in its own order: cuDNN compiles a kernel for it. */
  HN_CUDNN_FUSED
} hn_cudnn_form;

/* Where a tensor of the graph lies when the step runs. */
typedef enum hn_cudnn_place { HN_CUDNN_IN, HN_CUDNN_OUT, HN_CUDNN_BLOB } hn_cudnn_place;

typedef struct hn_cudnn_source {
  hn_cudnn_place place;
  uint32_t input; /* IN: the step's input; BLOB: the constant that it is packed from */
  size_t at;      /* BLOB: offset in bytes */
} hn_cudnn_source;

typedef struct hn_cudnn_conv {
  hn_conv_attr attr;
  hn_cudnn_spec spec;
  hn_cudnn_source source[HN_CUDNN_TENSORS];
  size_t blob_bytes;
  uint32_t packed; /* bits of the inputs that are in the blob */
  bool depthwise;
} hn_cudnn_conv;

/* False with the reason. Asks nothing of cuDNN. */
bool hn_cudnn_conv_of(const hone_step *s, hn_cudnn_form form, hn_cudnn_conv *out, hone_reason *why);
/* Writes the blob. */
void hn_cudnn_conv_pack(const hone_step *s, const hn_cudnn_conv *c, void *blob);

/* The tactic's functions, for a form and a candidate (which of the heuristics' engines). */
bool hn_cudnn_conv_accepts(const hone_step *s, const hone_machine *m, hn_cudnn_form form, uint32_t candidate,
                           hone_reason *why);
double hn_cudnn_conv_cost(const hone_step *s, const hone_machine *m, hn_cudnn_form form, uint32_t candidate);
hone_status hn_cudnn_conv_need(const hone_step *s, hn_cudnn_form form, hone_tactic_need *n, hone_error *error);
hone_status hn_cudnn_conv_prepack(const hone_step *s, hn_cudnn_form form, void *blob, hone_error *error);
hone_status hn_cudnn_conv_run(const hone_step_run *r, hn_cudnn_form form, uint32_t candidate,
                              hone_error *error);

/* A tactic: one form, one candidate. */
#define HN_CUDNN_CONV_TACTIC(stem, form, candidate)                                                          \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    return hn_cudnn_conv_accepts(s, m, form, candidate, why);                                                \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) {                                            \
    return hn_cudnn_conv_cost(s, m, form, candidate);                                                        \
  }                                                                                                          \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *e) {   \
    (void)m;                                                                                                 \
    return hn_cudnn_conv_need(s, form, n, e);                                                                \
  }                                                                                                          \
  static hone_status prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *e) {         \
    (void)m;                                                                                                 \
    return hn_cudnn_conv_prepack(s, form, blob, e);                                                          \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *e) {                                            \
    return hn_cudnn_conv_run(r, form, candidate, e);                                                         \
  }                                                                                                          \
  const struct hone_tactic_desc hn_cuda_tactic_##stem = {HONE_DESC_HEAD(hone_tactic_desc),                   \
                                                         .name = #stem,                                      \
                                                         .device = "cuda",                                   \
                                                         .anchor = "Conv",                                   \
                                                         .version = 1,                                       \
                                                         .accepts = accepts,                                 \
                                                         .cost = cost,                                       \
                                                         .need = need,                                       \
                                                         .prepack = prepack,                                 \
                                                         .run = run}

#endif
