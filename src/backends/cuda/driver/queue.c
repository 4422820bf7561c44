#include "backends/cuda/driver/queue.h"

#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/device/cross_args.h"
#include "backends/cuda/driver/modules.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/os.h"

#include <string.h>

/* Up to so many bytes a kernel crosses the bus: it begins and ends sooner than a copy engine, which is handed
 * over to and back. More bytes take as long as the bus does, and leave the multiprocessors to steps. One
 * queue alone waits for its copies; with several what counts is how much gets done. */
#define CROSS_MOST ((size_t)1 << 20)
enum { CROSS_THREADS = 256 };
static const hn_cuda_kernel cross = {.text = "cross", .entry = "hn_cross"};

struct hn_segment {
  CUgraph graph; /* kept: profilers name its nodes */
  CUgraphExec exec;
};

/* ------------------------------------------------------------------ life */

static hone_status make_lane(hn_device *d, hn_cuda_queue *l, hone_error *error) {
  hone_status status = HONE_OK;
  if (!l->stream) status = HN_CU(d, error, cuStreamCreate, &l->stream, CU_STREAM_NON_BLOCKING);
  if (status == HONE_OK && !l->fence)
    status = HN_CU(d, error, cuEventCreate, &l->fence, CU_EVENT_DISABLE_TIMING);
  return status;
}

hone_status hn_cuda_queue_open(hn_device *d, hn_queue **out, hone_error *error) {
  *out = NULL;
  hone_status status = hn_cuda_enter(d, error);
  if (status != HONE_OK) return status;
  hn_queue *q = hn_calloc(1, sizeof *q);
  if (!q) return hn_fail_memory(error, sizeof *q, "a queue");
  uint64_t *refused = hn_mempool_alloc(d->host, 0, HONE_MEMORY_FOR_OTHER, sizeof *refused);
  if (refused) *refused = 0;
  for (int i = 0; i < HN_LANES; i++) q->lane[i].device = d, q->lane[i].refused = refused;
  status = refused ? make_lane(d, &q->lane[0], error) : hn_fail_memory(error, sizeof *refused, "a queue");
  pthread_mutex_lock(&d->lock);
  q->next = d->queues;
  d->queues = q;
  pthread_mutex_unlock(&d->lock);
  if (status == HONE_OK)
    *out = q;
  else
    hn_cuda_queue_close(d, q);
  return status;
}

void hn_cuda_queue_close(hn_device *d, hn_queue *q) {
  if (!q) return;
  pthread_mutex_lock(&d->lock);
  for (hn_queue **at = &d->queues; *at; at = &(*at)->next)
    if (*at == q) {
      *at = q->next;
      break;
    }
  pthread_mutex_unlock(&d->lock);
  d->cu.cuCtxSetCurrent(d->context);
  for (int i = 0; i < HN_LANES; i++) {
    if (q->lane[i].stream) {
      hn_cuda_wait(d, q->lane[i].stream, NULL); /* its memory is given to others next */
      d->cu.cuStreamDestroy(q->lane[i].stream);
    }
    if (q->lane[i].fence) d->cu.cuEventDestroy(q->lane[i].fence);
    hn_str_free(&q->lane[i].text);
  }
  hn_mempool_free(d->host, q->lane[0].refused);
  hn_free(q);
}

/* The device's own queue is made when first wanted. */
static hone_status own_queue(hn_device *d, hn_queue **q, hone_error *error) {
  if (*q) return HONE_OK;
  pthread_mutex_lock(&d->lock);
  *q = d->own;
  pthread_mutex_unlock(&d->lock);
  if (*q) return HONE_OK;
  hn_queue *made;
  hone_status status = hn_cuda_queue_open(d, &made, error);
  if (status != HONE_OK) return status;
  pthread_mutex_lock(&d->lock);
  hn_queue *mine = d->own ? made : NULL;
  if (!d->own) d->own = made;
  *q = d->own;
  pthread_mutex_unlock(&d->lock);
  hn_cuda_queue_close(d, mine);
  return HONE_OK;
}

hone_status hn_cuda_lane(hn_device *d, hn_queue *q, hn_cuda_queue **out, hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK) status = own_queue(d, &q, error);
  if (status != HONE_OK) return status;
  *out = &q->lane[q->selected];
  return make_lane(d, *out, error);
}

void hn_cuda_select(hn_device *d, hn_queue *q, uint32_t lane) {
  (void)d;
  q->selected = lane < HN_LANES ? lane : 0;
}

hone_status hn_cuda_follow(hn_device *d, hn_queue *q, uint32_t lane, uint32_t other, hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK && (lane >= HN_LANES || other >= HN_LANES))
    return hn_fail(error, HONE_ERROR_INTERNAL, "a queue has no lane %u", lane > other ? lane : other);
  if (status != HONE_OK || lane == other) return status;
  hn_cuda_queue *l = &q->lane[lane], *o = &q->lane[other];
  status = make_lane(d, l, error);
  if (status == HONE_OK) status = make_lane(d, o, error);
  if (status == HONE_OK) status = HN_CU(d, error, cuEventRecord, o->fence, o->stream);
  if (status == HONE_OK)
    status = HN_CU(d, error, cuStreamWaitEvent, l->stream, o->fence, CU_EVENT_WAIT_DEFAULT);
  return status;
}

hone_status hn_cuda_sync(hn_device *d, hn_queue *q, hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK) status = own_queue(d, &q, error);
  return status == HONE_OK ? hn_cuda_wait(d, q->lane[0].stream, error) : status;
}

const hone_node *hn_cuda_refused(hn_queue *q) {
  volatile uint64_t *refused = q->lane[0].refused; /* kernels write it */
  const uint64_t node = *refused;
  *refused = 0;
  return (const hone_node *)(uintptr_t)node;
}

/* ------------------------------------------------------------------ work */

hone_status hn_cuda_copy(hn_device *d, hn_queue *q, void *to, const void *from, size_t bytes,
                         hone_error *error) {
  hn_cuda_queue *l;
  hone_status status = hn_cuda_lane(d, q, &l, error);
  if (status != HONE_OK || !bytes) return status;
  return HN_CU(d, error, cuMemcpyAsync, (CUdeviceptr)(uintptr_t)to, (CUdeviceptr)(uintptr_t)from, bytes,
               l->stream);
}

/* Nobody else gives the device work: neighbours' kernels would have to make room for what crosses. */
static bool alone(hn_device *d, const hn_queue *q) {
  bool others = false;
  pthread_mutex_lock(&d->lock);
  for (const hn_queue *at = d->queues; at; at = at->next) others |= at != q && at != d->own;
  pthread_mutex_unlock(&d->lock);
  return !others;
}

hone_status hn_cuda_cross(hn_device *d, hn_queue *q, void *to, const void *from, size_t bytes,
                          hone_error *error) {
  hn_cuda_queue *l;
  CUfunction f;
  hone_status status = hn_cuda_lane(d, q, &l, error);
  if (status != HONE_OK) return status;
  /* Records of a trace say how many bytes a copy had, and of a kernel they don't. */
  if (!q || q->traced || !bytes || bytes > CROSS_MOST || ((uintptr_t)to | (uintptr_t)from) % 16 ||
      !alone(d, q) || !hn_cuda_reaches(d, to, bytes) || !hn_cuda_reaches(d, from, bytes) ||
      hn_cuda_module_function(d->modules, &cross, 0, sizeof(hn_cross_args), &f, NULL) != HONE_OK)
    return hn_cuda_copy(d, q, to, from, bytes, error);
  const hn_cross_args a = {from, to, bytes};
  const hn_cuda_shape shape = {.grid = {(uint32_t)hn_div_up((int64_t)bytes, CROSS_THREADS * 16), 1, 1},
                               .threads = CROSS_THREADS};
  return hn_cuda_launch(l, &cross, &shape, &a, sizeof a, error);
}

hone_status hn_cuda_zero(hn_cuda_queue *q, void *at, size_t bytes, hone_error *error) {
  hn_device *d = q->device;
  const CUdeviceptr p = (CUdeviceptr)(uintptr_t)at;
  if (q->dry || !bytes) return HONE_OK;
  if (((uintptr_t)at | bytes) % 4 == 0) return HN_CU(d, error, cuMemsetD32Async, p, 0, bytes / 4, q->stream);
  return HN_CU(d, error, cuMemsetD8Async, p, 0, bytes, q->stream);
}

/* An empty node of the graph that is captured: behind it nothing begins early, and it costs nothing. false:
 * none was put there. */
static bool put_empty_node(hn_cuda_queue *q) {
  const hn_dl_cuda *cu = &q->device->cu;
  CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph graph = NULL;
  CUgraphNode node;
  const CUgraphNode *before = NULL;
  size_t n = 0;
  if (!cu->cuGraphAddEmptyNode || !cu->cuStreamGetCaptureInfo || !cu->cuStreamUpdateCaptureDependencies)
    return false;
#if CUDA_VERSION >= 13000 /* the same, with the kinds of edges */
  const CUresult asked = cu->cuStreamGetCaptureInfo(q->stream, &capturing, NULL, &graph, &before, NULL, &n);
#else
  const CUresult asked = cu->cuStreamGetCaptureInfo(q->stream, &capturing, NULL, &graph, &before, &n);
#endif
  if (asked || capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
      cu->cuGraphAddEmptyNode(&node, graph, before, n))
    return false;
#if CUDA_VERSION >= 13000
  return !cu->cuStreamUpdateCaptureDependencies(q->stream, &node, NULL, 1,
                                                CU_STREAM_SET_CAPTURE_DEPENDENCIES);
#else
  return !cu->cuStreamUpdateCaptureDependencies(q->stream, &node, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
#endif
}

hone_status hn_cuda_in_order(hn_cuda_queue *q, void *spare, hone_error *error) {
  if (q->dry || q->device->machine.arch < 90 || put_empty_node(q)) return HONE_OK;
  if (spare) return hn_cuda_zero(q, spare, 4, error);
  return hn_fail(error, HONE_ERROR_INTERNAL, "a library's kernel has no memory to be kept in order by");
}

enum { PORTABLE_CLUSTER = 8 }; /* larger ones have to be asked for */

static hone_status check_shape(const hn_device *d, const hn_cuda_kernel *k, const hn_cuda_shape *s,
                               size_t size, hone_error *error) {
  const char *what = !s->grid[0] || !s->grid[1] || !s->grid[2]   ? "an empty grid"
                     : s->grid[1] > 65535 || s->grid[2] > 65535  ? "more than 65535 blocks along y or z"
                     : !s->threads || s->threads > 1024          ? "no or more than 1024 threads in a block"
                     : s->shared > d->machine.shared_bytes       ? "more shared memory than a block can have"
                     : s->cluster > 1 && d->arch < 90            ? "clusters, which this GPU has not"
                     : s->cluster > 1 && s->grid[0] % s->cluster ? "a grid that is not whole clusters"
                     : size > HN_CUDA_MOST_ARGS                  ? "more than 4096 bytes of arguments"
                                                                 : NULL;
  if (!what) return HONE_OK;
  return hn_fail(error, HONE_ERROR_INTERNAL, "kernel %s of %s was launched with %s", k->entry, k->text, what);
}

hone_status hn_cuda_launch(hn_cuda_queue *q, const hn_cuda_kernel *k, const hn_cuda_shape *s,
                           const void *args, size_t size, hone_error *error) {
  hn_device *d = q->device;
  CUfunction f = NULL;
  hone_status status = check_shape(d, k, s, size, error);
  if (status == HONE_OK) status = hn_cuda_module_function(d->modules, k, s->shared, size, &f, error);
  if (status != HONE_OK || q->dry) return status;
  CUlaunchAttribute attr[3];
  CUlaunchConfig config = {.gridDimX = s->grid[0],
                           .gridDimY = s->grid[1],
                           .gridDimZ = s->grid[2],
                           .blockDimX = s->threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = s->shared,
                           .hStream = q->stream,
                           .attrs = attr};
  if (s->cluster > 1) {
    CUlaunchAttribute *a = &attr[config.numAttrs++];
    memset(a, 0, sizeof *a);
    a->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a->value.clusterDim.x = s->cluster;
    a->value.clusterDim.y = a->value.clusterDim.z = 1;
  }
  if (s->overlap && d->machine.arch >= 90) {
    CUlaunchAttribute *a = &attr[config.numAttrs++];
    memset(a, 0, sizeof *a);
    a->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a->value.programmaticStreamSerializationAllowed = 1;
  }
  if (s->cluster > PORTABLE_CLUSTER) {
    status = HN_CU(d, error, cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (status != HONE_OK) return status;
  }
  void *params[] = {(void *)(uintptr_t)args};
  const uint64_t start = hn_now_ns();
  status = HN_CU(d, error, cuLaunchKernelEx, &config, f, params, NULL);
  if (status != HONE_OK) {
    hn_error_where(error, "kernel %s", k->entry);
    return status;
  }
  q->launched.ns += hn_now_ns() - start;
  q->launched.kernels++;
  return HONE_OK;
}

hn_launched hn_cuda_launched(const hn_queue *q) {
  hn_launched all = {0};
  for (int i = 0; i < HN_LANES; i++) {
    all.kernels += q->lane[i].launched.kernels;
    all.ns += q->lane[i].launched.ns;
  }
  return all;
}

uint64_t *hn_cuda_refusal(const hn_cuda_queue *q) { return q->refused; }
bool hn_cuda_dry(const hn_cuda_queue *q) { return q->dry; }
void *hn_cuda_stream(const hn_cuda_queue *q) { return q->stream; }
const hone_machine *hn_cuda_machine(const hn_cuda_queue *q) { return &q->device->machine; }

/* ------------------------------------------------------------------ captured work */

hone_status hn_cuda_capture_begin(hn_device *d, hn_queue *q, hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  if (status != HONE_OK) return status;
  /* Under the lock: whoever waits for this queue's work must not do it within the capture. */
  pthread_mutex_lock(&d->lock);
  status = HN_CU(d, error, cuStreamBeginCapture, q->lane[0].stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  if (status == HONE_OK) q->capturing = true;
  pthread_mutex_unlock(&d->lock);
  q->selected = 0;
  return status;
}

hone_status hn_cuda_capture_end(hn_device *d, hn_queue *q, hn_segment **out, hone_error *error) {
  hn_segment *s = hn_calloc(1, sizeof *s);
  CUgraph graph = NULL;
  if (out) *out = NULL;
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK) status = HN_CU(d, error, cuStreamEndCapture, q->lane[0].stream, &graph);
  q->capturing = false;
  q->selected = 0;
  if (!out || status != HONE_OK || !s) {
    if (graph) d->cu.cuGraphDestroy(graph);
    hn_free(s);
    if (out && status == HONE_OK) status = hn_fail_memory(error, sizeof *s, "a captured segment");
    return out ? status : HONE_OK;
  }
  s->graph = graph;
  status = HN_CU(d, error, cuGraphInstantiateWithFlags, &s->exec, graph, 0);
  if (status == HONE_OK) status = HN_CU(d, error, cuGraphUpload, s->exec, q->lane[0].stream);
  if (status == HONE_OK)
    *out = s;
  else
    hn_cuda_segment_free(d, s);
  return status;
}

hone_status hn_cuda_segment_launch(hn_device *d, hn_queue *q, hn_segment *s, hone_error *error) {
  hn_cuda_queue *l;
  hone_status status = hn_cuda_lane(d, q, &l, error);
  if (status == HONE_OK) status = HN_CU(d, error, cuGraphLaunch, s->exec, l->stream);
  return status;
}

void hn_cuda_segment_free(hn_device *d, hn_segment *s) {
  if (!s) return;
  d->cu.cuCtxSetCurrent(d->context);
  if (s->exec) d->cu.cuGraphExecDestroy(s->exec);
  if (s->graph) d->cu.cuGraphDestroy(s->graph);
  hn_free(s);
}

/* ------------------------------------------------------------------ events */

hone_status hn_cuda_event_open(hn_device *d, hn_event **out, hone_error *error) {
  CUevent e = NULL;
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK) status = HN_CU(d, error, cuEventCreate, &e, CU_EVENT_DEFAULT);
  *out = (hn_event *)e;
  return status;
}

void hn_cuda_event_close(hn_device *d, hn_event *e) {
  if (!e) return;
  d->cu.cuCtxSetCurrent(d->context);
  d->cu.cuEventDestroy((CUevent)e);
}

hone_status hn_cuda_event_record(hn_device *d, hn_queue *q, hn_event *e, hone_error *error) {
  hn_cuda_queue *l;
  hone_status status = hn_cuda_lane(d, q, &l, error);
  if (status != HONE_OK) return status;
  /* While capturing: a node that records when the segment runs, not an edge between nodes. */
  const unsigned flags = q && q->capturing ? CU_EVENT_RECORD_EXTERNAL : CU_EVENT_RECORD_DEFAULT;
  return HN_CU(d, error, cuEventRecordWithFlags, (CUevent)e, l->stream, flags);
}

hone_status hn_cuda_event_wait(hn_device *d, hn_event *e, hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  return status == HONE_OK ? hn_cuda_wait_event(d, (CUevent)e, error) : status;
}

hone_status hn_cuda_event_seconds(hn_device *d, hn_event *from, hn_event *to, double *seconds,
                                  hone_error *error) {
  float ms = 0;
  *seconds = 0;
  hone_status status = hn_cuda_enter(d, error);
  if (status == HONE_OK)
    status = hn_cuda_check(d, d->cu.elapsed(&ms, (CUevent)from, (CUevent)to), "cuEventElapsedTime", error);
  *seconds = (double)ms * 1e-3;
  return status;
}
