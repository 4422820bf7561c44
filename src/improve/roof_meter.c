/* Timing the loops that reach the processor's peaks, on all threads together. */
#include "improve/roofs.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"

#include <string.h>

/* As long as a kernel, and shorter than the slices in which a busy system shares its processors: some of many
 * repeats are then run in one piece. Longer ones never are, and half of the peak is what they show. */
enum { REPEATS = 20, QUICK_REPEATS = 4, TARGET_NS = 2500000 };

/* What the buffers of a quick window are taken from: filling some times a large last-level cache would be
 * most of its time. */
#define QUICK_ROOM ((uint64_t)256 << 20)

typedef struct job {
  hn_roof_loop loop;
  uint64_t rounds;
  char *const *buffer; /* by task */
  size_t bytes;
  uint64_t *sink; /* by task */
} job;

typedef struct cpu_meter {
  hn_roof_meter meter; /* first: the pointer that callers hold */
  uint32_t threads;
  hn_pool *pool;
  char **buffer;  /* [threads] */
  size_t filled;  /* bytes of each: filled when a figure first needs them, so that few figures cost little */
  uint64_t *sink; /* [threads] */
  job of[HN_ROOF_COUNT];
} cpu_meter;

static void run_task(void *arg, int64_t task, uint32_t thread) {
  job *j = arg;
  (void)thread;
  j->sink[task] += j->loop.run(j->rounds, j->buffer[task], j->bytes);
}

/* Bytes a second at which buffers are filled on a busy machine, where the system clears their pages first. */
#define FILLED_A_SECOND 1e9

static double now_s(void) { return (double)hn_now_ns() * 1e-9; }

static bool time_to_fill(const cpu_meter *m, size_t bytes) {
  const double more = bytes > m->filled ? (double)(bytes - m->filled) * m->threads : 0;
  return more <= 0 || m->meter.until <= 0 || now_s() + more / FILLED_A_SECOND <= m->meter.until;
}

static void fill(cpu_meter *m, size_t bytes) {
  for (uint32_t i = 0; i < m->threads && bytes > m->filled; i++)
    memset(m->buffer[i] + m->filled, 1, bytes - m->filled);
  if (bytes > m->filled) m->filled = bytes;
}

/* Best of some repeats, about TARGET_NS long each: operations (or bytes) a second of all threads together. A
 * repeat in which one thread had to do two tasks is simply a slow one. */
static double best_rate(hn_roof_meter *meter, hn_roof_figure figure) {
  cpu_meter *m = (cpu_meter *)meter;
  job *j = &m->of[figure];
  double best = 0, unit = j->loop.work > 0 ? j->loop.work : (double)j->bytes;
  if (!j->loop.run || !time_to_fill(m, j->bytes)) return 0;
  fill(m, j->bytes);
  for (int repeat = 0, repeats = hn_roof_quick() ? QUICK_REPEATS : REPEATS; repeat < repeats;) {
    uint64_t t = hn_now_ns();
    hn_pool_parallel(m->pool, m->threads, run_task, j);
    t = hn_now_ns() - t;
    if (t < TARGET_NS / 4 && j->rounds < (uint64_t)1
                                             << 40) { /* too short to time: still finding the length */
      j->rounds *= t < TARGET_NS / 64 ? 16 : 4;
      continue;
    }
    double rate = (double)j->rounds * unit * m->threads / (double)t; /* an operation a nanosecond: giga */
    if (rate > best) best = rate;
    repeat++;
    if (m->meter.until > 0 && now_s() >= m->meter.until) break;
  }
  return best;
}

static void read_load(hn_roof_meter *meter, hn_load *now) {
  (void)meter;
  *now = (hn_load){now_s(), hn_cpu_busy_seconds(), hn_cpu_own_seconds(), hn_run_delay_seconds()};
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t most(size_t a, size_t b) { return a > b ? a : b; }

hn_roof_buffers hn_roof_buffers_for(uint32_t threads, size_t l2, size_t l3, uint64_t room) {
  size_t all = most(least(4 * l3, (size_t)256 << 20), most(2 * l3, 4 * l2 * threads));
  if (all > room / 4) all = (size_t)(room / 4);
  hn_roof_buffers b = {.dram = most(all / threads / 4096, 1) * 4096};
  b.l3 = least(most(least(4 * l2, l3 / 2 / threads), 2 * l2), b.dram);
  return b;
}

/* Memory that may be taken without harm to anybody. */
static uint64_t room(void) {
  const uint64_t available = hn_memory_available(), limit = hn_memory_limit();
  uint64_t bytes = hn_roof_quick() ? QUICK_ROOM : UINT64_MAX;
  if (available && available < bytes) bytes = available;
  return limit && limit < bytes ? limit : bytes;
}

/* Of all last-level caches those that so many threads can have. */
static size_t last_caches(const hone_roofs *machine) {
  const size_t one = machine->l3_bytes ? machine->l3_bytes : 32 << 20, all = hn_cache_total(3);
  return all ? least(all, one * machine->threads) : one;
}

/* What each figure is measured with. */
static void fill_jobs(cpu_meter *m, size_t l1, size_t l2, hn_roof_buffers b) {
  const hn_roof_loops loops = hn_roof_loops_of(hn_cpu()->isa);
  const struct {
    hn_roof_loop loop;
    size_t bytes;
  } what[HN_ROOF_COUNT] = {
      [HN_ROOF_f32_gflops] = {loops.f32, 0},   [HN_ROOF_bf16_gflops] = {loops.bf16, 0},
      [HN_ROOF_int8_gops] = {loops.int8, 0},   [HN_ROOF_int8_vector_gops] = {loops.int8_vector, 0},
      [HN_ROOF_l1_gbs] = {loops.read, l1 / 2}, [HN_ROOF_l2_gbs] = {loops.read, l2 / 2},
      [HN_ROOF_l3_gbs] = {loops.read, b.l3},   [HN_ROOF_dram_gbs] = {loops.read, b.dram},
  };
  for (int i = 0; i < HN_ROOF_COUNT; i++)
    m->of[i] = (job){what[i].loop, 1, m->buffer, least(what[i].bytes, b.dram), m->sink};
}

static hone_status open_cpu(hn_roof_meter *meter, const hone_roofs *machine, hone_error *error) {
  cpu_meter *m = (cpu_meter *)meter;
  const uint32_t threads = machine->threads;
  const size_t l1 = machine->l1_bytes ? machine->l1_bytes : 32768,
               l2 = machine->l2_bytes ? machine->l2_bytes : 1 << 20;
  const hn_roof_buffers b = hn_roof_buffers_for(threads, l2, last_caches(machine), room());
  m->threads = threads;
  m->filled = 0;
  m->buffer = hn_calloc(threads, sizeof *m->buffer);
  m->sink = hn_calloc(threads, sizeof *m->sink);
  for (uint32_t i = 0; m->buffer && i < threads; i++) {
    m->buffer[i] = hn_aligned(4096, b.dram);
    if (!m->buffer[i]) break;
  }
  if (!m->buffer || !m->sink || !m->buffer[threads - 1])
    return hn_fail_memory(error, (unsigned long long)b.dram * threads, "measuring bandwidth");
  fill_jobs(m, l1, l2, b);
  return hn_pool_create(threads, &m->pool, error);
}

static void close_cpu(hn_roof_meter *meter) {
  cpu_meter *m = (cpu_meter *)meter;
  hn_pool_destroy(m->pool);
  for (uint32_t i = 0; m->buffer && i < m->threads; i++) hn_free(m->buffer[i]);
  hn_free(m->buffer);
  hn_free(m->sink);
  m->pool = NULL;
  m->buffer = NULL;
  m->sink = NULL;
}

hn_roof_meter *hn_roof_meter_new(void) {
  cpu_meter *m = hn_calloc(1, sizeof *m);
  if (!m) return NULL;
  m->meter = (hn_roof_meter){hn_thread_count(), open_cpu, close_cpu, best_rate, read_load, 0};
  return &m->meter;
}
