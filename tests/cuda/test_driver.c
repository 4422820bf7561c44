/* The driver layer of the CUDA backend: what it does, and that every failure of the driver gives one clear
 * error, hangs nowhere, leaks nothing and leaves the process usable. Runs on the fake driver (HONE_LIBCUDA
 * and HONE_LIBNVRTC), or, with neither set, on the machine's GPU; failures on purpose need the fake one.
 * Every case has a process of its own: what the driver answers is set in the environment. */
#include "backends/cuda/backend.h"
#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/driver/device.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/modules.h"
#include "backends/cuda/driver/queue.h"
#include "base/error.h"
#include "base/os.h"
#include "skipped.h"

#include <hone/hone.h>

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const hn_backend *const b = &hn_backend_cuda;

/* ------------------------------------------------------------------ a process for each case */

typedef struct answer {
  hone_error error;
  char note[600];
} answer;

typedef void (*scene)(answer *a);

#define MUST(x)                                                                                              \
  do {                                                                                                       \
    if (!(x)) {                                                                                              \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);                                                \
      _exit(99);                                                                                             \
    }                                                                                                        \
  } while (0)
#define MUST_OK(x) must_ok((x), a, __LINE__, #x)

static void must_ok(hone_status status, const answer *a, int line, const char *text) {
  if (status == HONE_OK) return;
  char why[1200];
  hone_error_format(&a->error, why, sizeof why);
  fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, line, text, why);
  _exit(99);
}

static char folder[256]; /* of this process's kernel cache */

/* Runs the scene in a child; `settings` are NAME=VALUE. Returns what it wrote. */
static answer play(scene s, const char *const *settings) {
  int ends[2];
  answer a = {0};
  assert_int_equal(pipe(ends), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(60);
    close(ends[0]);
    setenv("HONE_FAKE_QUIET", "1", 1);
    setenv("HONE_KERNEL_CACHE", folder, 1);
    for (; settings && *settings; settings++) putenv((char *)(uintptr_t)*settings);
    s(&a);
    MUST(write(ends[1], &a, sizeof a) == (ssize_t)sizeof a);
    exit(0); /* not _exit: leak checkers look now */
  }
  close(ends[1]);
  size_t got = 0;
  for (ssize_t n; got < sizeof a && (n = read(ends[0], (char *)&a + got, sizeof a - got)) > 0;)
    got += (size_t)n;
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) || got != sizeof a)
    fail_msg("the case ended with %s %d", WIFSIGNALED(status) ? "signal" : "exit code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return a;
}

#define PLAY(s, ...) play((s), (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void expect(const answer *a, hone_status status, const char *const *words) {
  char line[1400];
  hone_error_format(&a->error, line, sizeof line);
  if (a->error.status != status) fail_msg("status %d, expected %d: %s", a->error.status, status, line);
  assert_null(strchr(line, '\n'));
  for (; *words; words++)
    if (!strstr(line, *words)) fail_msg("'%s' is not in: %s", *words, line);
}

#define EXPECT(a, status, ...) expect(&(a), (status), (const char *const[]){__VA_ARGS__, NULL})

static bool fake(void) { return getenv("HONE_LIBCUDA") != NULL; }

#define NEEDS_FAKE()                                                                                         \
  if (!fake()) skip()

/* ------------------------------------------------------------------ kernels of this test */

/* Device text in the prefix of a text that is there anyway: as generated code comes to the compiler. */
static const char scale_text[] =
    "#include \"prelude.cuh\"\n"
    "typedef struct scale_args { const void *in; void *out; float by; int n; } scale_args;\n"
    "HN_KERNEL(scale, scale_args, a) {\n"
    "  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
    "  if (i < a.n) ((float *)a.out)[i] = ((const float *)a.in)[i] * a.by;\n"
    "}\n"
    "HN_KERNEL(reverse, scale_args, a) {\n"
    "  HN_DYNAMIC_SHARED(float, all);\n"
    "  for (int i = (int)threadIdx.x; i < a.n; i += (int)blockDim.x) all[i] = ((const float *)a.in)[i];\n"
    "  HN_SYNC();\n"
    "  for (int i = (int)threadIdx.x; i < a.n; i += (int)blockDim.x)\n"
    "    ((float *)a.out)[i] = all[a.n - 1 - i] * a.by;\n"
    "}\n";

typedef struct scale_args {
  const void *in;
  void *out;
  float by;
  int n;
} scale_args;

static const hn_cuda_kernel scale = {"types", scale_text, "scale"};
static const hn_cuda_kernel reverse = {"types", scale_text, "reverse"};

enum { N = 20000 };

typedef struct rig {
  hn_device *d;
  hn_queue *q;
  float *host, *x, *y;
} rig;

static void rig_open(rig *r, answer *a) {
  *r = (rig){0};
  MUST_OK(b->open(0, 2, NULL, &r->d, &a->error));
  MUST_OK(b->queue_open(r->d, &r->q, &a->error));
  r->host = b->alloc_host(r->d, 2 * N * sizeof(float));
  r->x = b->alloc(r->d, N * sizeof(float));
  r->y = b->alloc(r->d, N * sizeof(float));
  MUST(r->host && r->x && r->y);
  for (int i = 0; i < N; i++) r->host[i] = (float)(i % 977) - 400;
}

static void rig_close(rig *r) {
  b->free(r->d, r->x);
  b->free(r->d, r->y);
  b->free_host(r->d, r->host);
  b->queue_close(r->d, r->q);
  b->close(r->d);
}

static hone_status launch(rig *r, const hn_cuda_kernel *k, const void *in, void *out, float by,
                          hone_error *error) {
  hn_cuda_queue *lane;
  hone_status status = hn_cuda_lane(r->d, r->q, &lane, error);
  const scale_args args = {in, out, by, N};
  const bool whole = k == &reverse;
  const hn_cuda_shape shape = {
      .grid = {whole ? 1 : (N + 255) / 256, 1, 1}, .threads = 256, .shared = whole ? N * sizeof(float) : 0};
  return status == HONE_OK ? hn_cuda_launch(lane, k, &shape, &args, sizeof args, error) : status;
}

static hone_status to_device(rig *r, hone_error *error) {
  return b->copy(r->d, r->q, r->x, r->host, N * sizeof(float), error);
}

static hone_status to_host(rig *r, const void *from, hone_error *error) {
  memset(r->host + N, 0xff, N * sizeof(float));
  hone_status status = b->copy(r->d, r->q, r->host + N, from, N * sizeof(float), error);
  return status == HONE_OK ? b->sync(r->d, r->q, error) : status;
}

static void must_be(const rig *r, float by, bool reversed) {
  for (int i = 0; i < N; i++) {
    const float want = (float)((reversed ? N - 1 - i : i) % 977) - 400;
    MUST(r->host[N + i] == want * by);
  }
}

/* What a healthy device does; every failure that can be survived is followed by it. */
static void work(answer *a) {
  rig r;
  rig_open(&r, a);
  MUST_OK(to_device(&r, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.y, 3, &a->error));
  MUST_OK(to_host(&r, r.y, &a->error));
  must_be(&r, 3, false);
  rig_close(&r);
}

/* ------------------------------------------------------------------ what works */

static void scene_work(answer *a) {
  rig r;
  work(a);
  rig_open(&r, a);
  const hone_machine *m = b->machine(r.d);
  MUST(m->arch >= 70 && m->processors && m->shared_bytes >= 48 << 10 && m->l2 && m->peak_flops > 0 &&
       m->dram_bytes > 0 && m->half_flops > 0 && m->tf32_flops > 0 && m->launch_s > 0);
  char line[300];
  b->fingerprint(r.d, line, sizeof line);
  snprintf(a->note, sizeof a->note,
           "%s; %u SMs, %zu KB shared, %.0f MB L2, %.2f TB/s, f32 %.0f, tf32 %.0f, f16 %.0f TFLOP/s", line,
           m->processors, m->shared_bytes >> 10, (double)m->l2 / (1 << 20), m->dram_bytes * 1e-12,
           m->peak_flops * 1e-12, m->tf32_flops * 1e-12, m->half_flops * 1e-12);
  /* More shared memory than a kernel has without asking. */
  MUST_OK(to_device(&r, &a->error));
  MUST_OK(launch(&r, &reverse, r.x, r.y, -1, &a->error));
  MUST_OK(to_host(&r, r.y, &a->error));
  must_be(&r, -1, true);
  rig_close(&r);
}

static void test_work(void **state) {
  (void)state;
  answer a = PLAY(scene_work);
  print_message("%s\n", a.note);
}

/* A captured segment runs as often as it is launched, with its lanes in order. */
static void scene_capture(answer *a) {
  rig r;
  hn_segment *s = NULL;
  hn_event *from, *to;
  double seconds = -1;
  rig_open(&r, a);
  float *z = b->alloc(r.d, N * sizeof(float));
  MUST(z);
  MUST_OK(b->event_open(r.d, &from, &a->error));
  MUST_OK(b->event_open(r.d, &to, &a->error));
  for (int captured = 1; captured >= 0; captured--) { /* first: the kernel is loaded during the capture */
    if (captured) MUST_OK(b->capture_begin(r.d, r.q, &a->error));
    MUST_OK(to_device(&r, &a->error));
    MUST_OK(b->follow(r.d, r.q, 1, 0, &a->error));
    MUST_OK(launch(&r, &scale, r.x, r.y, 2, &a->error));
    b->lane(r.d, r.q, 1);
    MUST_OK(launch(&r, &scale, r.x, z, 5, &a->error));
    MUST_OK(b->follow(r.d, r.q, 0, 1, &a->error));
    b->lane(r.d, r.q, 0);
    MUST_OK(launch(&r, &scale, r.y, r.x, 7, &a->error));
    if (!captured) {
      MUST_OK(b->sync(r.d, r.q, &a->error));
      continue;
    }
    MUST_OK(b->capture_end(r.d, r.q, &s, &a->error));
    MUST(s);
  }
  MUST_OK(to_host(&r, r.x, &a->error));
  must_be(&r, 14, false);
  for (int k = 0; k < 3; k++) {
    MUST_OK(b->event_record(r.d, r.q, from, &a->error));
    MUST_OK(b->segment_launch(r.d, r.q, s, &a->error));
    MUST_OK(b->event_record(r.d, r.q, to, &a->error));
    MUST_OK(to_host(&r, z, &a->error));
    must_be(&r, 5, false);
    MUST_OK(b->event_seconds(r.d, from, to, &seconds, &a->error));
    MUST(seconds >= 0 && seconds < 10);
  }
  MUST_OK(to_host(&r, r.x, &a->error));
  must_be(&r, 14, false);
  /* Given up: nothing runs, and the queue goes on. */
  MUST_OK(b->capture_begin(r.d, r.q, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.x, 0, &a->error));
  MUST_OK(b->capture_end(r.d, r.q, NULL, &a->error));
  MUST_OK(to_host(&r, r.x, &a->error));
  must_be(&r, 14, false);
  b->segment_free(r.d, s);
  b->event_close(r.d, from);
  b->event_close(r.d, to);
  b->free(r.d, z);
  rig_close(&r);
}

static void test_capture(void **state) {
  (void)state;
  PLAY(scene_capture);
}

/* Reuse, and numbers that add up. */
static void scene_memory(answer *a) {
  rig r;
  hn_memory_use m;
  rig_open(&r, a);
  b->memory(r.d, &m);
  const uint64_t before = m.used;
  hone_memory_pool pool;
  hn_mempool_totals(r.d->memory, &pool);
  const uint64_t calls = pool.taken + pool.given;
  void *p[20];
  for (int round = 0; round < 5; round++) {
    for (int i = 0; i < 20; i++) MUST(p[i] = b->alloc(r.d, 1000 + (size_t)i * 7777));
    for (int i = 0; i < 20; i++)
      for (int k = 0; k < i; k++) MUST(p[i] != p[k]);
    if (round == 0) {
      b->memory(r.d, &m);
      MUST(m.used > before && m.peak >= m.used && m.held >= m.used && m.total >= m.free);
    }
    for (int i = 0; i < 20; i++) b->free(r.d, p[(i * 7) % 20]);
  }
  b->memory(r.d, &m);
  MUST(m.used == before);
  hn_mempool_totals(r.d->memory, &pool);
  MUST(pool.taken + pool.given - calls <= 20); /* of 100 */
  /* Memory that work still uses is not handed out before the work is done. */
  for (int k = 0; k < 8; k++) {
    float *t = b->alloc(r.d, N * sizeof(float));
    MUST_OK(to_device(&r, &a->error));
    MUST_OK(launch(&r, &scale, r.x, t, 2, &a->error));
    MUST_OK(launch(&r, &scale, t, r.y, 2, &a->error));
    b->free(r.d, t);
    float *u = b->alloc(r.d, N * sizeof(float));
    b->lane(r.d, r.q, 1);
    MUST_OK(launch(&r, &scale, r.x, u, 100, &a->error));
    b->lane(r.d, r.q, 0);
    MUST_OK(to_host(&r, r.y, &a->error));
    must_be(&r, 4, false);
    b->free(r.d, u);
  }
  rig_close(&r);
}

static void test_memory(void **state) {
  (void)state;
  PLAY(scene_memory);
}

/* Few bytes cross by a kernel where one queue has the device for itself and kernels reach both sides; else
 * they are copied. They arrive either way. */
static void cross_as(answer *a, rig *r, void *to, const void *from, size_t bytes, uint64_t kernels) {
  const uint64_t before = b->launched(r->q).kernels;
  MUST_OK(b->cross(r->d, r->q, to, from, bytes, &a->error));
  MUST_OK(b->sync(r->d, r->q, &a->error));
  MUST(b->launched(r->q).kernels - before == kernels);
}

static void scene_cross(answer *a) {
  enum { FEW = 1001 * sizeof(float) };
  rig r;
  hn_queue *other;
  rig_open(&r, a);
  float *pageable = aligned_alloc(64, FEW / 64 * 64 + 64), *back = r.host + N;
  MUST(pageable);
  memset(back, 0xff, N * sizeof(float));
  cross_as(a, &r, r.x, r.host, FEW, 1);
  cross_as(a, &r, back, r.x, FEW, 1);
  MUST(memcmp(back, r.host, FEW) == 0 && back[1001] != back[1001]);
  memcpy(pageable, r.host + 50, FEW);
  cross_as(a, &r, r.y, pageable, FEW, 0);
  cross_as(a, &r, back, r.y, FEW, 1);
  MUST(memcmp(back, pageable, FEW) == 0);
  cross_as(a, &r, r.x, r.host + 1, FEW, 0); /* not at whole vectors */
  cross_as(a, &r, r.x, r.host, 0, 0);
  MUST_OK(b->queue_open(r.d, &other, &a->error));
  cross_as(a, &r, r.x, r.host, FEW, 0);
  b->queue_close(r.d, other);
  cross_as(a, &r, back, r.x, FEW, 1);
  MUST(memcmp(back, r.host, FEW) == 0);
  free(pageable);
  rig_close(&r);
}

static void test_cross(void **state) {
  (void)state;
  PLAY(scene_cross);
}

typedef struct crowd {
  rig *r;
  _Atomic int failed;
} crowd;

static void many(void *arg, int64_t task, uint32_t thread) {
  crowd *c = arg;
  (void)thread;
  char prefix[sizeof scale_text + 40];
  snprintf(prefix, sizeof prefix, "#define VARIANT %d\n%s", (int)(task % 3), scale_text);
  const hn_cuda_kernel k = {"types", prefix, "scale"};
  const hn_cuda_shape shape = {.grid = {1, 1, 1}, .threads = 32};
  const scale_args args = {0};
  if (hn_cuda_launch(&c->r->d->dry, &k, &shape, &args, sizeof args, NULL) != HONE_OK) c->failed++;
}

/* Many threads that want the same three texts compile each of them once; a second device finds them on disk.
 */
static void scene_threads(answer *a) {
  rig r;
  rig_open(&r, a);
  crowd c = {.r = &r};
  b->parallel(r.d, 64, many, &c);
  MUST(c.failed == 0);
  MUST(r.d->modules->compiled + r.d->modules->loaded == 3);
  rig_close(&r);
  rig_open(&r, a);
  b->parallel(r.d, 64, many, &c);
  MUST(c.failed == 0 && r.d->modules->compiled == 0 && r.d->modules->loaded == 3);
  char warnings[400];
  b->warnings(r.d, warnings, sizeof warnings);
  MUST(!warnings[0]);
  rig_close(&r);
}

static void test_threads(void **state) {
  (void)state;
  PLAY(scene_threads);
}

/* What a tactic asks without a queue may be answered by another engine's device: it stays open until then. */
typedef struct closing {
  hn_device *d;
  _Atomic bool closed;
} closing;

static void *close_it(void *arg) {
  closing *c = arg;
  hn_cuda_close(c->d);
  c->closed = true;
  return NULL;
}

static void scene_asked(answer *a) {
  closing c = {0};
  hn_device *other = NULL;
  pthread_t thread;
  MUST_OK(hn_cuda_open(0, 1, NULL, &c.d, &a->error));
  MUST_OK(hn_cuda_open(0, 1, NULL, &other, &a->error));
  const hone_machine machine = other->machine;
  hn_cuda_queue *q = hn_cuda_queue_for(&machine, NULL);
  MUST(q == &c.d->dry);
  MUST(!pthread_create(&thread, NULL, close_it, &c));
  hn_cuda_queue *next; /* once it waits to be closed, nobody is sent there any more */
  while ((next = hn_cuda_queue_for(&machine, NULL)) == q) {
    hn_cuda_queue_leave(next);
    hn_sleep_ms(1);
  }
  MUST(next == &other->dry && !c.closed);
  MUST(hn_cuda_keep(q, "mine", hn_malloc(8), hn_free)); /* it is open */
  hn_cuda_queue_leave(q);
  MUST(!pthread_join(thread, NULL) && c.closed);
  hn_cuda_queue_leave(next);
  hn_cuda_close(other);
  MUST(!hn_cuda_queue_for(&machine, NULL));
}

static void test_asked(void **state) {
  (void)state;
  PLAY(scene_asked);
}

/* ------------------------------------------------------------------ kernels that are wrong */

static void scene_bad_text(answer *a) {
  rig r;
  rig_open(&r, a);
  const hn_cuda_kernel k = {"types", "\nint f(void) { return there_is_no_such_name; }", "f"};
  const hn_cuda_shape shape = {.grid = {1, 1, 1}, .threads = 32};
  for (int i = 0; i < 2; i++) /* remembered, not compiled again */
    MUST(hn_cuda_launch(&r.d->dry, &k, &shape, "", 1, &a->error) == HONE_ERROR_INTERNAL);
  const hone_error first = a->error;
  const hn_cuda_kernel none = {"no_such_text", NULL, "f"}, entry = {"types", scale_text, "no_such_kernel"};
  MUST(hn_cuda_launch(&r.d->dry, &none, &shape, "", 1, &a->error) == HONE_ERROR_INTERNAL);
  MUST(strstr(a->error.what, "no_such_text"));
  MUST(hn_cuda_launch(&r.d->dry, &entry, &shape, "", 1, &a->error) != HONE_OK);
  MUST(strstr(a->error.where, "no_such_kernel"));
  /* Arguments of another size than the kernel's, and shapes that no device has. */
  MUST(hn_cuda_launch(&r.d->dry, &scale, &shape, "", 1, &a->error) == HONE_ERROR_INTERNAL);
  MUST(strstr(a->error.what, "bytes of arguments"));
  static const hn_cuda_shape wrong[] = {{.grid = {0, 1, 1}, .threads = 32},
                                        {.grid = {1, 70000, 1}, .threads = 32},
                                        {.grid = {1, 1, 1}, .threads = 2048},
                                        {.grid = {1, 1, 1}, .threads = 32, .shared = 1 << 20}};
  scale_args args = {0};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    MUST(hn_cuda_launch(&r.d->dry, &scale, &wrong[i], &args, sizeof args, &a->error) == HONE_ERROR_INTERNAL);
  rig_close(&r);
  work(a);
  a->error = first;
}

static void test_bad_text(void **state) {
  (void)state;
  answer a = PLAY(scene_bad_text);
  EXPECT(a, HONE_ERROR_INTERNAL, "there_is_no_such_name", "types", "prefix");
}

/* ------------------------------------------------------------------ the cache on disk */

static int cubins(char *path, size_t size) {
  int n = 0;
  DIR *dir = opendir(folder);
  if (!dir) return 0;
  for (struct dirent *e; (e = readdir(dir));)
    if (strstr(e->d_name, ".cubin")) {
      if (!n++) snprintf(path, size, "%s/%s", folder, e->d_name);
    }
  closedir(dir);
  return n;
}

static void empty_folder(void) {
  char path[600];
  while (cubins(path, sizeof path)) unlink(path);
}

static void scene_cached(answer *a) {
  rig r;
  rig_open(&r, a);
  MUST_OK(to_device(&r, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.y, 3, &a->error));
  MUST_OK(to_host(&r, r.y, &a->error));
  must_be(&r, 3, false);
  char warnings[400];
  b->warnings(r.d, warnings, sizeof warnings);
  snprintf(a->note, sizeof a->note, "compiled %d loaded %d: %.300s", (int)r.d->modules->compiled,
           (int)r.d->modules->loaded, warnings);
  rig_close(&r);
}

static void damage(const char *path, int kind) {
  const int fd = open(path, O_RDWR);
  char c = 0;
  assert_true(fd >= 0);
  const off_t size = lseek(fd, 0, SEEK_END);
  if (kind == 0) assert_int_equal(ftruncate(fd, size / 2), 0);
  if (kind == 1) assert_int_equal(ftruncate(fd, 0), 0);
  if (kind >= 2) {
    const off_t at = kind == 2 ? size - 100 : kind == 3 ? 3 : 12;
    assert_int_equal(pread(fd, &c, 1, at), 1);
    c ^= 0x20;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
  }
  close(fd);
}

static void test_cache(void **state) {
  (void)state;
  char path[600];
  empty_folder();
  answer a = PLAY(scene_cached);
  assert_string_equal(a.note, "compiled 1 loaded 0: ");
  assert_int_equal(cubins(path, sizeof path), 1);
  a = PLAY(scene_cached);
  assert_string_equal(a.note, "compiled 0 loaded 1: ");
  for (int kind = 0; kind < 5; kind++) {
    damage(path, kind);
    a = PLAY(scene_cached);
    if (!strstr(a.note, "compiled 1 loaded 0: ") || !strstr(a.note, "damaged"))
      fail_msg("damage %d: %s", kind, a.note);
    a = PLAY(scene_cached); /* mended */
    assert_string_equal(a.note, "compiled 0 loaded 1: ");
  }
  a = PLAY(scene_cached, "HONE_KERNEL_CACHE=off");
  assert_string_equal(a.note, "compiled 1 loaded 0: ");
  a = PLAY(scene_cached, "HONE_KERNEL_CACHE=/dev/null/no/folder");
  assert_non_null(strstr(a.note, "cannot be written"));
}

/* The file is whole, but the driver does not want it. */
static void test_refused_cubin(void **state) {
  (void)state;
  NEEDS_FAKE();
  PLAY(scene_cached);
  answer a = PLAY(scene_cached, "HONE_FAKE_FAIL=cuModuleLoadData:1");
  if (!strstr(a.note, "compiled 1 loaded 0: ") || !strstr(a.note, "refuses")) fail_msg("%s", a.note);
}

/* ------------------------------------------------------------------ what is missing */

static void scene_open(answer *a) {
  hn_device *d = NULL;
  if (b->open(0, 2, NULL, &d, &a->error) == HONE_OK) b->close(d);
  hone_error same = {0};
  if (hone_device_about("cuda", NULL, &same) != a->error.status && a->error.status == HONE_ERROR_MISSING)
    MUST(!"hone_device_about says the same");
}

static void scene_about(answer *a) {
  hone_device_info i;
  MUST_OK(hone_device_about("cuda:0", &i, &a->error));
  MUST(i.machine.emulated == (getenv("HONE_LIBCUDA") != NULL)); /* and a GPU is one */
  MUST(i.name[0] && i.memory_bytes >= i.memory_free && i.machine.arch);
  MUST(hone_device_about("cuda:900", &i, &a->error) == HONE_ERROR_MISSING);
  MUST(hone_device_about("cuda:", &i, &a->error) == HONE_ERROR_USAGE);
  MUST(hone_device_about("cuda:-1", &i, &a->error) == HONE_ERROR_USAGE);
  MUST(hone_device_about("cuda:1x", &i, &a->error) == HONE_ERROR_USAGE);
}

static void test_about(void **state) {
  (void)state;
  PLAY(scene_about);
}

static void test_missing(void **state) {
  (void)state;
  answer a = PLAY(scene_open, "HONE_LIBCUDA=/no/such/library.so");
  EXPECT(a, HONE_ERROR_MISSING, "/no/such/library.so", "NVIDIA's driver", "--device cpu works");
  NEEDS_FAKE();
  a = PLAY(scene_open, "HONE_LIBNVRTC=/no/such/library.so");
  EXPECT(a, HONE_ERROR_MISSING, "/no/such/library.so", "NVRTC", "--device cpu works");
  a = PLAY(scene_open, "HONE_FAKE_MISSING=cuLaunchKernelEx");
  EXPECT(a, HONE_ERROR_MISSING, "cuLaunchKernelEx", "too old");
  a = PLAY(scene_open, "HONE_FAKE_MISSING=nvrtcGetCUBIN");
  EXPECT(a, HONE_ERROR_MISSING, "nvrtcGetCUBIN", "NVRTC");
  a = PLAY(scene_open, "HONE_FAKE_MISSING=cuFuncGetParamInfo,cuEventElapsedTime_v2"); /* not needed */
  assert_int_equal(a.error.status, HONE_OK);
  a = PLAY(scene_open, "HONE_FAKE_FAIL=cuInit:1+");
  EXPECT(a, HONE_ERROR_MISSING, "CUDA_ERROR_NO_DEVICE", "--device cpu works");
  a = PLAY(scene_open, "HONE_FAKE_FAIL=cuInit:1+:803");
  EXPECT(a, HONE_ERROR_MISSING, "803", "nvidia-smi");
  a = PLAY(scene_open, "HONE_CUDA_ARCH=sm_999");
  EXPECT(a, HONE_ERROR_USAGE, "sm_999");
  a = PLAY(scene_open, "HONE_CUDA_ARCH=sm_80");
  assert_int_equal(a.error.status, HONE_OK);
  a = PLAY(scene_open, "HONE_CUDA_ARCH=sm_70");
  EXPECT(a, HONE_ERROR_MISSING, "sm_70", "sm_75 (Turing) or later", "--device cpu works");
  a = PLAY(scene_open, "HONE_FAKE_FAIL=cuDevicePrimaryCtxRetain:1");
  EXPECT(a, HONE_ERROR_MEMORY, "cuDevicePrimaryCtxRetain", "cuda:0");
}

/* ------------------------------------------------------------------ calls that fail */

/* One failing call: an error, and after it the same work is done. */
static void scene_failing(answer *a) {
  rig r;
  hn_segment *s = NULL;
  hone_error e = {0};
  hone_status status;
  rig_open(&r, a);
  status = to_device(&r, &e);
  if (status == HONE_OK) status = launch(&r, &reverse, r.x, r.y, 3, &e);
  if (status == HONE_OK) status = to_host(&r, r.y, &e);
  if (status == HONE_OK && (status = b->capture_begin(r.d, r.q, &e)) == HONE_OK) {
    hone_error other;
    status = launch(&r, &scale, r.x, r.y, 2, &e);
    const hone_status ended = b->capture_end(r.d, r.q, &s, status == HONE_OK ? &e : &other);
    if (status == HONE_OK) status = ended;
    MUST((ended == HONE_OK) == (s != NULL));
  }
  if (status == HONE_OK) status = b->segment_launch(r.d, r.q, s, &e);
  if (status == HONE_OK) status = b->sync(r.d, r.q, &e);
  MUST(status != HONE_OK && status == e.status);
  b->segment_free(r.d, s);
  rig_close(&r);
  work(a); /* the process goes on */
  a->error = e;
}

/* What may not be done while work is captured spoils the capture, and nothing else. */
static void scene_spoilt(answer *a) {
  rig r;
  hn_segment *s = NULL;
  hone_error e = {0};
  rig_open(&r, a);
  MUST_OK(to_device(&r, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.y, 2, &a->error));
  MUST_OK(b->sync(r.d, r.q, &a->error));
  MUST_OK(b->capture_begin(r.d, r.q, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.y, 3, &a->error));
  MUST(b->alloc(r.d, 5 << 20) == NULL);
  MUST(b->capture_end(r.d, r.q, &s, &e) == HONE_ERROR_DEVICE && !s);
  MUST_OK(to_host(&r, r.y, &a->error));
  must_be(&r, 2, false);
  rig_close(&r);
  work(a);
  a->error = e;
}

static void test_spoilt(void **state) {
  (void)state;
  answer a = PLAY(scene_spoilt);
  EXPECT(a, HONE_ERROR_DEVICE, "cuStreamEndCapture", "STREAM_CAPTURE_INVALIDATED");
}

static void test_failing_calls(void **state) {
  (void)state;
  NEEDS_FAKE();
  static const struct {
    const char *call, *name; /* name: as errors spell it; NULL: call */
    int at;
  } calls[] = {{"cuMemcpyAsync", NULL, 1},
               {"cuMemcpyAsync", NULL, 2},
               {"cuModuleGetFunction", NULL, 1},
               {"cuFuncSetAttribute", NULL, 1},
               {"cuLaunchKernelEx", NULL, 1},
               {"cuLaunchKernelEx", NULL, 2},
               {"cuStreamBeginCapture_v2", "cuStreamBeginCapture", 1},
               {"cuGraphInstantiateWithFlags", NULL, 1},
               {"cuGraphUpload", NULL, 1},
               {"cuGraphLaunch", NULL, 1}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    char fail[100];
    snprintf(fail, sizeof fail, "HONE_FAKE_FAIL=%s:%d:1", calls[i].call, calls[i].at);
    answer a = PLAY(scene_failing, fail);
    EXPECT(a, HONE_ERROR_DEVICE, calls[i].name ? calls[i].name : calls[i].call, "CUDA_ERROR_INVALID_VALUE",
           "cuda:0");
  }
  empty_folder();
  answer a = PLAY(scene_failing, "HONE_FAKE_FAIL=cuModuleLoadData:1");
  EXPECT(a, HONE_ERROR_DEVICE, "cuModuleLoadData", "types");
  a = PLAY(scene_failing, "HONE_KERNEL_CACHE=off", "HONE_FAKE_FAIL=nvrtcCreateProgram:1");
  EXPECT(a, HONE_ERROR_MEMORY, "nvrtcCreateProgram");
}

static void scene_no_memory(answer *a) {
  hn_device *d;
  hn_memory_use m;
  MUST_OK(b->open(0, 2, NULL, &d, &a->error));
  void *p[256];
  int n = 0;
  while (n < 256 && (p[n] = b->alloc(d, (size_t)8 << 20))) n++;
  MUST(n > 0 && n < 256);
  b->memory(d, &m);
  MUST(m.used == (uint64_t)n << 23 && m.free < (uint64_t)8 << 20);
  for (int i = 0; i < n; i++) b->free(d, p[i]);
  MUST(hn_no_memory(b, d, 123456789, "a cat", &a->error) == HONE_ERROR_MEMORY);
  MUST(strstr(a->error.what, "123456789 bytes for a cat") && strstr(a->error.what, "of 0.10 GB free"));
  /* Blocks that were kept make room for one that none of them is large enough for. */
  void *large = b->alloc(d, (size_t)(n - 1) << 23);
  MUST(large);
  b->free(d, large);
  b->close(d);
  work(a);
}

static void test_no_memory(void **state) {
  (void)state;
  NEEDS_FAKE();
  PLAY(scene_no_memory, "HONE_FAKE_MEMORY=100000000");
}

/* A kernel's fault shows where its work is waited for, loses the context, and is then told by everything. */
static void scene_fault(answer *a) {
  rig r;
  hone_error e = {0}, again = {0};
  rig_open(&r, a);
  MUST_OK(to_device(&r, &a->error));
  /* A real GPU is given a real fault. */
  MUST_OK(launch(&r, &scale, r.x, fake() ? (void *)r.y : (void *)(uintptr_t)16, 3, &a->error));
  MUST(b->sync(r.d, r.q, &e) == HONE_ERROR_DEVICE);
  MUST(to_device(&r, &again) == HONE_ERROR_DEVICE);
  MUST(strcmp(again.what, e.what) == 0);
  MUST(b->alloc(r.d, 100) == NULL);
  MUST(hn_no_memory(b, r.d, 100, "this", &again) == HONE_ERROR_DEVICE);
  rig_close(&r);
  if (fake()) work(a); /* a new context */
  a->error = e;
}

static void test_fault(void **state) {
  (void)state;
  answer a = PLAY(scene_fault, "HONE_FAKE_FAIL=kernel:1");
  EXPECT(a, HONE_ERROR_DEVICE, "cuStreamSynchronize", "context is lost", "cuda:0");
  assert_int_equal(hone_status_exit_code(a.error.status), 6);
}

/* A wait that fails has not waited: what the device was given goes on. It has ended all the same before
 * others get what it writes, or nobody gets memory any more. WAIT is which wait fails: the queue's, or that
 * for memory that is given back. */
static void scene_failed_wait(answer *a) {
  rig r;
  hone_error e = {0};
  hn_queue *other;
  hone_status wait = HONE_OK;
  const char *fails = getenv("WAIT"), *given_back = strchr(fails, 'E');
  rig_open(&r, a);
  MUST_OK(b->queue_open(r.d, &other, &a->error));
  MUST_OK(to_device(&r, &a->error));
  MUST_OK(launch(&r, &scale, r.x, r.y, 5, &a->error));
  MUST_OK(to_host(&r, r.y, &a->error)); /* all that is made once is there */
  for (int i = 0; i < 20; i++) MUST_OK(launch(&r, &scale, r.x, r.y, 5, &a->error));
  setenv("HONE_FAKE_FAIL", fails, 1);
  if (given_back)
    b->free(r.d, r.y);
  else
    wait = b->sync(r.d, r.q, &a->error);
  MUST(given_back || wait != HONE_OK);
  setenv("HONE_FAKE_FAIL", "", 1);
  void *more = b->alloc(r.d, N * sizeof(float));
  if (!more) {
    MUST(given_back || wait == HONE_ERROR_DEVICE);
    MUST(b->sync(r.d, other, &a->error) == HONE_ERROR_DEVICE);
    snprintf(a->note, sizeof a->note, "lost");
  } else {
    if (given_back) r.y = more; /* one of these bytes again */
    MUST_OK(b->copy(r.d, other, r.y, r.host, N * sizeof(float), &e));
    MUST_OK(b->sync(r.d, other, &e));
    MUST_OK(to_host(&r, r.y, &e));
    snprintf(a->note, sizeof a->note, "%s",
             memcmp(r.host, r.host + N, N * sizeof(float)) ? "written over" : "kept");
    if (!given_back) b->free(r.d, more); /* which waits */
  }
  if (!more && given_back) r.y = NULL;
  b->queue_close(r.d, other);
  rig_close(&r);
}

static void test_failed_wait(void **state) {
  (void)state;
  NEEDS_FAKE();
  static const struct {
    const char *wait, *fault, *note;
  } cases[] = {
      {"WAIT=cuStreamSynchronize:1:999", NULL, "kept"},
      {"WAIT=cuStreamSynchronize:1+:999", NULL, "lost"},
      {"WAIT=cuStreamSynchronize:1:2", NULL, "kept"},
      {"WAIT=cuEventSynchronize:1:999", NULL, "kept"},
      {"WAIT=cuEventRecord:1:999", NULL, "kept"},
      {"WAIT=cuEventSynchronize:1+:999,cuStreamSynchronize:1+:999", NULL, "lost"},
      {"WAIT=cuStreamSynchronize:1:999", "cuda_failed_wait", "written over"},
      {"WAIT=cuEventSynchronize:1:999", "cuda_failed_fence", "written over"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
#ifndef HN_FAULTS
    if (cases[i].fault) continue;
#endif
    char fault[64];
    snprintf(fault, sizeof fault, "HONE_FAULT=%s", cases[i].fault ? cases[i].fault : "");
    answer a = PLAY(scene_failed_wait, cases[i].wait, "HONE_POOL=shared", fault);
    if (strcmp(a.note, cases[i].note)) fail_msg("%s: %s", cases[i].wait, a.note);
  }
}

/* In a process of its own: what has called the driver cannot fork any more. */
static bool has_gpu(void) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) _exit(hone_device_about("cuda", NULL, NULL) != HONE_OK);
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
  const char *given = getenv("HONE_LIBCUDA");
  if (given ? !hn_path_exists(given) : !has_gpu()) {
    printf("SKIP: no GPU and no fake driver\n");
    return SKIPPED;
  }
  snprintf(folder, sizeof folder, "%s/hone_driver_%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
           (int)getpid());
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_work),          cmocka_unit_test(test_capture),
      cmocka_unit_test(test_memory),        cmocka_unit_test(test_cross),
      cmocka_unit_test(test_threads),       cmocka_unit_test(test_bad_text),
      cmocka_unit_test(test_cache),         cmocka_unit_test(test_about),
      cmocka_unit_test(test_refused_cubin), cmocka_unit_test(test_missing),
      cmocka_unit_test(test_failing_calls), cmocka_unit_test(test_spoilt),
      cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_fault),
      cmocka_unit_test(test_failed_wait),   cmocka_unit_test(test_asked),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  empty_folder();
  rmdir(folder);
  return failed;
}
