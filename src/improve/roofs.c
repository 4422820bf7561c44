/* The machine's measured peaks, and their cache. */
#include <hone/improve.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/str.h"
#include "improve/roofs.h"

#include <stdio.h>
#include <string.h>

enum { REPEATS = 6, TARGET_NS = 25000000 };
#define MAX_BUFFERS ((size_t)256 << 20)

typedef struct job {
  hn_roof_loop loop;
  uint64_t rounds;
  char *const *buffer; /* by task */
  size_t bytes;
  uint64_t *sink; /* by task */
} job;

static void run_task(void *arg, int64_t task, uint32_t thread) {
  job *j = arg;
  (void)thread;
  j->sink[task] += j->loop.run(j->rounds, j->buffer ? j->buffer[task] : NULL, j->bytes);
}

/* Best of some repeats, each about TARGET_NS long: operations (or bytes) a second of all threads together. A
 * repeat in which one thread had to do two tasks is simply a slow one. */
static double best_rate(hn_pool *pool, uint32_t threads, job *j) {
  double best = 0, unit = j->loop.work > 0 ? j->loop.work : (double)j->bytes;
  if (!j->loop.run) return 0;
  j->rounds = 1;
  for (int repeat = 0; repeat < REPEATS;) {
    uint64_t t = hn_now_ns();
    hn_pool_parallel(pool, threads, run_task, j);
    t = hn_now_ns() - t;
    if (t < TARGET_NS / 4 && j->rounds < (uint64_t)1
                                             << 40) { /* too short to time: still finding the length */
      j->rounds *= t < TARGET_NS / 64 ? 16 : 4;
      continue;
    }
    double rate = (double)j->rounds * unit * threads / ((double)t * 1e-9);
    if (rate > best) best = rate;
    repeat++;
  }
  return best;
}

static hone_status measure(uint32_t threads, hone_roofs *r, hone_error *error) {
  const hn_cpu_info *cpu = hn_cpu();
  hn_roof_loops loops = hn_roof_loops_of(cpu->isa);
  size_t l1 = r->l1_bytes ? r->l1_bytes : 32768, l2 = r->l2_bytes ? r->l2_bytes : 1 << 20,
         l3 = r->l3_bytes ? r->l3_bytes : 32 << 20;
  size_t dram = l3 * 4 / threads; /* for each thread: together far beyond the last cache */
  if (dram * threads > MAX_BUFFERS) dram = MAX_BUFFERS / threads;
  dram = dram / 4096 * 4096;
  hone_status status = HONE_OK;
  hn_pool *pool = NULL;
  char **buffer = hn_calloc(threads, sizeof *buffer);
  uint64_t *sink = hn_calloc(threads, sizeof *sink);
  for (uint32_t i = 0; buffer && i < threads; i++) {
    buffer[i] = hn_aligned(4096, dram);
    if (!buffer[i]) break;
    memset(buffer[i], 1, dram);
  }
  if (!buffer || !sink || !buffer[threads - 1]) {
    status = hn_fail_memory(error, (unsigned long long)dram * threads, "measuring bandwidth");
    goto done;
  }
  status = hn_pool_create(threads, &pool, error);
  if (status != HONE_OK) goto done;
  job j = {.buffer = buffer, .sink = sink};
  double busy = hn_cpu_busy_seconds(), own = hn_cpu_own_seconds();
  uint64_t start = hn_now_ns();
  j.loop = loops.f32, r->f32_gflops = best_rate(pool, threads, &j) * 1e-9;
  j.loop = loops.bf16, r->bf16_gflops = best_rate(pool, threads, &j) * 1e-9;
  j.loop = loops.int8, r->int8_gops = best_rate(pool, threads, &j) * 1e-9;
  j.loop = loops.read;
  /* Well beyond the second level, and no more of the last one than a guest on a shared machine can hope for.
   */
  size_t l3_part = 4 * l2;
  if (l3_part > l3 / 2 / threads) l3_part = l3 / 2 / threads;
  if (l3_part < 2 * l2) l3_part = 2 * l2;
  if (l3_part > dram) l3_part = dram;
  j.bytes = l1 / 2, r->l1_gbs = best_rate(pool, threads, &j) * 1e-9;
  j.bytes = l2 / 2, r->l2_gbs = best_rate(pool, threads, &j) * 1e-9;
  j.bytes = l3_part, r->l3_gbs = best_rate(pool, threads, &j) * 1e-9;
  j.bytes = dram, r->dram_gbs = best_rate(pool, threads, &j) * 1e-9;
  busy = busy < 0 ? 0 : hn_cpu_busy_seconds() - busy - (hn_cpu_own_seconds() - own);
  r->others = busy / ((double)(hn_now_ns() - start) * 1e-9 * hn_cpu_count());
  r->others = r->others < 0 ? 0 : r->others > 1 ? 1 : r->others;
done:
  hn_pool_destroy(pool);
  for (uint32_t i = 0; buffer && i < threads; i++) hn_free(buffer[i]);
  hn_free(buffer);
  hn_free(sink);
  return status;
}

/* ---- cache: one small text file per processor, tier, thread count and version */

static void cache_key(const hone_roofs *r, char *buf, size_t size) {
  snprintf(buf, size, "hone-roofs 1 | %s | %s | %s | %u threads", hone_version(), r->cpu,
           hn_isa_name(hn_cpu()->isa), r->threads);
}

static bool cache_path(const hone_roofs *r, char *folder, char *path, size_t size) {
  char key[320];
  cache_key(r, key, sizeof key);
  if (!hn_cache_dir(folder, size)) return false;
  int n =
      snprintf(path, size, "%s/roofs-%016llx.txt", folder, (unsigned long long)hn_hash(key, strlen(key), 0));
  return n > 0 && (size_t)n < size;
}

static bool cache_read(hone_roofs *r) {
  char folder[4096], path[4096], key[320];
  hn_file file;
  if (!cache_path(r, folder, path, sizeof path) || hn_file_map(path, NULL, &file, NULL) != HONE_OK)
    return false;
  char text[2048];
  size_t n = file.size < sizeof text - 1 ? file.size : sizeof text - 1;
  memcpy(text, file.data, n);
  text[n] = 0;
  hn_file_unmap(&file);
  cache_key(r, key, sizeof key);
  size_t len = strlen(key);
  hone_roofs v = *r;
  bool ok = strncmp(text, key, len) == 0 && text[len] == '\n' &&
            sscanf(text + len + 1, "%lf %lf %lf %lf %lf %lf %lf", &v.f32_gflops, &v.bf16_gflops, &v.int8_gops,
                   &v.l1_gbs, &v.l2_gbs, &v.l3_gbs, &v.dram_gbs) == 7 &&
            v.f32_gflops > 0 && v.dram_gbs > 0;
  if (ok) *r = v;
  return ok;
}

/* A cache that cannot be written costs two seconds next time and nothing else. */
static void cache_write(const hone_roofs *r) {
  char folder[4096], path[4096], key[320];
  if (!cache_path(r, folder, path, sizeof path) || hn_mkdirs(folder, NULL) != HONE_OK) return;
  cache_key(r, key, sizeof key);
  hn_str s = {0};
  hn_str_printf(&s, "%s\n%.6g %.6g %.6g %.6g %.6g %.6g %.6g\n", key, r->f32_gflops, r->bf16_gflops,
                r->int8_gops, r->l1_gbs, r->l2_gbs, r->l3_gbs, r->dram_gbs);
  if (!s.failed) hn_file_write(path, s.ptr, s.len, NULL);
  hn_str_free(&s);
}

hone_status hone_roofs_measure(uint32_t threads, bool again, hone_roofs *out, hone_error *error) {
  if (!out) return hn_fail(error, HONE_ERROR_USAGE, "hone_roofs_measure: out is NULL");
  uint32_t most = hn_cpu_count();
  const hn_cpu_info *cpu = hn_cpu();
  *out = (hone_roofs){.threads = threads && threads < most ? threads : most,
                      .l1_bytes = hn_cache_size(1),
                      .l2_bytes = hn_cache_size(2),
                      .l3_bytes = hn_cache_size(3)};
  snprintf(out->cpu, sizeof out->cpu, "%s", cpu->brand);
  if (!again && cache_read(out)) return HONE_OK;
  hone_status status = measure(out->threads, out, error);
  if (status == HONE_OK && out->others <= HONE_ROOFS_QUIET) cache_write(out);
  return status;
}
