/* A step as one graph of cuDNN, and the tactics made of it. What kind of step it is (convolution, product) is
 * described in files of their own; tensors of the graph, epilogues, plans and launches are the same for all.
 */
#ifndef HN_CUDA_LIBRARIES_CUDNN_STEP_H
#define HN_CUDA_LIBRARIES_CUDNN_STEP_H

#include "backends/cuda/libraries/cudnn_graph.h"
#include "backends/tactic.h"

/* Where a tensor of the graph lies when the step runs. */
typedef enum hn_cudnn_place { HN_CUDNN_IN, HN_CUDNN_OUT, HN_CUDNN_BLOB } hn_cudnn_place;

typedef struct hn_cudnn_source {
  hn_cudnn_place place;
  uint32_t input; /* IN: the step's input; BLOB: the constant that it is packed from */
  size_t at;      /* BLOB: offset in bytes */
} hn_cudnn_source;

typedef struct hn_cudnn_step {
  hn_cudnn_spec spec;
  hn_cudnn_source source[HN_CUDNN_TENSORS];
  size_t blob_bytes;
  uint32_t packed;        /* bits of the inputs that are in the blob */
  int64_t channels;       /* values of a vector of the epilogue */
  hn_cudnn_tensor vector; /* such a vector: as many as the output has channels, padding included */
} hn_cudnn_step;

/* What a kind of step adds. */
typedef struct hn_cudnn_kind {
  /* False with the reason. Asks nothing of cuDNN. */
  bool (*of)(const hone_step *s, hn_cudnn_step *out, hone_reason *why);
  /* Writes the weights, when they are in the blob; `to` is zeros. */
  void (*pack)(const hone_step *s, const hn_cudnn_step *c, void *to);
  double (*seconds)(const hone_step *s, const hone_machine *m, uint32_t candidate);
} hn_cudnn_kind;

extern const hn_cudnn_kind hn_cudnn_conv_native, hn_cudnn_conv_fused, hn_cudnn_conv_folded,
    hn_cudnn_product_fused;

/* ---------------------------------------------------------------- for kinds */

/* Names the place of a tensor of the description. */
void hn_cudnn_put(hn_cudnn_step *c, int32_t tensor, hn_cudnn_place place, uint32_t input);
/* Adds a constant vector of one value a channel, with zeros in the channels' padding; a tensor like the
 * output. -1: too many. */
int32_t hn_cudnn_add_vector(hn_cudnn_step *c, uint32_t input, hone_dtype dtype);
int32_t hn_cudnn_add_like_output(hn_cudnn_step *c, const hone_step *s, uint32_t input);
/* Whether the list can be done with `padding` behind the channels: vectors are constant, zeros stay zeros. */
bool hn_cudnn_epilogue_fits(const hone_step *s, bool padding, hone_reason *why);
/* Adds the step's list to what operand `at` is, in f32 and in its order. False with the reason. */
bool hn_cudnn_add_epilogue(hn_cudnn_step *c, const hone_step *s, int32_t at, hone_reason *why);
/* Adds tensor or vector `operand`, which may be -1 (then so is the result). */
int32_t hn_cudnn_plus(hn_cudnn_step *c, int32_t at, int32_t operand);

/* ---------------------------------------------------------------- for tactics */

void hn_cudnn_pack(const hone_step *s, const hn_cudnn_kind *kind, const hn_cudnn_step *c, void *blob);

typedef struct hn_cudnn_config {
  const hn_cudnn_kind *kind;
  uint32_t candidate; /* which of the heuristics' engines */
} hn_cudnn_config;

HN_FAMILY_COUNTED(hn_cudnn);

#define hn_cuda_cudnn_tactic(NAME, ANCHOR, ...)                                                              \
  HN_TACTIC_COUNTED(cuda, NAME, ANCHOR, 1, hn_cudnn, __VA_ARGS__)

#endif
