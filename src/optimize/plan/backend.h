/* The one vtable between plans and devices. Nothing above it knows AVX or CUDA. */
#ifndef HN_OPTIMIZE_PLAN_BACKEND_H
#define HN_OPTIMIZE_PLAN_BACKEND_H

#include <hone/plugin.h>

typedef struct hn_device hn_device; /* an opened device; the backend's own */

typedef struct hn_backend {
  const char *name; /* "cpu", "cuda" */

  /* Opens a device. threads 0: as many as there are processors. isa NULL: the best. Names what is missing
   * (HONE_ERROR_MISSING). */
  hone_status (*open)(uint32_t index, uint32_t threads, const char *isa, hn_device **out, hone_error *error);
  void (*close)(hn_device *device);
  const hone_machine *(*machine)(const hn_device *device);

  /* Tactics in the order of the list; the reference tactic is not among them: every operator has it. */
  const hone_tactic_desc *const *(*tactics)(size_t *count);

  /* Device memory, 64-byte aligned; NULL when there is none left. */
  void *(*alloc)(hn_device *device, size_t bytes);
  void (*free)(hn_device *device, void *p);
  /* Between host and device memory (either may be either where the device shares the host's memory). In order
   * on the device's queue. */
  hone_status (*copy)(hn_device *device, void *to, const void *from, size_t bytes, hone_error *error);

  /* Runs one step in order on the queue. `run` has everything but the pool, which the backend fills in;
   * run->threads is 0 for all of the device, 1 for a step that is too small to share. */
  hone_status (*launch)(hn_device *device, const hone_tactic_desc *tactic, hone_step_run *run,
                        hone_error *error);
  /* Waits until everything that was launched is done. */
  /* Calls fn(arg, task, thread) for every task on the host's threads, and returns when all are done. */
  void (*parallel)(hn_device *device, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                   void *arg);
  hone_status (*sync)(hn_device *device, hone_error *error);
  /* True when launch returns before the work is done: spans then come from events, and segments may be
   * captured. */
  bool asynchronous;

  /* What measurements of this device depend on, in one line: processor, instruction tier, threads, and
   * versions of libraries that offer tactics. */
  void (*fingerprint)(const hn_device *device, char *buf, size_t size);
  /* For measuring one step as if in the middle of a model (NULL: not worth it on this device). cool: that
   * many bytes of other memory move through the caches. stage: writes a step's input as the step before it
   * would have, each thread its part. consume: reads a step's output likewise. */
  void (*cool)(hn_device *device, uint64_t bytes);
  void (*stage)(hn_device *device, void *to, const void *from, size_t bytes);
  void (*consume)(hn_device *device, const void *from, size_t bytes);
} hn_backend;

#endif
