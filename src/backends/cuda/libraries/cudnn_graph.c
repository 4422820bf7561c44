/* The description as cuDNN's backend descriptors, engines from its heuristics, plans and launches. */
#include "backends/cuda/libraries/cudnn_graph.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/driver/cubins.h"
#include "backends/cuda/driver/dl_cudnn.h"
#include "backends/cuda/driver/modules.h"
#include "base/error.h"
#include "base/mem.h"
#include <hone/version.h>

#if HN_HAVE_CUDNN

typedef cudnnBackendDescriptor_t descriptor;

enum {
  MAX_CONFIGS = 24,
  MAX_NOTES = 16,
  MAX_KNOBS = 64,
  MAX_OWNED = 2 * HN_CUDNN_TENSORS + 3 * HN_CUDNN_OPS + 8
};

typedef enum attempt { UNTRIED, UNDER_WAY, BUILT, REFUSED } attempt;

struct hn_cudnn_graph {
  hn_cudnn_spec spec;
  const hn_dl_cudnn *api;
  void *device; /* NULL: plans are built with a handle */
  descriptor owned[MAX_OWNED];
  uint32_t n_owned;
  descriptor graph;
  descriptor config[MAX_CONFIGS];
  uint32_t n_configs;
  pthread_mutex_t lock; /* of what is below */
  pthread_cond_t tried;
  attempt attempt[MAX_CONFIGS];
  descriptor made[MAX_CONFIGS];
  uint32_t next_config;            /* of those before it it is known whether they build */
  descriptor plan[HN_CUDNN_PLANS]; /* of these, the ones that do, in their order */
  _Atomic uint32_t n_plans;
  hone_error last; /* why the last engine that was tried did not build */
};

/* ---------------------------------------------------------------- descriptors */

static hone_status set(const hn_dl_cudnn *api, descriptor d, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count, const void *values,
                       hone_error *error) {
  cudnnStatus_t s = api->cudnnBackendSetAttribute(d, name, type, count, values);
  if (s == CUDNN_STATUS_SUCCESS) return HONE_OK;
  char what[64];
  snprintf(what, sizeof what, "setting attribute %d of a descriptor", (int)name);
  return hn_cudnn_fail(api, s, what, error);
}

#define SET(api, d, name, type, count, values)                                                               \
  do {                                                                                                       \
    hone_status set_status = set(api, d, name, type, count, values, error);                                  \
    if (set_status) return set_status;                                                                       \
  } while (0)

static hone_status finalize(const hn_dl_cudnn *api, descriptor d, const char *what, hone_error *error) {
  cudnnStatus_t s = api->cudnnBackendFinalize(d);
  return s == CUDNN_STATUS_SUCCESS ? HONE_OK : hn_cudnn_fail(api, s, what, error);
}

static hone_status create(const hn_dl_cudnn *api, cudnnBackendDescriptorType_t type, descriptor *out,
                          hone_error *error) {
  cudnnStatus_t s = api->cudnnBackendCreateDescriptor(type, out);
  if (s == CUDNN_STATUS_SUCCESS) return HONE_OK;
  *out = NULL;
  return hn_cudnn_fail(api, s, "creating a descriptor", error);
}

/* A descriptor that lives as long as the graph. */
static hone_status own(hn_cudnn_graph *g, cudnnBackendDescriptorType_t type, descriptor *out,
                       hone_error *error) {
  if (g->n_owned >= MAX_OWNED) return hn_fail(error, HONE_ERROR_INTERNAL, "cuDNN: too many descriptors");
  hone_status status = create(g->api, type, out, error);
  if (!status) g->owned[g->n_owned++] = *out;
  return status;
}

static cudnnDataType_t type_of(hone_dtype dtype) {
  return dtype == HONE_DTYPE_F16    ? CUDNN_DATA_HALF
         : dtype == HONE_DTYPE_BF16 ? CUDNN_DATA_BFLOAT16
                                    : CUDNN_DATA_FLOAT;
}

/* Results between operations have the output's dimensions, are f32, and never reach memory. */
static hone_status make_tensor(hn_cudnn_graph *g, const hn_cudnn_tensor *t, int64_t uid, bool is_virtual,
                               descriptor *out, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  hone_status status = own(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out, error);
  if (status) return status;
  cudnnDataType_t type = is_virtual ? CUDNN_DATA_FLOAT : type_of(t->dtype);
  int64_t align = 16;
  SET(api, *out, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  SET(api, *out, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, g->spec.rank, t->dim);
  SET(api, *out, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, g->spec.rank, t->stride);
  SET(api, *out, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
  SET(api, *out, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  if (is_virtual) SET(api, *out, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  if (t->by_value) SET(api, *out, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t->by_value);
  return finalize(api, *out, "describing a tensor", error);
}

static hone_status make_conv(hn_cudnn_graph *g, const descriptor *tensor, descriptor y, descriptor *op,
                             hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  const hn_cudnn_spec *s = &g->spec;
  descriptor conv;
  hone_status status = own(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, &conv, error);
  if (status) return status;
  int64_t spatial = s->rank - 2;
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, spatial, s->pad_before);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, spatial, s->pad_after);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, spatial, s->stride);
  SET(api, conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, spatial, s->dilation);
  if ((status = finalize(api, conv, "describing a convolution", error))) return status;
  if ((status = own(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, op, error))) return status;
  float one = 1, zero = 0;
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
      &tensor[HN_CUDNN_X]);
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
      &tensor[HN_CUDNN_W]);
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv);
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
  SET(api, *op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
  return finalize(api, *op, "describing the convolution of a graph", error);
}

static hone_status make_matmul(hn_cudnn_graph *g, const descriptor *tensor, descriptor y, descriptor *op,
                               hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  descriptor product;
  hone_status status = own(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR, &product, error);
  if (status) return status;
  cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  SET(api, product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  if ((status = finalize(api, product, "describing a matrix product", error))) return status;
  if ((status = own(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, op, error))) return status;
  SET(api, *op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[HN_CUDNN_X]);
  SET(api, *op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor[HN_CUDNN_W]);
  SET(api, *op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  SET(api, *op, CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &product);
  return finalize(api, *op, "describing the matrix product of a graph", error);
}

static cudnnPointwiseMode_t mode_of(hn_cudnn_mode mode) {
  static const cudnnPointwiseMode_t modes[HN_CUDNN_MODES] = {
      [HN_CUDNN_ADD] = CUDNN_POINTWISE_ADD,
      [HN_CUDNN_MUL] = CUDNN_POINTWISE_MUL,
      [HN_CUDNN_MIN] = CUDNN_POINTWISE_MIN,
      [HN_CUDNN_MAX] = CUDNN_POINTWISE_MAX,
      [HN_CUDNN_RELU] = CUDNN_POINTWISE_RELU_FWD,
      [HN_CUDNN_ELU] = CUDNN_POINTWISE_ELU_FWD,
      [HN_CUDNN_SIGMOID] = CUDNN_POINTWISE_SIGMOID_FWD,
      [HN_CUDNN_SWISH] = CUDNN_POINTWISE_SWISH_FWD,
      [HN_CUDNN_TANH] = CUDNN_POINTWISE_TANH_FWD,
      [HN_CUDNN_SOFTPLUS] = CUDNN_POINTWISE_SOFTPLUS_FWD,
      [HN_CUDNN_GELU_ERF] = CUDNN_POINTWISE_GELU_FWD,
      [HN_CUDNN_GELU_TANH] = CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
  };
  return modes[mode];
}

static hone_status pointwise_parameters(hn_cudnn_graph *g, const hn_cudnn_op *o, descriptor d,
                                        hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  double p0 = (double)o->p[0], p1 = (double)o->p[1];
  switch (o->mode) {
  case HN_CUDNN_RELU:
    if (isfinite(o->p[0])) SET(api, d, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, 1, &p0);
    if (o->p[1] != 0) SET(api, d, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, 1, &p1);
    break;
  case HN_CUDNN_ELU: SET(api, d, CUDNN_ATTR_POINTWISE_ELU_ALPHA, CUDNN_TYPE_DOUBLE, 1, &p0); break;
  case HN_CUDNN_SWISH: SET(api, d, CUDNN_ATTR_POINTWISE_SWISH_BETA, CUDNN_TYPE_DOUBLE, 1, &p0); break;
  case HN_CUDNN_SOFTPLUS: SET(api, d, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, CUDNN_TYPE_DOUBLE, 1, &p0); break;
  default: break;
  }
  return HONE_OK;
}

static hone_status make_pointwise(hn_cudnn_graph *g, const hn_cudnn_op *o, descriptor a, descriptor b,
                                  descriptor y, descriptor *op, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  descriptor pw;
  hone_status status = own(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pw, error);
  if (status) return status;
  cudnnPointwiseMode_t mode = mode_of(o->mode);
  cudnnDataType_t math = CUDNN_DATA_FLOAT;
  SET(api, pw, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  SET(api, pw, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
  if ((status = pointwise_parameters(g, o, pw, error))) return status;
  if ((status = finalize(api, pw, "describing a pointwise operation", error))) return status;
  if ((status = own(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, op, error))) return status;
  SET(api, *op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &pw);
  SET(api, *op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &a);
  if (b) SET(api, *op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b);
  SET(api, *op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
  return finalize(api, *op, "describing the pointwise operation of a graph", error);
}

static descriptor operand(const descriptor *tensor, const descriptor *result, int32_t at) {
  return at < 0 ? NULL : at >= HN_CUDNN_RESULT ? result[at - HN_CUDNN_RESULT] : tensor[at];
}

static hone_status describe(hn_cudnn_graph *g, void *handle, hone_error *error) {
  const hn_cudnn_spec *s = &g->spec;
  const hn_dl_cudnn *api = g->api;
  descriptor tensor[HN_CUDNN_TENSORS], result[HN_CUDNN_OPS + 1], op[HN_CUDNN_OPS + 1];
  hone_status status;
  for (uint32_t i = 0; i < s->n_tensors; i++)
    if ((status = make_tensor(g, &s->tensor[i], i + 1, false, &tensor[i], error))) return status;
  for (uint32_t i = 0; i < s->n_ops; i++)
    if ((status = make_tensor(g, &s->tensor[HN_CUDNN_Y], HN_CUDNN_TENSORS + 1 + i, true, &result[i], error)))
      return status;
  result[s->n_ops] = tensor[HN_CUDNN_Y];
  status = s->matmul ? make_matmul(g, tensor, result[0], &op[0], error)
                     : make_conv(g, tensor, result[0], &op[0], error);
  for (uint32_t i = 0; i < s->n_ops && !status; i++)
    status = make_pointwise(g, &s->op[i], operand(tensor, result, s->op[i].a),
                            operand(tensor, result, s->op[i].b), result[i + 1], &op[i + 1], error);
  if (status || (status = own(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &g->graph, error))) return status;
  SET(api, g->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, s->n_ops + 1, op);
  if (handle) SET(api, g->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  return finalize(api, g->graph, "describing an operation graph", error);
}

/* ---------------------------------------------------------------- engines */

/* Adds what one of the heuristics proposes. That a heuristic knows nothing is no error. */
static void propose(hn_cudnn_graph *g, cudnnBackendHeurMode_t mode, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  descriptor heuristic = NULL;
  uint32_t first = g->n_configs, room = MAX_CONFIGS - first;
  int64_t found = 0;
  cudnnStatus_t s = api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
  if (s == CUDNN_STATUS_SUCCESS)
    s = api->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph);
  if (s == CUDNN_STATUS_SUCCESS)
    s = api->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (s == CUDNN_STATUS_SUCCESS && g->device)
    s = api->cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->device);
  if (s == CUDNN_STATUS_SUCCESS) s = api->cudnnBackendFinalize(heuristic);
  if (s != CUDNN_STATUS_SUCCESS) {
    hn_cudnn_fail(api, s, "asking the heuristics", error);
    if (heuristic) api->cudnnBackendDestroyDescriptor(heuristic);
    return;
  }
  while (g->n_configs < first + room) {
    if (api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &g->config[g->n_configs]) !=
        CUDNN_STATUS_SUCCESS)
      break;
    g->n_configs++;
  }
  s = api->cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    g->n_configs - first, &found, &g->config[first]);
  if (s != CUDNN_STATUS_SUCCESS) {
    hn_cudnn_fail(api, s, "reading the heuristics' engines", error);
    found = 0;
  }
  while (g->n_configs > first + (uint32_t)found)
    api->cudnnBackendDestroyDescriptor(g->config[--g->n_configs]);
  api->cudnnBackendDestroyDescriptor(heuristic);
}

/* The engine of a configuration, to be destroyed by the caller. */
static hone_status engine_of(const hn_dl_cudnn *api, descriptor config, descriptor *engine,
                             hone_error *error) {
  int64_t count = 0;
  hone_status status = create(api, CUDNN_BACKEND_ENGINE_DESCRIPTOR, engine, error);
  if (status) return status;
  cudnnStatus_t s = api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, engine);
  if (s == CUDNN_STATUS_SUCCESS && count == 1) return HONE_OK;
  api->cudnnBackendDestroyDescriptor(*engine);
  *engine = NULL;
  return hn_cudnn_fail(api, s, "reading a configuration's engine", error);
}

/* Whether an engine's notes allow it: sums in f32, the same answer every time, no narrower operands than the
 * step's arithmetic permits, filters in the order in which they are described. */
static hone_status licensed(const hn_cudnn_graph *g, descriptor engine, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  cudnnBackendNumericalNote_t note[MAX_NOTES];
  cudnnBackendBehaviorNote_t behavior[MAX_NOTES];
  int64_t count = 0;
  bool f32 = g->spec.tensor[HN_CUDNN_X].dtype == HONE_DTYPE_F32;
  cudnnStatus_t s = api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                  CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, note);
  if (s != CUDNN_STATUS_SUCCESS) return hn_cudnn_fail(api, s, "reading an engine's notes", error);
  for (int64_t i = 0; i < count && i < MAX_NOTES; i++) {
    const char *why = NULL;
    switch (note[i]) {
    case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: why = "is not deterministic"; break;
    case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: why = "sums in less than f32"; break;
    case CUDNN_NUMERICAL_NOTE_FFT: why = "goes through a Fourier transform"; break;
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      if (f32 && g->spec.math < HONE_MATH_TF32) why = "rounds f32 operands";
      break;
    case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      if (!f32 || g->spec.math < HONE_MATH_F32) why = "is a Winograd convolution";
      break;
    case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: why = "is a Winograd convolution of large tiles"; break;
    default: break;
    }
    if (why) return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuDNN: the engine %s", why);
  }
  count = 0;
  s = api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                    MAX_NOTES, &count, behavior);
  for (int64_t i = 0; s == CUDNN_STATUS_SUCCESS && i < count && i < MAX_NOTES; i++)
    if (behavior[i] == CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER ||
        behavior[i] == CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER)
      return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuDNN: the engine wants its filter in another order");
  return HONE_OK;
}

/* A plan as cuDNN writes it. */
typedef struct json {
  void *text;
  size_t bytes;
} json;

/* Is it the engine that cannot do this graph, and not something that this process lacks? */
static bool lasts(cudnnStatus_t s) {
  return s == CUDNN_STATUS_NOT_SUPPORTED || s == CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH;
}

/* from: instead of the configuration. *never: set where it will not build another time either. */
static hone_status make_plan(const hn_cudnn_graph *g, void *handle, descriptor config, const json *from,
                             descriptor *out, bool *never, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  int64_t bytes = 0, count = 0;
  hone_status status = create(api, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, out, error);
  if (status) return status;
  if (!from)
    SET(api, *out, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
  if (g->device)
    SET(api, *out, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->device);
  else
    SET(api, *out, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  if (from)
    SET(api, *out, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)from->bytes,
        from->text);
  cudnnStatus_t s = api->cudnnBackendFinalize(*out);
  *never = lasts(s);
  if (s != CUDNN_STATUS_SUCCESS) return hn_cudnn_fail(api, s, "building an execution plan", error);
  s = api->cudnnBackendGetAttribute(*out, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                    &count, &bytes);
  if (s != CUDNN_STATUS_SUCCESS) return hn_cudnn_fail(api, s, "reading a plan's workspace", error);
  *never = bytes > (int64_t)g->spec.workspace;
  if (*never)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuDNN: the engine wants %lld bytes of workspace, not %zu",
                   (long long)bytes, g->spec.workspace);
  return HONE_OK;
}

static hone_status try_plan(const hn_cudnn_graph *g, void *handle, descriptor config, const json *from,
                            descriptor *out, bool *never, hone_error *error) {
  *out = NULL, *never = false;
  hone_status status = make_plan(g, handle, config, from, out, never, error);
  if (status && *out) {
    g->api->cudnnBackendDestroyDescriptor(*out);
    *out = NULL;
  }
  return status;
}

/* ---------------------------------------------------------------- plans on disk */

/* Begins what is kept in place of a plan; the reason follows. */
static const char refused[] = "refused: ";

/* An engine with its settings, as text; false where cuDNN does not tell. */
static bool name_config(const hn_cudnn_graph *g, descriptor config, char *text, size_t size) {
  const hn_dl_cudnn *api = g->api;
  descriptor engine = NULL, knob[MAX_KNOBS] = {NULL};
  int64_t index = -1, count = 0, found = 0, value = 0;
  cudnnBackendKnobType_t type;
  bool good = engine_of(api, config, &engine, NULL) == HONE_OK &&
              api->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                            &count, &index) == CUDNN_STATUS_SUCCESS;
  size_t at = (size_t)snprintf(text, size, "engine %lld", (long long)index);
  for (int i = 0; i < MAX_KNOBS && good; i++)
    good = create(api, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knob[i], NULL) == HONE_OK;
  good = good && api->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                               CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_KNOBS, &found,
                                               knob) == CUDNN_STATUS_SUCCESS;
  good = good && found <= MAX_KNOBS;
  for (int64_t i = 0; i < found && good && at < size; i++) {
    good = api->cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1,
                                         &count, &type) == CUDNN_STATUS_SUCCESS &&
           api->cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                                         &count, &value) == CUDNN_STATUS_SUCCESS;
    at += (size_t)snprintf(text + at, size - at, " %d=%lld", (int)type, (long long)value);
  }
  for (int i = 0; i < MAX_KNOBS; i++)
    if (knob[i]) api->cudnnBackendDestroyDescriptor(knob[i]);
  if (engine) api->cudnnBackendDestroyDescriptor(engine);
  return good && at < size;
}

static bool kept_key(const hn_cudnn_graph *g, const hn_device *d, uint32_t i, uint64_t key[2]) {
  char text[HN_CUDNN_KEY], engine[1024], where[400];
  const int n = snprintf(where, sizeof where, "hone %s, cuDNN %zu, %s, %s, driver %d", hone_version(),
                         g->api->cudnnGetVersion(), d->name, d->target, d->driver);
  if (n < 0 || n >= (int)sizeof where || !name_config(g, g->config[i], engine, sizeof engine)) return false;
  hn_cubin_hash(key, hn_cudnn_key(&g->spec, text, sizeof text));
  hn_cubin_hash(key, engine);
  hn_cubin_hash(key, where);
  return true;
}

/* False: cuDNN does not write this one; it writes those of engines that it compiles, with what it compiled.
 */
static bool write_json(const hn_cudnn_graph *g, descriptor plan, json *to) {
  const cudnnBackendAttributeName_t name = CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  int64_t room = 0, count = 0;
  if (g->api->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, 0, &room, NULL) != CUDNN_STATUS_SUCCESS ||
      room <= 0 || !(to->text = hn_malloc((size_t)room)))
    return false;
  const cudnnStatus_t s =
      g->api->cudnnBackendGetAttribute(plan, name, CUDNN_TYPE_CHAR, room, &count, to->text);
  to->bytes = (size_t)count;
  return s == CUDNN_STATUS_SUCCESS && count > 0 && count <= room;
}

/* Builds the plan, and keeps it or why there is none. */
static hone_status build_kept(const hn_cudnn_graph *g, hn_device *d, const uint64_t key[2], void *handle,
                              uint32_t i, descriptor *out, hone_error *error) {
  json made = {0};
  bool never;
  const hone_status status = try_plan(g, handle, g->config[i], NULL, out, &never, error);
  if (status != HONE_OK && never && error) {
    char why[sizeof refused + sizeof error->what];
    const int n = snprintf(why, sizeof why, "%s%s", refused, error->what);
    hn_cubin_write(d, d->modules->folder, key, why, (size_t)n);
  } else if (status == HONE_OK && write_json(g, *out, &made)) {
    hn_cubin_write(d, d->modules->folder, key, made.text, made.bytes);
  }
  hn_free(made.text);
  return status;
}

/* As it was kept, else built. */
static hone_status try_config(const hn_cudnn_graph *g, hn_device *d, void *handle, uint32_t i,
                              descriptor *out, hone_error *error) {
  uint64_t key[2] = {0};
  json kept = {0};
  hone_error why = {0};
  hone_status status = HONE_ERROR_MISSING;
  bool never;
  if (!*d->modules->folder || !kept_key(g, d, i, key))
    return try_plan(g, handle, g->config[i], NULL, out, &never, error);
  *out = NULL;
  if (hn_cubin_read(d, d->modules->folder, key, &kept.text, &kept.bytes)) {
    const size_t begin = sizeof refused - 1;
    if (kept.bytes >= begin && memcmp(kept.text, refused, begin) == 0)
      status = hn_fail(error, HONE_ERROR_UNSUPPORTED, "%.*s", (int)(kept.bytes - begin),
                       (const char *)kept.text + begin);
    else if (try_plan(g, handle, NULL, &kept, out, &never, &why) == HONE_OK)
      status = HONE_OK;
    hn_free(kept.text);
  }
  return status == HONE_ERROR_MISSING ? build_kept(g, d, key, handle, i, out, error) : status;
}

/* Takes out of the list what is not permitted. */
static void sift(hn_cudnn_graph *g, hone_error *why) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < g->n_configs; i++) {
    descriptor engine = NULL;
    hone_status status = engine_of(g->api, g->config[i], &engine, why);
    if (!status) status = licensed(g, engine, why);
    if (engine) g->api->cudnnBackendDestroyDescriptor(engine);
    if (status)
      g->api->cudnnBackendDestroyDescriptor(g->config[i]);
    else
      g->config[kept++] = g->config[i];
  }
  g->n_configs = kept;
}

/* ---------------------------------------------------------------- what others call */

hone_status hn_cudnn_graph_open(const hn_cudnn_spec *spec, void *handle, void *device, hn_cudnn_graph **out,
                                hone_error *error) {
  *out = NULL;
  const hn_dl_cudnn *api = hn_dl_cudnn_get(error);
  if (!api) return HONE_ERROR_MISSING;
  hn_cudnn_graph *g = calloc(1, sizeof *g);
  if (!g) return hn_fail_memory(error, sizeof *g, "a cuDNN graph");
  g->spec = *spec, g->api = api, g->device = device;
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->tried, NULL);
  hone_status status = describe(g, handle, error);
  if (!status) {
    hn_fail(&g->last, HONE_ERROR_UNSUPPORTED, "cuDNN has no engine for this operation and its epilogue");
    propose(g, CUDNN_HEUR_MODE_A, &g->last);
    sift(g, &g->last);
    if (g->n_configs < HN_CUDNN_PLANS) {
      propose(g, CUDNN_HEUR_MODE_FALLBACK, &g->last);
      sift(g, &g->last);
    }
    if (!g->n_configs) {
      status = g->last.status;
      if (error) *error = g->last;
    }
  }
  if (status)
    hn_cudnn_graph_close(g);
  else
    *out = g;
  return status;
}

void hn_cudnn_graph_close(void *graph) {
  hn_cudnn_graph *g = graph;
  if (!g) return;
  for (uint32_t i = 0; i < g->n_configs; i++) {
    if (g->made[i]) g->api->cudnnBackendDestroyDescriptor(g->made[i]);
    g->api->cudnnBackendDestroyDescriptor(g->config[i]);
  }
  while (g->n_owned) g->api->cudnnBackendDestroyDescriptor(g->owned[--g->n_owned]);
  pthread_cond_destroy(&g->tried);
  pthread_mutex_destroy(&g->lock);
  free(g);
}

/* The first untried engine that the candidate may turn out to be, or to need tried before it: fewer than it
 * counts are built, or perhaps, before that one. n_configs: none. */
static uint32_t to_try(const hn_cudnn_graph *g, uint32_t candidate) {
  uint32_t before = 0;
  for (uint32_t i = 0; i < g->n_configs && before <= candidate; i++) {
    if (g->attempt[i] == UNTRIED) return i;
    before += g->attempt[i] != REFUSED;
  }
  return g->n_configs;
}

static void settle(hn_cudnn_graph *g) {
  for (; g->next_config < g->n_configs && g->attempt[g->next_config] >= BUILT; g->next_config++)
    if (g->attempt[g->next_config] == BUILT && g->n_plans < HN_CUDNN_PLANS) {
      g->plan[g->n_plans] = g->made[g->next_config]; /* before it counts: plan_of takes no lock */
      g->n_plans++;
    }
}

/* A plan takes a third of a second to build: threads that want several of one graph build them side by
 * side. */
hone_status hn_cudnn_graph_prepare(hn_cudnn_graph *g, hn_device *device, void *handle, uint32_t candidate,
                                   hone_error *error) {
  hone_status status = HONE_OK;
  if (candidate >= HN_CUDNN_PLANS) return hn_fail(error, HONE_ERROR_INTERNAL, "no such candidate");
  pthread_mutex_lock(&g->lock);
  while (g->n_plans <= candidate && g->next_config < g->n_configs) {
    const uint32_t i = to_try(g, candidate);
    if (i == g->n_configs) {
      pthread_cond_wait(&g->tried, &g->lock);
      continue;
    }
    hone_error why = {0};
    g->attempt[i] = UNDER_WAY;
    pthread_mutex_unlock(&g->lock);
    const bool built = try_config(g, device, handle, i, &g->made[i], &why) == HONE_OK;
    pthread_mutex_lock(&g->lock);
    g->attempt[i] = built ? BUILT : REFUSED;
    if (!built) g->last = why;
    settle(g);
    pthread_cond_broadcast(&g->tried);
  }
  if (!g->n_plans) {
    status = g->last.status;
    if (error) *error = g->last;
  }
  pthread_mutex_unlock(&g->lock);
  return status;
}

uint32_t hn_cudnn_graph_candidates(const hn_cudnn_graph *g) { return g->n_configs; }

/* Plans are only ever added, and a caller has prepared the one that it names. */
static descriptor plan_of(const hn_cudnn_graph *g, uint32_t candidate) {
  return g->plan[candidate < g->n_plans ? candidate : g->n_plans - 1];
}

static hone_status execute(const hn_cudnn_graph *g, descriptor pack, descriptor plan, void *handle,
                           void *const *data, void *workspace, hone_error *error) {
  const hn_dl_cudnn *api = g->api;
  const hn_cudnn_spec *spec = &g->spec;
  int64_t uid[HN_CUDNN_TENSORS];
  float value[HN_CUDNN_TENSORS];
  void *at[HN_CUDNN_TENSORS];
  for (uint32_t i = 0; i < spec->n_tensors; i++) {
    uid[i] = i + 1;
    value[i] = spec->tensor[i].value;
    at[i] = spec->tensor[i].by_value ? &value[i] : data[i];
  }
  SET(api, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, spec->n_tensors, uid);
  SET(api, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, spec->n_tensors, at);
  SET(api, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  hone_status status = finalize(api, pack, "describing a launch", error);
  if (status) return status;
  cudnnStatus_t s = api->cudnnBackendExecute(handle, plan, pack);
  return s == CUDNN_STATUS_SUCCESS ? HONE_OK : hn_cudnn_fail(api, s, "launching a plan", error);
}

hone_status hn_cudnn_graph_run(const hn_cudnn_graph *g, uint32_t candidate, void *handle, void *const *data,
                               void *workspace, hone_error *error) {
  descriptor pack;
  hone_status status = create(g->api, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack, error);
  if (status) return status;
  status = execute(g, pack, plan_of(g, candidate), handle, data, workspace, error);
  g->api->cudnnBackendDestroyDescriptor(pack);
  return status;
}

#endif
