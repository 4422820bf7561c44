#include "backends/cuda/backend.h"

#include "backends/cuda/driver/counters.h"
#include "backends/cuda/driver/device.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/queue.h"
#include "backends/cuda/driver/sensors.h"
#include "backends/cuda/driver/trace.h"
#include "backends/cuda/tactics.h"

#include <stdio.h>

static const hone_machine *cuda_machine(const hn_device *d) { return &d->machine; }

static hn_mempool *cuda_pool(hn_device *d, bool host) { return host ? d->host : d->memory; }
static void *cuda_alloc(hn_device *d, size_t bytes) {
  return hn_mempool_alloc(d->memory, 0, HONE_MEMORY_FOR_OTHER, bytes);
}
static void cuda_free(hn_device *d, void *p) { hn_mempool_free(d->memory, p); }
static void *cuda_alloc_host(hn_device *d, size_t bytes) {
  return hn_mempool_alloc(d->host, 0, HONE_MEMORY_FOR_OTHER, bytes);
}
static void cuda_free_host(hn_device *d, void *p) { hn_mempool_free(d->host, p); }

/* Tactics take no part in the host's threads: a kernel has its own. */
static hone_status run_on(hn_cuda_queue *lane, const hone_tactic_desc *tactic, hone_step_run *run,
                          hone_error *error) {
  run->threads = 1;
  run->parallel = NULL;
  run->pool = lane;
  return tactic->run(run, error);
}

static hone_status cuda_launch(hn_device *d, hn_queue *q, const hone_tactic_desc *tactic, hone_step_run *run,
                               hone_error *error) {
  hn_cuda_queue *lane;
  hone_status status = hn_cuda_lane(d, q, &lane, error);
  return status == HONE_OK ? run_on(lane, tactic, run, error) : status;
}

static hone_status cuda_prepare(hn_device *d, const hone_tactic_desc *tactic, hone_step_run *run,
                                hone_error *error) {
  hone_status status = hn_cuda_enter(d, error);
  return status == HONE_OK ? run_on(&d->dry, tactic, run, error) : status;
}

static void cuda_parallel(hn_device *d, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                          void *arg) {
  hn_pool_parallel(d->pool, tasks, fn, arg);
}

/* Measurements hold for this GPU, and for these versions of what compiles and runs the kernels. */
static void cuda_fingerprint(const hn_device *d, char *buf, size_t size) {
  char libraries[160];
  snprintf(buf, size, "cuda | %s | sm_%u | driver %d.%d | NVRTC %d.%d%s", d->name, d->machine.arch,
           d->driver / 1000, d->driver % 1000 / 10, d->rtc_major, d->rtc_minor,
           hn_cuda_libraries_text(libraries, sizeof libraries));
}

static const char *cuda_label(const hn_device *d) { return d->name; }

static void cuda_memory(hn_device *d, hn_memory_use *out) {
  size_t free_bytes = 0, total = 0;
  *out = (hn_memory_use){0};
  if (hn_cuda_enter(d, NULL) == HONE_OK) d->cu.cuMemGetInfo(&free_bytes, &total);
  hone_memory_pool pool;
  hn_mempool_totals(d->memory, &pool);
  *out = (hn_memory_use){.total = total,
                         .system_free = free_bytes,
                         .free = free_bytes + pool.free_bytes,
                         .used = pool.used,
                         .peak = pool.high_water,
                         .held = pool.reserved,
                         .held_peak = pool.reserved_high_water};
}

static void cuda_warnings(hn_device *d, char *buf, size_t size) {
  pthread_mutex_lock(&d->fault_lock);
  snprintf(buf, size, "%s", d->warnings.len ? d->warnings.ptr : "");
  hn_str_clear(&d->warnings);
  pthread_mutex_unlock(&d->fault_lock);
}

/* f32 rows as parts of bf16 (product/nbits_mma.cu). */
static bool cuda_reads_codes(const hone_machine *m) { return m->arch >= 80; }

const hn_backend hn_backend_cuda = {
    .name = "cuda",
    .open = hn_cuda_open,
    .close = hn_cuda_close,
    .machine = cuda_machine,
    .tactics = &hn_cuda_tactics,
    .reads_codes = cuda_reads_codes,
    .pool = cuda_pool,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = hn_cuda_copy,
    .cross = hn_cuda_cross,
    .launch = cuda_launch,
    .launched = hn_cuda_launched,
    .parallel = cuda_parallel,
    .sync = hn_cuda_sync,
    .refused = hn_cuda_refused,
    .asynchronous = true,
    .queue_open = hn_cuda_queue_open,
    .queue_close = hn_cuda_queue_close,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .pin = hn_cuda_pin,
    .unpin = hn_cuda_unpin,
    .where = hn_cuda_where,
    .prepare = cuda_prepare,
    .capture_begin = hn_cuda_capture_begin,
    .capture_end = hn_cuda_capture_end,
    .segment_launch = hn_cuda_segment_launch,
    .segment_free = hn_cuda_segment_free,
    .lane = hn_cuda_select,
    .follow = hn_cuda_follow,
    .event_open = hn_cuda_event_open,
    .event_close = hn_cuda_event_close,
    .event_record = hn_cuda_event_record,
    .event_wait = hn_cuda_event_wait,
    .event_seconds = hn_cuda_event_seconds,
    .tracing = &hn_cuda_tracing,
    .label = cuda_label,
    .sensors = hn_cuda_sensors,
    .counters = hn_cuda_counters,
    .fingerprint = cuda_fingerprint,
    .about = hn_cuda_about,
    .memory = cuda_memory,
    .warnings = cuda_warnings,
};
