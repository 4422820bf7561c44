/* The one vtable between plans and devices. Nothing above it knows AVX or CUDA. */
#ifndef HN_OPTIMIZE_STEP_BACKEND_H
#define HN_OPTIMIZE_STEP_BACKEND_H

#include "base/mempool.h"
#include "optimize/step/tactics.h"
#include "optimize/step/tracing.h"

#include <hone/session.h>

typedef struct hn_device hn_device; /* an opened device; the backend's own */
typedef struct hn_queue
    hn_queue; /* work that a device does in order; may be NULL where it is not asynchronous */
typedef struct hn_segment hn_segment; /* captured work, to be launched as a whole */
typedef struct hn_event hn_event;     /* a point in a queue */

enum { HN_LANES = 4 };

/* Kernels of hone's own and of plugins (those of libraries are not known), and the time of the host that the
 * driver took to launch them. */
typedef struct hn_launched {
  uint64_t kernels, ns;
} hn_launched;

/* A reading of the device: "temperature", "C". */
typedef struct hn_sensor {
  const char *name, *unit;
  double value;
} hn_sensor;

/* Device memory in bytes. */
typedef struct hn_memory_use {
  uint64_t total, system_free; /* of the device, as its driver sees it */
  uint64_t free;               /* the same, and what hone keeps for the next that asks */
  uint64_t used, peak;         /* handed out by alloc now, and at most so far */
  uint64_t held, held_peak;    /* taken from the system now, and at most so far */
} hn_memory_use;

typedef struct hn_backend {
  const char *name; /* "cpu", "cuda" */

  /* Opens a device. threads 0: as many as there are processors. isa NULL: the best. Names what is missing
   * (HONE_ERROR_MISSING). */
  hone_status (*open)(uint32_t index, uint32_t threads, const char *isa, hn_device **out, hone_error *error);
  void (*close)(hn_device *device);
  const hone_machine *(*machine)(const hn_device *device);

  /* Not asynchronous: are there steps that take and make values stored in this type of 16 bits? */
  bool (*stores)(const hone_machine *machine, hone_dtype type);

  /* Not asynchronous: products of codes of 8 bits in the time of one of f32. */
  double (*codes_rate)(const hone_machine *machine);
  /* Asynchronous: products read weights that are codes of few bits as they are. NULL: they do not. */
  bool (*reads_codes)(const hone_machine *machine);

  /* Its tactics (hn_tactic_kind); the reference is not among them: every operator has it. */
  hn_registry *tactics;

  /* Where alloc (host: alloc_host) takes its memory from, for those who say who they are and what for
   * (hn_device_alloc); free (free_host) takes that as well. The same for both where the device's memory is
   * the host's. */
  hn_mempool *(*pool)(hn_device *device, bool host);
  /* Device memory, 64-byte aligned; NULL when there is none left. */
  void *(*alloc)(hn_device *device, size_t bytes);
  void (*free)(hn_device *device, void *p);
  /* Between host and device memory (either may be either where the device shares the host's memory). In order
   * on the queue; host memory must stay until the queue has come there. */
  hone_status (*copy)(hn_device *device, hn_queue *queue, void *to, const void *from, size_t bytes,
                      hone_error *error);
  /* Asynchronous: the same, by the way that ends sooner where a run waits for it. */
  hone_status (*cross)(hn_device *device, hn_queue *queue, void *to, const void *from, size_t bytes,
                       hone_error *error);

  /* Runs one step in order on the queue. `run` has everything but the pool, which the backend fills in;
   * run->threads is 0 for all of the device, 1 for a step that is too small to share. */
  hone_status (*launch)(hn_device *device, hn_queue *queue, const hone_tactic_desc *tactic,
                        hone_step_run *run, hone_error *error);
  /* Asynchronous: what launch has given to the queue so far. */
  hn_launched (*launched)(const hn_queue *queue);
  /* Calls fn(arg, task, thread) for every task on the host's threads, and returns when all are done. */
  void (*parallel)(hn_device *device, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                   void *arg);
  /* Waits until everything that the queue was given is done; a fault of the device is reported here. */
  hone_status (*sync)(hn_device *device, hn_queue *queue, hone_error *error);
  /* Asynchronous, after sync: a node that met what it cannot do since this was last asked (an index outside
   * of what it indexes), NULL where none did. To be compared, not looked at: it may be of a plan that is
   * gone. */
  const hone_node *(*refused)(hn_queue *queue);
  /* True when launch returns before the work is done, in memory of its own: tensors are then copied, spans
   * come from events, and what is below is there. All of it is NULL otherwise. */
  bool asynchronous;
  hone_status (*queue_open)(hn_device *device, hn_queue **out, hone_error *error);
  /* Not asynchronous: a queue whose steps have so many threads of the host to themselves. */
  hone_status (*share_open)(hn_device *device, uint32_t threads, hn_queue **out, hone_error *error);
  void (*queue_close)(hn_device *device, hn_queue *queue);
  /* Host memory that the device copies from and to at full speed and behind the host's back. */
  void *(*alloc_host)(hn_device *device, size_t bytes);
  void (*free_host)(hn_device *device, void *p);
  /* Makes ordinary memory such memory, and back. */
  hone_status (*pin)(hn_device *device, void *p, size_t bytes, hone_error *error);
  hone_status (*unpin)(hn_device *device, void *p, hone_error *error);
  /* Where somebody's bytes lie: PAGEABLE, PINNED, DEVICE (this one's own), UNKNOWN (another one's, or not all
   * in one place). Takes no lock that a run may hold. */
  hone_memory_kind (*where)(hn_device *device, const void *p, size_t bytes);
  /* Makes ready whatever launch will need (compiles kernels, builds plans of libraries); nothing runs, and
   * the addresses in `run` are not looked at. From any thread, several at a time. */
  hone_status (*prepare)(hn_device *device, const hone_tactic_desc *tactic, hone_step_run *run,
                         hone_error *error);
  /* Between the two, launch and copy on the queue (all its lanes) are recorded, not done. capture_end also
   * ends a capture that failed (out NULL). */
  hone_status (*capture_begin)(hn_device *device, hn_queue *queue, hone_error *error);
  hone_status (*capture_end)(hn_device *device, hn_queue *queue, hn_segment **out, hone_error *error);
  hone_status (*segment_launch)(hn_device *device, hn_queue *queue, hn_segment *segment, hone_error *error);
  void (*segment_free)(hn_device *device, hn_segment *segment);
  /* A queue has lanes 0..HN_LANES-1 that run beside each other; copy, launch and event_record go to the one
   * that was selected last (0 at first). follow: what `lane` gets from now on waits for what `other` has got
   * so far. sync and segments want that lane 0 follows all that were used. */
  void (*lane)(hn_device *device, hn_queue *queue, uint32_t lane);
  hone_status (*follow)(hn_device *device, hn_queue *queue, uint32_t lane, uint32_t other, hone_error *error);
  hone_status (*event_open)(hn_device *device, hn_event **out, hone_error *error);
  void (*event_close)(hn_device *device, hn_event *event);
  hone_status (*event_record)(hn_device *device, hn_queue *queue, hn_event *event, hone_error *error);
  /* Until the event has passed, when it was recorded; at once when it never was. */
  hone_status (*event_wait)(hn_device *device, hn_event *event, hone_error *error);
  /* Seconds between two events that have passed. */
  hone_status (*event_seconds)(hn_device *device, hn_event *from, hn_event *to, double *seconds,
                               hone_error *error);
  const hn_tracing *tracing; /* how profiles are made; NULL: by the host's clock */

  const char *(*label)(const hn_device *device); /* "NVIDIA H200"; NULL: the processor's name */
  /* Readings at this moment, *n of at most `most`; NULL: there are none. */
  hone_status (*sensors)(hn_device *device, hn_sensor *out, size_t most, size_t *n, hone_error *error);

  /* Counters of n pieces of work, each of which is done several times, in order. NULL: there are none. */
  hone_status (*counters)(hn_device *device, uint32_t n, hn_counted_work work, void *arg, hn_counts *out,
                          hone_error *error);

  /* What measurements of this device depend on, in one line: processor, instruction tier, threads, and
   * versions of libraries that offer tactics. */
  void (*fingerprint)(const hn_device *device, char *buf, size_t size);
  /* For measuring one step as if in the middle of a model (NULL: not worth it on this device). cool: that
   * many bytes of other memory move through the caches. stage: writes a step's input as the step before it
   * would have, each thread its part. consume: reads a step's output likewise. */
  void (*cool)(hn_device *device, uint64_t bytes);
  void (*stage)(hn_device *device, void *to, const void *from, size_t bytes);
  void (*consume)(hn_device *device, const void *from, size_t bytes);
  /* NULL where there is nothing to say. about: what device `index` is, without opening it for work; out NULL:
   * only whether it is there. memory: why alloc returned NULL. warnings: what went wrong since the last call
   * and was put right, one a line; "" for nothing. */
  hone_status (*about)(uint32_t index, hone_device_info *out, hone_error *error);
  void (*memory)(hn_device *device, hn_memory_use *out);
  void (*warnings)(hn_device *device, char *buf, size_t size);
} hn_backend;

/* Who holds memory of a device, in each of its pools. */
typedef struct hn_tenant {
  uint32_t owner[2]; /* of the device's memory, of the host's */
} hn_tenant;

/* Memory of the device (host: of the host, as alloc_host gives it) that counts as the tenant's. */
static inline void *hn_device_alloc(const hn_backend *backend, hn_device *device, const hn_tenant *tenant,
                                    bool host, hone_memory_purpose purpose, size_t bytes) {
  return hn_mempool_alloc(backend->pool(device, host), tenant->owner[host], purpose, bytes);
}

/* What the tenant will soon ask for of the host's memory (hn_mempool_expect). */
static inline void hn_device_expect(const hn_backend *backend, hn_device *device, const hn_tenant *tenant,
                                    const uint64_t *bytes, uint32_t n) {
  hn_mempool_expect(backend->pool(device, true), tenant->owner[true], bytes, n);
}

static inline void hn_device_free(const hn_backend *backend, hn_device *device, bool host, void *p) {
  hn_mempool_free(backend->pool(device, host), p);
}

/* The most bytes of a device's own memory that were taken so far; 0: it has none of its own. */
static inline uint64_t hn_device_peak(const hn_backend *backend, hn_device *device) {
  hn_memory_use use = {0};
  if (backend->memory) backend->memory(device, &use);
  return use.held_peak;
}

/* alloc or alloc_host gave NULL: an error that says how much was wanted, for what, and what the device has
 * free; or, where the device is lost, that. */
hone_status hn_no_memory(const hn_backend *backend, hn_device *device, uint64_t bytes, const char *purpose,
                         hone_error *error);

/* 0: not told. */
static inline double hn_codes_rate(const hn_backend *backend, const hn_device *device) {
  return backend->codes_rate ? backend->codes_rate(backend->machine(device)) : 0;
}

static inline bool hn_reads_codes(const hn_backend *backend, const hn_device *device) {
  return backend->reads_codes && backend->reads_codes(backend->machine(device));
}

#endif
