/* The CPU as a backend: host memory, a thread pool, steps run to their end. */
#include "backends/cpu/backend.h"

#include "backends/cpu/kernels/features.h"
#include "backends/cpu/kernels/gemm_bf16/gemm_bf16.h"
#include "backends/cpu/kernels/gemm_int8/gemm_int8.h"
#include "backends/cpu/tactics.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/mempool.h"
#include "base/os.h"
#include "base/pool.h"

#include <stdio.h>
#include <string.h>

/* More than this is not moved through the caches to cool them. */
#define COOL_MOST ((uint64_t)256 << 20)

struct hn_device {
  hone_machine machine;
  hn_isa tier;
  hn_pool *pool;
  hn_mempool *memory;
  char *other;         /* memory to cool caches with, made when first wanted */
  uint64_t other_made; /* so much of it: before it is written it has no pages */
};

/* Threads of one context alone. */
struct hn_queue {
  hn_pool *pool;
};

static uint32_t isa_bits(hn_isa isa) {
  uint32_t bits = 0;
  if (isa >= HN_ISA_AVX2) bits |= HONE_ISA_AVX2;
  if (isa == HN_ISA_AVXVNNI) bits |= HONE_ISA_AVXVNNI;
  if (isa >= HN_ISA_AVX512) bits |= HONE_ISA_AVX512;
  if (isa >= HN_ISA_AVX512VNNI) bits |= HONE_ISA_AVX512VNNI;
  if (isa >= HN_ISA_AVX512BF16) bits |= HONE_ISA_AVX512BF16;
  if (isa >= HN_ISA_AMX) bits |= HONE_ISA_AMX;
  return bits;
}

/* Weights and activations are streamed through: with small pages a fifth of a layer's time can go into page
 * walks. */
#define HUGE ((size_t)2 << 20)

/* Segments from this size on are pages of their own, which come zeroed. */
#define MAPPED ((size_t)128 << 10)

/* How much of a segment is in huge pages: as many as it fills. The rest of it is in small ones. */
static size_t in_huge_pages(size_t bytes) { return bytes / HUGE * HUGE; }

static void *take(void *self, size_t bytes) {
  (void)self;
  if (bytes < MAPPED) return hn_aligned(4096, bytes);
  const size_t huge = in_huge_pages(bytes);
  void *p = hn_pages(huge ? HUGE : 4096, bytes);
  if (p && huge) hn_advise_huge(p, huge);
  return p;
}

/* The small pages of a block at once: a fault for each of them takes twice as long. */
static void bring(void *self, void *segment, size_t segment_bytes, void *at, size_t bytes) {
  (void)self;
  char *from = at, *to = from + bytes, *small = (char *)segment + in_huge_pages(segment_bytes);
  if (from < small) from = small;
  if (from < to) hn_bring_pages(from, (size_t)(to - from));
}

static void give(void *self, void *at, size_t bytes) {
  (void)self;
  if (bytes < MAPPED)
    hn_free(at);
  else
    hn_pages_free(at, bytes);
}

static uint64_t keep(void *self) {
  (void)self;
  const uint64_t available = hn_memory_available();
  return available ? available / 4 : UINT64_MAX;
}

static hn_mempool *memory_create(void) {
  const hn_mempool_source source = {.take = take,
                                    .give = give,
                                    .grain = 4096,
                                    .large_grain = HUGE,
                                    .cleared = MAPPED,
                                    .bring = bring,
                                    .keep = keep,
                                    .apart = hn_mempool_apart(false),
                                    .host = true};
  return hn_mempool_create("host", &source);
}

#define NAMES "scalar, avx2, avxvnni, avx512, avx512vnni, avx512bf16 or amx"

hone_status hn_cpu_held(hone_error *error) {
  if (!hn_cpu()->unknown[0]) return HONE_OK;
  hn_fail(error, HONE_ERROR_USAGE, "HONE_CPU names no instruction set");
  hn_error_expected(error, NAMES);
  hn_error_got(error, "%s", hn_cpu()->unknown);
  return HONE_ERROR_USAGE;
}

static hone_status cpu_open(uint32_t index, uint32_t threads, const char *isa, hn_device **out,
                            hone_error *error) {
  *out = NULL;
  if (index != 0) return hn_fail(error, HONE_ERROR_MISSING, "there is only one CPU device, cpu:0");
  const hn_cpu_info *cpu = hn_cpu();
  hn_isa tier = cpu->isa;
  const hone_status held = hn_cpu_held(error);
  if (held != HONE_OK) return held;
  if (isa) {
    tier = hn_isa_parse(isa);
    if (tier == HN_ISA_COUNT) {
      hn_fail(error, HONE_ERROR_USAGE, "unknown instruction set '%s'", isa);
      hn_error_expected(error, NAMES);
      return HONE_ERROR_USAGE;
    }
    if (!hn_cpu_runs(tier))
      return hn_fail(error, HONE_ERROR_MISSING, "this processor (or HONE_CPU) offers %s, not %s",
                     hn_isa_name(cpu->isa), isa);
  }
  hn_device *d = hn_calloc(1, sizeof *d);
  if (!d) return hn_fail_memory(error, sizeof *d, "the CPU device");
  if (!threads) {
    threads = hn_thread_count();
    if (threads > HONE_MAX_THREADS) threads = HONE_MAX_THREADS;
  }
  d->memory = memory_create();
  hone_status status = d->memory ? hn_pool_create(threads, &d->pool, error)
                                 : hn_fail_memory(error, sizeof *d, "the CPU device");
  if (status != HONE_OK) {
    hn_mempool_destroy(d->memory);
    hn_free(d);
    return status;
  }
  /* Defaults for cost models; only ratios between tactics matter, so typical figures do. */
  double lanes = tier >= HN_ISA_AVX512 ? 16 : tier >= HN_ISA_AVX2 ? 8 : 1;
  d->machine = (hone_machine){.device = "cpu",
                              .isa = isa_bits(tier),
                              .threads = threads,
                              .peak_flops = threads * 3.0e9 * lanes * 2 * 2,
                              .dram_bytes = 7e9 * cpu->dram_bytes_per_cycle,
                              .cache_bytes = threads * 40e9,
                              .l1 = cpu->l1d,
                              .l2 = cpu->l2,
                              .l3 = cpu->l3,
                              .mesh = cpu->mesh};
  d->tier = tier;
  *out = d;
  return HONE_OK;
}

static void cpu_close(hn_device *d) {
  if (!d) return;
  hn_pool_destroy(d->pool);
  hn_free(d->other);
  hn_mempool_destroy(d->memory);
  hn_free(d);
}

static const hone_machine *cpu_machine(const hn_device *d) { return &d->machine; }

static hn_mempool *cpu_pool(hn_device *d, bool host) {
  (void)host;
  return d->memory;
}

static void *cpu_alloc(hn_device *d, size_t bytes) {
  return hn_mempool_alloc(d->memory, 0, HONE_MEMORY_FOR_OTHER, bytes);
}

static void cpu_free(hn_device *d, void *p) { hn_mempool_free(d->memory, p); }

static hone_status cpu_copy(hn_device *d, hn_queue *q, void *to, const void *from, size_t bytes,
                            hone_error *error) {
  (void)d, (void)q;
  (void)error;
  if (bytes) memcpy(to, from, bytes);
  return HONE_OK;
}

static hone_status cpu_launch(hn_device *d, hn_queue *q, const hone_tactic_desc *tactic, hone_step_run *run,
                              hone_error *error) {
  const bool alone = run->threads == 1;
  hn_pool *pool = q ? q->pool : d->pool;
  run->threads = alone ? 1 : hn_pool_threads(pool);
  run->parallel = hn_pool_parallel;
  run->pool = alone ? NULL : pool;
  const uint32_t mode = hn_float_mode();
  hn_pool_enter(pool);
  if (run->flush) hn_set_float_mode(mode | HN_DENORMALS_ZERO);
  hone_status status = tactic->run(run, error);
  if (run->flush) hn_set_float_mode(mode);
  hn_pool_leave(pool);
  return status;
}

static hone_status cpu_share_open(hn_device *d, uint32_t threads, hn_queue **out, hone_error *error) {
  *out = NULL;
  /* Workspaces have room for the device's threads. */
  if (threads < 1 || threads > d->machine.threads)
    return hn_fail(error, HONE_ERROR_USAGE, "a context can have 1 to %u threads, got %u", d->machine.threads,
                   threads);
  hn_queue *q = hn_calloc(1, sizeof *q);
  if (!q) return hn_fail_memory(error, sizeof *q, "a context's threads");
  hone_status status = hn_pool_create(threads, &q->pool, error);
  if (status == HONE_OK)
    *out = q;
  else
    hn_free(q);
  return status;
}

static void cpu_queue_close(hn_device *d, hn_queue *q) {
  (void)d;
  hn_pool_destroy(q->pool);
  hn_free(q);
}

static void cpu_parallel(hn_device *d, int64_t tasks, void (*fn)(void *arg, int64_t task, uint32_t thread),
                         void *arg) {
  hn_pool_parallel(d->pool, tasks, fn, arg);
}

static hone_status cpu_sync(hn_device *d, hn_queue *q, hone_error *error) {
  (void)d, (void)q;
  (void)error;
  return HONE_OK;
}

static void cpu_fingerprint(const hn_device *d, char *buf, size_t size) {
  snprintf(buf, size, "cpu | %s | %s | %u threads", hn_cpu_brand(), hn_isa_name(d->tier), d->machine.threads);
}

/* Memory that every thread reads or copies its part of. */
typedef struct sweep {
  const char *from;
  char *to; /* NULL: only read */
  uint64_t bytes, each;
} sweep;

static void sweep_part(void *arg, int64_t task, uint32_t thread) {
  const sweep *s = arg;
  const uint64_t at = (uint64_t)task * s->each;
  (void)thread;
  if (at >= s->bytes) return;
  const uint64_t n = s->bytes - at < s->each ? s->bytes - at : s->each;
  if (s->to)
    memcpy(s->to + at, s->from + at, n);
  else
    for (uint64_t i = 0; i < n; i += HN_MEM_ALIGN) (void)*(const volatile char *)(s->from + at + i);
}

static void sweep_all(hn_device *d, const void *from, void *to, uint64_t bytes) {
  const uint64_t threads = d->machine.threads;
  sweep s = {from, to, bytes, hn_round_up(bytes / threads + 1, HN_MEM_ALIGN)};
  hn_pool_parallel(d->pool, (int64_t)threads, sweep_part, &s);
}

static void cpu_cool(hn_device *d, uint64_t bytes) {
  if (bytes > COOL_MOST) bytes = COOL_MOST;
  if (!d->other) d->other = hn_aligned(4096, COOL_MOST);
  if (!d->other) return; /* measured warm */
  if (bytes > d->other_made) {
    memset(d->other + d->other_made, 0, bytes - d->other_made);
    d->other_made = bytes;
  }
  sweep_all(d, d->other, NULL, bytes);
}

static void cpu_stage(hn_device *d, void *to, const void *from, size_t bytes) {
  sweep_all(d, from, to, bytes);
}

static void cpu_consume(hn_device *d, const void *from, size_t bytes) { sweep_all(d, from, NULL, bytes); }

/* Where products are computed with numbers of that type: elsewhere 16 bits would only be a detour. */
static bool cpu_stores(const hone_machine *machine, hone_dtype type) {
  const hn_isa isa = hn_isa_of(machine->isa);
  return type == HONE_DTYPE_BF16 ? hn_bf16_find(isa) != NULL : hn_f16_find(isa) != NULL;
}

static double cpu_codes_rate(const hone_machine *machine) {
  const hn_int8_ops *o = hn_int8_find(hn_isa_of(machine->isa));
  return o ? o->rate : 0;
}

const hn_backend hn_backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .machine = cpu_machine,
    .stores = cpu_stores,
    .codes_rate = cpu_codes_rate,
    .tactics = &hn_cpu_tactics,
    .pool = cpu_pool,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .copy = cpu_copy,
    .launch = cpu_launch,
    .parallel = cpu_parallel,
    .sync = cpu_sync,
    .asynchronous = false,
    .share_open = cpu_share_open,
    .queue_close = cpu_queue_close,
    .fingerprint = cpu_fingerprint,
    .cool = cpu_cool,
    .stage = cpu_stage,
    .consume = cpu_consume,
};
