/* One fused operation of cuDNN's graph interface: a convolution or a matrix product, and a list of pointwise
 * operations on its result, as one kernel. The description is plain data, so that what is asked of cuDNN can
 * be tested without it. */
#ifndef HN_CUDA_LIBRARIES_CUDNN_GRAPH_H
#define HN_CUDA_LIBRARIES_CUDNN_GRAPH_H

#include <hone/plugin.h>

#include "optimize/step/backend.h"

enum { HN_CUDNN_OPS = 20, HN_CUDNN_TENSORS = 24, HN_CUDNN_RANK = 5, HN_CUDNN_PLANS = 6 };

/* The pointwise operations of the epilogue. */
typedef enum hn_cudnn_mode {
  HN_CUDNN_ADD,
  HN_CUDNN_MUL,
  HN_CUDNN_MIN,
  HN_CUDNN_MAX,
  HN_CUDNN_RELU, /* p[0] upper clip, p[1] slope below 0 */
  HN_CUDNN_ELU,  /* p[0] alpha */
  HN_CUDNN_SIGMOID,
  HN_CUDNN_SWISH, /* p[0] beta */
  HN_CUDNN_TANH,
  HN_CUDNN_SOFTPLUS,
  HN_CUDNN_GELU_ERF,
  HN_CUDNN_GELU_TANH,
  HN_CUDNN_MODES
} hn_cudnn_mode;

/* A tensor in memory, or (by_value) one f32 number that is handed over with the launch. Its identifier is its
 * place in the list. */
typedef struct hn_cudnn_tensor {
  hone_dtype dtype;
  bool by_value;
  float value;
  int64_t dim[HN_CUDNN_RANK], stride[HN_CUDNN_RANK];
} hn_cudnn_tensor;

/* The root's tensors stand first in the list. */
enum { HN_CUDNN_X, HN_CUDNN_W, HN_CUDNN_Y, HN_CUDNN_EXTRA };

/* An operand: a tensor, or what an operation before gave: the root is result 0, operation i result i + 1. */
enum { HN_CUDNN_NONE = -1, HN_CUDNN_RESULT = 64 };

typedef struct hn_cudnn_op {
  hn_cudnn_mode mode;
  int32_t a, b; /* b: HN_CUDNN_NONE for functions of one operand */
  float p[2];
} hn_cudnn_op;

typedef struct hn_cudnn_spec {
  bool matmul;  /* else a convolution */
  int32_t rank; /* of all tensors: 3 for matmul (batch, rows, columns), 4 or 5 for convolution (N, C, ...) */
  int64_t pad_before[3], pad_after[3], stride[3], dilation[3]; /* convolution: rank - 2 of each */
  hone_math math;   /* which engines may be used for f32 operands */
  size_t workspace; /* the most that a plan may want */
  uint32_t n_tensors, n_ops;
  hn_cudnn_tensor tensor[HN_CUDNN_TENSORS];
  hn_cudnn_op op[HN_CUDNN_OPS];
} hn_cudnn_spec;

/* Adds a tensor or an operation; -1 and false when the lists are full (then the epilogue is too long). */
int32_t hn_cudnn_add_tensor(hn_cudnn_spec *spec, const hn_cudnn_tensor *tensor);
int32_t hn_cudnn_add_value(hn_cudnn_spec *spec, float value);
/* Returns the operand that names the operation's result. */
int32_t hn_cudnn_add_op(hn_cudnn_spec *spec, hn_cudnn_mode mode, int32_t a, int32_t b, float p0, float p1);

/* An activation of an epilogue applied to operand `at`; the operand that names the result, -1 when cuDNN has
 * no such function or the lists are full. */
int32_t hn_cudnn_add_act(hn_cudnn_spec *spec, hone_pw_op act, float alpha, float beta, int32_t at);

/* All that a plan depends on, in one line. Returns buf. */
char *hn_cudnn_key(const hn_cudnn_spec *spec, char *buf, size_t size);
enum { HN_CUDNN_KEY = 8192 };

/* ---------------------------------------------------------------- plans (where cuDNN is) */

typedef struct hn_cudnn_graph hn_cudnn_graph;

/* Describes the graph to cuDNN, asks its heuristics for engines, and keeps those that are deterministic and
 * have the licence for their arithmetic; fails when there are none. handle: cudnnHandle_t; device: a
 * descriptor of a device's properties instead of a handle, to build plans where there is no GPU (tests). */
hone_status hn_cudnn_graph_open(const hn_cudnn_spec *spec, void *handle, void *device, hn_cudnn_graph **out,
                                hone_error *error);
void hn_cudnn_graph_close(void *graph);

/* Builds the plan of the (candidate + 1)-th of the permitted engines that keeps to the workspace and builds;
 * of the last one that does when there are fewer. From several threads, each with a handle of its own. What
 * cuDNN compiles for a plan, and that an engine does not build, is kept beside the device's kernels. */
hone_status hn_cudnn_graph_prepare(hn_cudnn_graph *graph, hn_device *device, void *handle, uint32_t candidate,
                                   hone_error *error);
/* Engines that the heuristics propose and that are permitted; whether they build is not known yet. */
uint32_t hn_cudnn_graph_candidates(const hn_cudnn_graph *graph);
/* Runs a prepared plan on the handle's stream. data: one address for each tensor of the description, not
 * looked at for values. */
hone_status hn_cudnn_graph_run(const hn_cudnn_graph *graph, uint32_t candidate, void *handle,
                               void *const *data, void *workspace, hone_error *error);

#endif
