#include "backends/cuda/driver/libraries.h"

#include <pthread.h>
#include <stdio.h>

#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/dl_cublaslt.h"
#include "backends/cuda/driver/dl_cudnn.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"

uint32_t hn_cuda_libraries(void) {
  char version[64];
  return (hn_cudnn_version(version, sizeof version) ? HONE_LIB_CUDNN : 0u) |
         (hn_cublaslt_version(version, sizeof version) ? HONE_LIB_CUBLASLT : 0u);
}

char *hn_cuda_libraries_text(char *buf, size_t size) {
  char dnn[64], blas[64];
  const bool has_dnn = hn_cudnn_version(dnn, sizeof dnn), has_blas = hn_cublaslt_version(blas, sizeof blas);
  snprintf(buf, size, "%s%s%s%s", has_dnn ? " | " : "", dnn, has_blas ? " | " : "", blas);
  return buf;
}

/* ---------------------------------------------------------------- open devices */

typedef struct announced {
  hn_cuda_queue *dry;
  const hone_machine *machine;
  uint32_t asked; /* questions under way */
} announced;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static HN_VEC(announced) devices;

/* With the lock held. */
static announced *announced_as(const hn_cuda_queue *dry) {
  for (size_t i = 0; i < devices.len; i++)
    if (devices.ptr[i].dry == dry) return &devices.ptr[i];
  return NULL;
}

hone_status hn_cuda_announce(hn_cuda_queue *dry, const hone_machine *machine, hone_error *error) {
  pthread_mutex_lock(&lock);
  const bool kept = hn_vec_push(&devices, ((announced){dry, machine, 0}));
  pthread_mutex_unlock(&lock);
  return kept ? HONE_OK : hn_fail_memory(error, sizeof(announced), "the list of devices");
}

void hn_cuda_withdraw(const hn_cuda_queue *dry) {
  announced *a;
  pthread_mutex_lock(&lock);
  while ((a = announced_as(dry)) && a->asked) {
    a->machine = NULL; /* no further questions: it is about to close */
    pthread_cond_wait(&answered, &lock);
  }
  if (a) *a = devices.ptr[--devices.len];
  if (!devices.len) hn_vec_free(&devices);
  pthread_mutex_unlock(&lock);
}

static bool same(const hone_machine *a, const hone_machine *b) {
  return a->arch == b->arch && a->processors == b->processors && a->shared_bytes == b->shared_bytes &&
         a->half_flops == b->half_flops && a->dram_bytes == b->dram_bytes;
}

hn_cuda_queue *hn_cuda_queue_for(const hone_machine *machine, hone_reason *why) {
  hn_cuda_queue *found = NULL;
  hone_error error = {.status = HONE_OK};
  pthread_mutex_lock(&lock);
  for (size_t i = 0; !found && i < devices.len; i++) {
    announced *a = &devices.ptr[i];
    if (!a->machine || !same(a->machine, machine)) continue;
    a->asked++;
    found = a->dry;
  }
  pthread_mutex_unlock(&lock);
  if (!found) {
    hn_refuse(why, "no such device is open");
  } else if (hn_cuda_enter(hn_cuda_device(found), &error)) {
    hn_refuse(why, "%.150s", error.what);
    hn_cuda_queue_leave(found);
    found = NULL;
  }
  return found;
}

void hn_cuda_queue_leave(const hn_cuda_queue *dry) {
  pthread_mutex_lock(&lock);
  announced *a = announced_as(dry);
  if (a && !--a->asked) pthread_cond_broadcast(&answered);
  pthread_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------- handles */

#if HN_HAVE_CUDNN

typedef struct handles {
  pthread_mutex_t lock;
  pthread_cond_t returned;
  HN_VEC(cudnnHandle_t) idle;
  uint32_t made;
} handles;

static const char handles_key[] = "cuDNN's handles";

static void handles_free(void *object) {
  handles *h = object;
  const hn_dl_cudnn *api = hn_dl_cudnn_get(NULL);
  while (h->idle.len) api->cudnnDestroy(h->idle.ptr[--h->idle.len]);
  hn_vec_free(&h->idle);
  pthread_cond_destroy(&h->returned);
  pthread_mutex_destroy(&h->lock);
  hn_free(h);
}

static handles *handles_of(hn_cuda_queue *q) {
  handles *h = hn_cuda_find(q, handles_key);
  if (h) return h;
  h = hn_calloc(1, sizeof *h);
  if (!h) return NULL;
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->returned, NULL);
  return hn_cuda_keep(q, handles_key, h, handles_free);
}

hone_status hn_cuda_cudnn_take(hn_cuda_queue *q, void **handle, hone_error *error) {
  const hn_dl_cudnn *api = hn_dl_cudnn_get(error);
  cudnnStatus_t s = CUDNN_STATUS_SUCCESS;
  cudnnHandle_t got = NULL;
  *handle = NULL;
  if (!api) return HONE_ERROR_MISSING;
  handles *h = handles_of(q);
  if (!h) return hn_fail_memory(error, sizeof *h, "cuDNN's handles");
  pthread_mutex_lock(&h->lock);
  while (!h->idle.len && h->made && !hn_cuda_dry(q)) pthread_cond_wait(&h->returned, &h->lock);
  if (h->idle.len)
    got = h->idle.ptr[--h->idle.len];
  else
    h->made++;
  pthread_mutex_unlock(&h->lock);
  if (!got) s = api->cudnnCreate(&got);
  if (s != CUDNN_STATUS_SUCCESS) {
    pthread_mutex_lock(&h->lock);
    h->made--;
    pthread_cond_broadcast(&h->returned); /* who waits for this one tries itself */
    pthread_mutex_unlock(&h->lock);
    return hn_cudnn_fail(api, s, "opening cuDNN on the device", error);
  }
  if (!hn_cuda_dry(q)) s = api->cudnnSetStream(got, (cudaStream_t)hn_cuda_stream(q));
  if (s != CUDNN_STATUS_SUCCESS) {
    hn_cuda_cudnn_put(q, got);
    return hn_cudnn_fail(api, s, "choosing a stream", error);
  }
  *handle = got;
  return HONE_OK;
}

void hn_cuda_cudnn_put(hn_cuda_queue *q, void *handle) {
  handles *h = handles_of(q);
  cudnnHandle_t back = handle;
  if (!h || !back) return;
  pthread_mutex_lock(&h->lock);
  const bool kept = hn_vec_push(&h->idle, back);
  if (!kept) h->made--;
  pthread_cond_broadcast(&h->returned);
  pthread_mutex_unlock(&h->lock);
  if (!kept) hn_dl_cudnn_get(NULL)->cudnnDestroy(back);
}

#else

hone_status hn_cuda_cudnn_take(hn_cuda_queue *q, void **handle, hone_error *error) {
  (void)q, *handle = NULL;
  return hn_fail(error, HONE_ERROR_MISSING, "hone was built without cuDNN's headers");
}

void hn_cuda_cudnn_put(hn_cuda_queue *q, void *handle) { (void)q, (void)handle; }

#endif

#if HN_HAVE_CUBLASLT

static void lt_free(void *handle) { hn_dl_cublaslt_get(NULL)->cublasLtDestroy(handle); }

hone_status hn_cuda_cublaslt(hn_cuda_queue *q, void **handle, hone_error *error) {
  static const char key[] = "cuBLASLt's handle";
  const hn_dl_cublaslt *api = hn_dl_cublaslt_get(error);
  cublasLtHandle_t made = NULL;
  if (!api) return HONE_ERROR_MISSING;
  if ((*handle = hn_cuda_find(q, key))) return HONE_OK;
  cublasStatus_t s = api->cublasLtCreate(&made);
  if (s != CUBLAS_STATUS_SUCCESS) return hn_cublaslt_fail(api, s, "opening cuBLASLt on the device", error);
  *handle = hn_cuda_keep(q, key, made, lt_free);
  return *handle ? HONE_OK : hn_fail_memory(error, 1, "cuBLASLt's handle");
}

#else

hone_status hn_cuda_cublaslt(hn_cuda_queue *q, void **handle, hone_error *error) {
  (void)q, *handle = NULL;
  return hn_fail(error, HONE_ERROR_MISSING, "hone was built without cuBLASLt's headers");
}

#endif
