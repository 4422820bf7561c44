/* An opened GPU: what the files of this folder share, and what all of them stand on. Tactics see cuda.h
 * alone; files that call the driver or libraries see the device and the checks. */
#ifndef HN_CUDA_DRIVER_CONTEXT_H
#define HN_CUDA_DRIVER_CONTEXT_H

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/driver/dl_cuda.h"
#include "backends/cuda/driver/dl_nvrtc.h"
#include "base/pool.h"
#include "base/str.h"
#include "base/vec.h"
#include "optimize/step/backend.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct hn_cuda_modules hn_cuda_modules; /* modules.h */

/* A lane, and what a tactic sees as its queue. */
struct hn_cuda_queue {
  hn_device *device;
  CUstream stream;      /* NULL: not made yet, or dry */
  CUevent fence;        /* for lanes that follow this one */
  hn_launched launched; /* by hn_cuda_launch */
  hn_str text; /* of a plugin's kernel that is launched: kept for the next. Not of the dry one, which is many
                  threads' */
  uint64_t *refused; /* hn_cuda_refusal; one for all lanes */
  bool dry;
};

struct hn_queue {
  hn_cuda_queue lane[HN_LANES];
  uint32_t selected;
  _Atomic bool capturing;
  bool traced;
  hn_queue *next; /* of the device's list */
};

/* Something that a tactic keeps with the device. */
typedef struct hn_cuda_kept {
  char *key;
  void *object;
  void (*destroy)(void *object);
} hn_cuda_kept;

struct hn_device {
  hn_dl_cuda cu;
  hn_dl_nvrtc rtc;
  uint32_t index;
  CUdevice handle;
  CUcontext context; /* the primary one, so that libraries share it */
  char name[128];
  uint32_t arch; /* what kernels are compiled for; machine.arch, which tactics see, may be set lower */
  int driver, rtc_major, rtc_minor; /* driver: 13000 for 13.0 */
  char target[24];                  /* "sm_90a" */
  bool ptx;                         /* "compute_80": not this chip's own instructions */
  _Atomic bool keeps_nothing;       /* the folder of kernels could not be written; told once */
  char library[256];                /* which NVRTC was found */
  hone_machine machine;
  hn_pool *pool;
  hn_mempool *memory, *host; /* NULL: not opened for work */
  hn_cuda_modules *modules;
  hn_queue *own; /* for callers that have no queue */
  hn_cuda_queue dry;
  pthread_mutex_t lock; /* of everything below, and of captures' begin */
  hn_queue *queues;
  CUevent fence; /* for memory that is freed behind running work */
  HN_VEC(hn_cuda_kept) kept;

  pthread_mutex_t fault_lock; /* of the rest: taken within any other */
  hone_error fault;           /* the first one; the context is lost from then on */
  _Atomic bool lost;
  hn_str warnings;
};

/* Makes the device current on this thread; everything that calls the driver comes through here first. Reports
 * the fault again when the context is lost. */
hone_status hn_cuda_enter(hn_device *d, hone_error *error);
/* What the driver answered, as text. */
void hn_cuda_answer(const hn_dl_cuda *cu, CUresult result, char *buf, size_t size);
/* The same as an error that names the call. */
hone_status hn_cuda_check(hn_device *d, CUresult result, const char *call, hone_error *error);
#define HN_CU(d, error, call, ...) hn_cuda_check((d), (d)->cu.call(__VA_ARGS__), #call, (error))

/* Notes something that went wrong and was put right. */
void hn_cuda_warn(hn_device *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Waits for a stream. Where the wait fails, what the device was given may go on and write, where others are
 * by then; a second wait decides: the device counts as lost, which hands out no memory, unless that waited.
 */
hone_status hn_cuda_wait(hn_device *d, CUstream stream, hone_error *error);
/* The same for an event. */
hone_status hn_cuda_wait_event(hn_device *d, CUevent event, hone_error *error);

/* Waits for what all queues were given so far, save those whose work is being captured. */
void hn_cuda_settle(hn_device *d);

/* The device that a queue belongs to: its driver's functions are device->cu. */
static inline hn_device *hn_cuda_device(const hn_cuda_queue *q) { return q->device; }

#endif
