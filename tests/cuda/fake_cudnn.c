/* A cuDNN for machines without a GPU: the backend calls that hone makes, on the fake driver's streams. A
 * descriptor is the list of what was set on it; a launch evaluates the graph element by element. Of its
 * engines one is not deterministic, one wants more workspace than there is, and one fails to build: none of
 * them may be launched. A plan's JSON names its engine and what its graph is; one is read by any process that
 * has described the same graph. HONE_FAKE_CUDNN_LOG: a file that gets a line "built" or "read" for each plan;
 * HONE_FAKE_CUDNN_FOREIGN: plans are from another kind of device, and refused. */
#include "fake_library.h"

#include <inttypes.h>
#include <pthread.h>

#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENGINES = 5, MAX_OPS = 32, MAX_UID = 128, RANK = 8, SPOIL = 3000 };
enum { RANDOM, HUGE, BROKEN, FIRST, SECOND }; /* in the order in which the heuristics propose them */

typedef struct attribute {
  struct attribute *next;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t count;
  unsigned char bytes[];
} attribute;

typedef struct descriptor {
  cudnnBackendDescriptorType_t type;
  attribute *list;
  bool final;
  int64_t engine;
  struct descriptor *next; /* of the graphs that are final */
} descriptor;

static pthread_mutex_t graphs_lock = PTHREAD_MUTEX_INITIALIZER;
static descriptor *graphs;

static _Thread_local char last[200];
static cudnnStatus_t fail(cudnnStatus_t s, const char *why) {
  snprintf(last, sizeof last, "%s", why);
  return s;
}

size_t cudnnGetVersion(void) { return 91400; }
const char *cudnnGetErrorString(cudnnStatus_t s) { return s ? "CUDNN_STATUS_FAKE" : "CUDNN_STATUS_SUCCESS"; }
void cudnnGetLastErrorString(char *to, size_t size) { snprintf(to, size, "%s", last); }

struct cudnnContext {
  cudaStream_t stream;
};
cudnnStatus_t cudnnCreate(cudnnHandle_t *h) {
  *h = calloc(1, sizeof **h);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
  free(h);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s) {
  h->stream = s;
  return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR: return 1;
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_DOUBLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
  default: return 4;
  }
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out) {
  descriptor *d = calloc(1, sizeof *d);
  d->type = type;
  *out = d;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t at) {
  descriptor *d = at;
  pthread_mutex_lock(&graphs_lock);
  for (descriptor **g = &graphs; d && *g; g = &(*g)->next)
    if (*g == d) {
      *g = d->next;
      break;
    }
  pthread_mutex_unlock(&graphs_lock);
  while (d && d->list) {
    attribute *a = d->list;
    d->list = a->next;
    free(a);
  }
  free(d);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t at, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  descriptor *d = at;
  if (d->final) return fail(CUDNN_STATUS_NOT_INITIALIZED, "set after finalize");
  attribute *a = malloc(sizeof *a + (size_t)count * size_of(type));
  a->next = d->list, a->name = name, a->type = type, a->count = count;
  memcpy(a->bytes, values, (size_t)count * size_of(type));
  d->list = a;
  return CUDNN_STATUS_SUCCESS;
}

static const attribute *find(const descriptor *d, cudnnBackendAttributeName_t name) {
  for (const attribute *a = d->list; a; a = a->next)
    if (a->name == name) return a;
  return NULL;
}

/* The value of an attribute, `otherwise` where it was not set. */
#define VALUE(type, d, name, otherwise)                                                                      \
  (find(d, name) ? *(const type *)(const void *)find(d, name)->bytes : (otherwise))

static const int64_t *list64(const descriptor *d, cudnnBackendAttributeName_t name) {
  static const int64_t none[RANK];
  return find(d, name) ? (const int64_t *)(const void *)find(d, name)->bytes : none;
}

static const descriptor *link_of(const descriptor *d, cudnnBackendAttributeName_t name) {
  return find(d, name) ? *(descriptor *const *)(const void *)find(d, name)->bytes : NULL;
}

static int64_t rank_of(const descriptor *t) { return find(t, CUDNN_ATTR_TENSOR_DIMENSIONS)->count; }

/* ---------------------------------------------------------------- plans as text */

/* What a descriptor is, whatever address it and those that it names have. */
static uint64_t sum_of(const descriptor *d) {
  uint64_t sum = (uint64_t)d->type + 1;
  for (const attribute *a = d->list; a; a = a->next) {
    uint64_t one = (uint64_t)a->name * 1000003 + (uint64_t)a->count;
    if (a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (int64_t i = 0; i < a->count; i++)
        one = one * 31 + sum_of(((descriptor *const *)(const void *)a->bytes)[i]);
    else if (a->type != CUDNN_TYPE_HANDLE && a->type != CUDNN_TYPE_VOID_PTR)
      for (size_t i = 0; i < (size_t)a->count * size_of(a->type); i++) one = one * 131 + a->bytes[i];
    sum += one * 0x9e3779b97f4a7c15u; /* in any order */
  }
  return sum;
}

static descriptor *graph_of_sum(uint64_t sum) {
  pthread_mutex_lock(&graphs_lock);
  descriptor *g = graphs;
  while (g && sum_of(g) != sum) g = g->next;
  pthread_mutex_unlock(&graphs_lock);
  return g;
}

static void note(const char *what) {
  const char *path = getenv("HONE_FAKE_CUDNN_LOG");
  FILE *f = path ? fopen(path, "a") : NULL;
  if (!f) return;
  fprintf(f, "%s\n", what);
  fclose(f);
}

static cudnnStatus_t read_plan(descriptor *plan, const attribute *json) {
  char text[100] = "";
  uint64_t sum = 0;
  memcpy(text, json->bytes, json->count < (int64_t)sizeof text ? (size_t)json->count : sizeof text - 1);
  if (getenv("HONE_FAKE_CUDNN_FOREIGN")) return fail(CUDNN_STATUS_NOT_SUPPORTED, "a plan of another device");
  descriptor *graph = sscanf(text, "engine %" SCNd64 " of graph %" SCNx64, &plan->engine, &sum) == 2
                          ? graph_of_sum(sum)
                          : NULL;
  if (!graph) return fail(CUDNN_STATUS_BAD_PARAM, "no such plan");
  note("read");
  return cudnnBackendSetAttribute(plan, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                  &graph);
}

static const descriptor *graph_of_plan(const descriptor *plan) {
  const descriptor *config = link_of(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  return link_of(config ? config : plan, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
}

/* ---------------------------------------------------------------- what finalize looks at */

static cudnnStatus_t check_conv(const descriptor *d) {
  const descriptor *x = link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
  const descriptor *w = link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  const descriptor *y = link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
  const descriptor *c = link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  if (!x || !w || !y || !c) return fail(CUDNN_STATUS_BAD_PARAM, "a convolution lacks a tensor");
  const int64_t *dx = list64(x, CUDNN_ATTR_TENSOR_DIMENSIONS), *dw = list64(w, CUDNN_ATTR_TENSOR_DIMENSIONS);
  const int64_t *dy = list64(y, CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (dx[0] != dy[0] || dw[0] != dy[1] || dx[1] % dw[1] || dw[0] % (dx[1] / dw[1]))
    return fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "channels of a convolution");
  for (int64_t i = 0; i < VALUE(int64_t, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0); i++) {
    const int64_t reach = list64(c, CUDNN_ATTR_CONVOLUTION_DILATIONS)[i] * (dw[2 + i] - 1) + 1;
    const int64_t padded = dx[2 + i] + list64(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)[i] +
                           list64(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)[i];
    if ((padded - reach) / list64(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)[i] + 1 != dy[2 + i])
      return fail(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "spatial dimensions of a convolution");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t at) {
  descriptor *d = at;
  for (const attribute *a = d->list; a; a = a->next) /* everything that it names is final, too */
    if (a->name == CUDNN_ATTR_OPERATIONGRAPH_OPS)
      for (int64_t i = 0; i < a->count; i++)
        if (!((descriptor *const *)(const void *)a->bytes)[i]->final)
          return fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an operation");
  if (d->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
      (!find(d, CUDNN_ATTR_TENSOR_DIMENSIONS) || !find(d, CUDNN_ATTR_TENSOR_UNIQUE_ID) ||
       VALUE(int64_t, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0) >= MAX_UID))
    return fail(CUDNN_STATUS_BAD_PARAM, "a tensor");
  if (d->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR && check_conv(d))
    return CUDNN_STATUS_BAD_PARAM;
  if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const attribute *json = find(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    const cudnnStatus_t read = json ? read_plan(d, json) : CUDNN_STATUS_SUCCESS;
    if (json) d->final = read == CUDNN_STATUS_SUCCESS;
    if (json) return read;
    const descriptor *config = link_of(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (config->engine == RANDOM) abort(); /* it was asked for its notes for a reason */
    if (config->engine == BROKEN) return fail(CUDNN_STATUS_NOT_SUPPORTED, "the engine does not build");
    d->engine = config->engine;
    note("built");
  }
  if (d->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    pthread_mutex_lock(&graphs_lock);
    d->next = graphs, graphs = d;
    pthread_mutex_unlock(&graphs_lock);
  }
  d->final = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const at, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *count,
                                       void *out) {
  const descriptor *d = at;
  (void)type;
  *count = 1;
  switch (name) {
  case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
    const bool fallback = VALUE(cudnnBackendHeurMode_t, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A) ==
                          CUDNN_HEUR_MODE_FALLBACK;
    const descriptor *graph = link_of(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    *count = fallback ? 0 : room < ENGINES ? room : ENGINES;
    for (int64_t i = 0; i < *count; i++) {
      descriptor *c = ((descriptor **)out)[i];
      c->engine = i;
      cudnnBackendSetAttribute(c, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                               &graph);
    }
    break;
  }
  case CUDNN_ATTR_ENGINECFG_ENGINE: (*(descriptor **)out)->engine = d->engine; break;
  case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: *(int64_t *)out = d->engine; break;
  case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    *count = d->engine == RANDOM;
    if (*count) *(cudnnBackendNumericalNote_t *)out = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    break;
  case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
  case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES: *count = 0; break;
  case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    *(int64_t *)out = d->engine == HUGE ? (int64_t)1 << 40 : d->engine == SECOND ? SPOIL : 0;
    break;
  case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: {
    char text[100];
    *count = snprintf(text, sizeof text, "engine %" PRId64 " of graph %" PRIx64, d->engine,
                      sum_of(graph_of_plan(d)));
    if (room >= *count) memcpy(out, text, (size_t)*count);
    break;
  }
  default: return fail(CUDNN_STATUS_BAD_PARAM, "an attribute that the fake does not know");
  }
  return CUDNN_STATUS_SUCCESS;
}

/* ---------------------------------------------------------------- launches */

typedef struct tensor {
  int64_t uid, rank, dim[RANK], stride[RANK];
  cudaDataType_t type;
  bool is_virtual, by_value;
  void *at;
  float value;
} tensor;

typedef struct pointwise {
  int mode;
  tensor a, b, y;
  bool has_b;
  double p[3]; /* upper clip or parameter, slope */
} pointwise;

typedef struct work {
  bool matmul;
  tensor x, w, y;
  int64_t spatial, pad[3], stride[3], dilation[3];
  int n;
  pointwise op[MAX_OPS];
  void *workspace;
} work;

static tensor tensor_of(const descriptor *d, const descriptor *pack) {
  tensor t = {.uid = VALUE(int64_t, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0), .rank = rank_of(d)};
  memcpy(t.dim, list64(d, CUDNN_ATTR_TENSOR_DIMENSIONS), (size_t)t.rank * 8);
  memcpy(t.stride, list64(d, CUDNN_ATTR_TENSOR_STRIDES), (size_t)t.rank * 8);
  const cudnnDataType_t type = VALUE(cudnnDataType_t, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
  t.type = type == CUDNN_DATA_HALF ? CUDA_R_16F : type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
  t.is_virtual = VALUE(bool, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, false);
  t.by_value = VALUE(bool, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, false);
  const attribute *uids = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (int64_t i = 0; i < uids->count; i++)
    if (((const int64_t *)(const void *)uids->bytes)[i] == t.uid)
      t.at = ((void *const *)(const void *)find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->bytes)[i];
  if (t.by_value && t.at) t.value = *(const float *)t.at;
  return t;
}

static bool ready(const tensor *t) {
  return t->is_virtual || (t->at && (t->by_value || (uintptr_t)t->at % 16 == 0));
}

static int64_t step_of(const tensor *t, int64_t k) { return t->dim[k] == 1 ? 0 : t->stride[k]; }

static int64_t index_of(const tensor *t, const int64_t *at) {
  int64_t i = 0;
  for (int64_t k = 0; k < t->rank; k++) i += at[k] * step_of(t, k);
  return i;
}

static float load(const tensor *t, const int64_t *at, const float *results) {
  if (t->is_virtual) return results[t->uid];
  if (t->by_value) return t->value;
  return fake_load(t->at, t->type, index_of(t, at));
}

/* Adds x at a and behind along dimension kx, times w at b and behind along kw. */
static double add_dot(double sum, const work *o, const int64_t *a, int64_t kx, const int64_t *b, int64_t kw,
                      int64_t n) {
  const float *const x = (const float *)o->x.at + index_of(&o->x, a), *const w = (const float *)o->w.at +
                                                                                 index_of(&o->w, b);
  const int64_t dx = step_of(&o->x, kx), dw = step_of(&o->w, kw);
  for (int64_t i = 0; i < n; i++) sum += (double)x[i * dx] * (double)w[i * dw];
  return sum;
}

/* T with its elements as floats, which the caller frees; sums ask for each many times. */
static tensor as_floats(const tensor *t) {
  tensor f = *t;
  int64_t n = 1;
  for (int64_t k = 0; k < t->rank; k++) n += (t->dim[k] - 1) * step_of(t, k);
  float *const to = malloc((size_t)n * sizeof *to);
  if (!to) abort();
  for (int64_t i = 0; i < n; i++) to[i] = fake_load(t->at, t->type, i);
  f.at = to, f.type = CUDA_R_32F;
  return f;
}

static float root(const work *w, const int64_t *at) {
  double sum = 0;
  if (w->matmul) {
    const int64_t a[RANK] = {at[0], at[1]}, b[RANK] = {at[0], 0, at[2]};
    return (float)add_dot(0, w, a, 2, b, 1, w->x.dim[2]);
  }
  const int64_t cin = w->w.dim[1], group = at[1] / (w->y.dim[1] / (w->x.dim[1] / cin));
  int64_t taps = 1;
  for (int64_t i = 0; i < w->spatial; i++) taps *= w->w.dim[2 + i];
  for (int64_t t = 0; t < taps; t++) {
    int64_t a[RANK] = {at[0]}, b[RANK] = {at[1]}, left = t;
    bool inside = true;
    for (int64_t i = w->spatial - 1; i >= 0; i--) {
      b[2 + i] = left % w->w.dim[2 + i], left /= w->w.dim[2 + i];
      a[2 + i] = at[2 + i] * w->stride[i] - w->pad[i] + b[2 + i] * w->dilation[i];
      inside = inside && a[2 + i] >= 0 && a[2 + i] < w->x.dim[2 + i];
    }
    a[1] = group * cin;
    if (inside) sum = add_dot(sum, w, a, 1, b, 1, cin);
  }
  return (float)sum;
}

static float apply(const pointwise *o, float a, float b) {
  const double x = (double)a;
  switch (o->mode) {
  case CUDNN_POINTWISE_ADD: return a + b;
  case CUDNN_POINTWISE_MUL: return a * b;
  case CUDNN_POINTWISE_MIN: return a < b ? a : b;
  case CUDNN_POINTWISE_MAX: return a > b ? a : b;
  case CUDNN_POINTWISE_RELU_FWD: return (float)(x < 0 ? o->p[1] * x : x > o->p[0] ? o->p[0] : x);
  case CUDNN_POINTWISE_TANH_FWD: return (float)tanh(x);
  case CUDNN_POINTWISE_SIGMOID_FWD: return (float)(1 / (1 + exp(-x)));
  case CUDNN_POINTWISE_ELU_FWD: return (float)(x < 0 ? o->p[2] * (exp(x) - 1) : x);
  case CUDNN_POINTWISE_GELU_FWD: return (float)(0.5 * x * (1 + erf(x * 0.7071067811865476)));
  case CUDNN_POINTWISE_SOFTPLUS_FWD: return (float)(log1p(exp(o->p[2] * x)) / o->p[2]);
  case CUDNN_POINTWISE_SWISH_FWD: return (float)(x / (1 + exp(-o->p[2] * x)));
  case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
    return (float)(0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))));
  default: return NAN;
  }
}

static void evaluate(const void *args) {
  work own = *(const work *)args;
  const work *const w = &own;
  own.x = as_floats(&own.x), own.w = as_floats(&own.w);
  float results[MAX_UID];
  int64_t at[RANK] = {0};
  if (w->workspace) memset(w->workspace, 0xa5, SPOIL);
  for (;;) {
    int64_t to = 0, k = w->y.rank - 1;
    float v = root(w, at);
    results[w->y.uid] = v;
    for (int i = 0; i < w->n; i++) {
      const pointwise *o = &w->op[i];
      v = apply(o, load(&o->a, at, results), o->has_b ? load(&o->b, at, results) : 0);
      results[o->y.uid] = v;
    }
    const tensor *y = w->n ? &w->op[w->n - 1].y : &w->y;
    for (int64_t i = 0; i < y->rank; i++) to += at[i] * y->stride[i];
    fake_store(y->at, y->type, to, v);
    while (k >= 0 && ++at[k] == w->y.dim[k]) at[k--] = 0;
    if (k < 0) break;
  }
  free(own.x.at), free(own.w.at);
}

static void read_pointwise(const descriptor *d, const descriptor *pack, pointwise *o) {
  const descriptor *f = link_of(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const descriptor *b = link_of(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  o->mode = (int)VALUE(cudnnPointwiseMode_t, f, CUDNN_ATTR_POINTWISE_MODE, 0);
  o->a = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC), pack);
  o->y = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC), pack);
  o->has_b = b != NULL;
  if (b) o->b = tensor_of(b, pack);
  o->p[0] = VALUE(double, f, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY);
  o->p[1] = VALUE(double, f, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  o->p[2] = VALUE(double, f, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
  if (o->mode == CUDNN_POINTWISE_SWISH_FWD) o->p[2] = VALUE(double, f, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1);
  if (o->mode == CUDNN_POINTWISE_SOFTPLUS_FWD)
    o->p[2] = VALUE(double, f, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1);
}

static void read_root(const descriptor *d, const descriptor *pack, work *w) {
  w->matmul = d->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  if (w->matmul) {
    w->x = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_MATMUL_ADESC), pack);
    w->w = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_MATMUL_BDESC), pack);
    w->y = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_MATMUL_CDESC), pack);
    return;
  }
  const descriptor *c = link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  w->x = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), pack);
  w->w = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), pack);
  w->y = tensor_of(link_of(d, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), pack);
  w->spatial = VALUE(int64_t, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
  memcpy(w->pad, list64(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS), (size_t)w->spatial * 8);
  memcpy(w->stride, list64(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES), (size_t)w->spatial * 8);
  memcpy(w->dilation, list64(c, CUDNN_ATTR_CONVOLUTION_DILATIONS), (size_t)w->spatial * 8);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t at_plan,
                                  cudnnBackendDescriptor_t at_pack) {
  const descriptor *plan = at_plan, *pack = at_pack;
  const descriptor *graph = graph_of_plan(plan);
  const attribute *ops = find(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  descriptor *const *op = (descriptor *const *)(const void *)ops->bytes;
  if (!h || !plan->final || !pack->final || ops->count > MAX_OPS || plan->engine < FIRST)
    return fail(CUDNN_STATUS_BAD_PARAM, "a plan that cannot be launched");
  work *w = calloc(1, sizeof *w);
  read_root(op[0], pack, w);
  bool good = ready(&w->x) && ready(&w->w) && ready(&w->y);
  for (int64_t i = 1; i < ops->count; i++) {
    pointwise *o = &w->op[w->n++];
    read_pointwise(op[i], pack, o);
    good = good && ready(&o->a) && ready(&o->y) && (!o->has_b || ready(&o->b));
  }
  if (plan->engine == SECOND)
    w->workspace = *(void *const *)(const void *)find(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)->bytes;
  if (fakeBeginsEarly((CUstream)h->stream)) /* its kernels read before they wait for what is before them */
    good = false;
  cudnnStatus_t s = !good ? fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                                 "a tensor is missing, misaligned or not written yet")
                    : fakeCall((CUstream)h->stream, evaluate, w, sizeof *w) == CUDA_SUCCESS
                        ? CUDNN_STATUS_SUCCESS
                        : fail(CUDNN_STATUS_EXECUTION_FAILED, "the stream");
  free(w);
  return s;
}
