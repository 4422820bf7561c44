/* What the driver answers, faults and warnings of a device, and what tactics keep with it. */
#include "backends/cuda/driver/context.h"

#include "base/error.h"
#include "base/fault.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ the driver's answers */

/* After these nothing works in this process's context any more. */
static bool is_fatal(CUresult r) {
  switch (r) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED: return true;
  default: return false;
  }
}

void hn_cuda_answer(const hn_dl_cuda *cu, CUresult r, char *buf, size_t size) {
  const char *name = NULL, *text = NULL;
  cu->cuGetErrorName(r, &name);
  cu->cuGetErrorString(r, &text);
  if (name && text)
    snprintf(buf, size, "%s (%s)", text, name);
  else
    snprintf(buf, size, "CUDA error %d", (int)r);
}

static void lose(hn_device *d, const hone_error *fault) {
  pthread_mutex_lock(&d->fault_lock);
  if (!d->lost) d->fault = *fault;
  d->lost = true;
  pthread_mutex_unlock(&d->fault_lock);
}

hone_status hn_cuda_check(hn_device *d, CUresult r, const char *call, hone_error *error) {
  if (r == CUDA_SUCCESS) return HONE_OK;
  char text[200];
  hone_error e = {0};
  hn_cuda_answer(&d->cu, r, text, sizeof text);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    hn_fail(&e, HONE_ERROR_MEMORY, "%s: %s", call, text);
    hn_error_hint(&e, "use a smaller batch or shape, or free the device's memory");
  } else {
    hn_fail(&e, HONE_ERROR_DEVICE, "%s: %s", call, text);
    if (is_fatal(r))
      hn_error_hint(&e, "the device's context is lost: nothing more runs on it in this process");
  }
  hn_error_where(&e, "cuda:%u", d->index);
  if (is_fatal(r)) lose(d, &e);
  if (error) *error = e;
  return e.status;
}

hone_status hn_cuda_enter(hn_device *d, hone_error *error) {
  if (d->lost) {
    if (error) {
      pthread_mutex_lock(&d->fault_lock);
      *error = d->fault;
      pthread_mutex_unlock(&d->fault_lock);
    }
    return HONE_ERROR_DEVICE;
  }
  return HN_CU(d, error, cuCtxSetCurrent, d->context);
}

/* What becomes of a wait that failed with `first` after another one, whose error is *e. */
static hone_status waited_again(hn_device *d, hone_status first, hone_status again, hone_error *e,
                                hone_error *error) {
  if (again == HONE_OK) return first;
  e->status = HONE_ERROR_DEVICE;
  hn_error_hint(e, "what the device was given may go on: nothing more runs on it in this process");
  lose(d, e);
  if (error) *error = *e;
  return HONE_ERROR_DEVICE;
}

hone_status hn_cuda_wait(hn_device *d, CUstream stream, hone_error *error) {
  const hone_status status = HN_CU(d, error, cuStreamSynchronize, stream);
  if (status == HONE_OK || d->lost || HN_FAULT("cuda_failed_wait")) return status;
  hone_error e = {0};
  return waited_again(d, status, HN_CU(d, &e, cuStreamSynchronize, stream), &e, error);
}

hone_status hn_cuda_wait_event(hn_device *d, CUevent event, hone_error *error) {
  const hone_status status = HN_CU(d, error, cuEventSynchronize, event);
  if (status == HONE_OK || d->lost || HN_FAULT("cuda_failed_wait")) return status;
  hone_error e = {0};
  return waited_again(d, status, HN_CU(d, &e, cuEventSynchronize, event), &e, error);
}

void hn_cuda_warn(hn_device *d, const char *format, ...) {
  char text[1600];
  va_list ap;
  va_start(ap, format);
  vsnprintf(text, sizeof text, format, ap);
  va_end(ap);
  pthread_mutex_lock(&d->fault_lock);
  hn_str_printf(&d->warnings, "%s%s", d->warnings.len ? "\n" : "", text);
  pthread_mutex_unlock(&d->fault_lock);
}

void hn_cuda_settle(hn_device *d) {
  pthread_mutex_lock(&d->lock);
  for (hn_queue *q = d->queues; q; q = q->next) {
    if (q->capturing) continue;
    for (int i = 0; i < HN_LANES; i++) {
      const CUstream stream = q->lane[i].stream;
      if (!stream || d->cu.cuStreamQuery(stream) == CUDA_SUCCESS) continue;
      /* An event, not the stream: other threads may go on feeding it. A fault is reported by whoever waits
       * for that work. */
      const bool fenced =
          (d->fence || d->cu.cuEventCreate(&d->fence, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) &&
          d->cu.cuEventRecord(d->fence, stream) == CUDA_SUCCESS &&
          d->cu.cuEventSynchronize(d->fence) == CUDA_SUCCESS;
      if (!fenced && !d->lost && !HN_FAULT("cuda_failed_fence")) hn_cuda_wait(d, stream, NULL);
    }
  }
  pthread_mutex_unlock(&d->lock);
}

/* ------------------------------------------------------------------ what tactics keep */

void *hn_cuda_find(hn_cuda_queue *q, const char *key) {
  hn_device *d = q->device;
  void *object = NULL;
  pthread_mutex_lock(&d->lock);
  for (size_t i = 0; !object && i < d->kept.len; i++)
    if (strcmp(d->kept.ptr[i].key, key) == 0) object = d->kept.ptr[i].object;
  pthread_mutex_unlock(&d->lock);
  return object;
}

void *hn_cuda_keep(hn_cuda_queue *q, const char *key, void *object, void (*destroy)(void *object)) {
  hn_device *d = q->device;
  hn_cuda_kept k = {hn_strdup(key), object, destroy};
  void *there = NULL;
  pthread_mutex_lock(&d->lock);
  for (size_t i = 0; !there && i < d->kept.len; i++)
    if (strcmp(d->kept.ptr[i].key, key) == 0) there = d->kept.ptr[i].object;
  const bool kept = !there && k.key && hn_vec_push(&d->kept, k);
  pthread_mutex_unlock(&d->lock);
  if (kept) return object;
  hn_free(k.key);
  destroy(object);
  return there; /* NULL: no memory */
}
