/* The driver layer of the CUDA backend: what it does, and what it says where something is missing
 * (driver_rig.h: on what it runs). Calls that fail: test_driver_failures.c. */
#include "driver_rig.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/queue.h"
#include "backends/cuda/driver/device.h"
#include "backends/cuda/driver/libraries.h"
#include "base/os.h"

#include <fcntl.h>

/* ------------------------------------------------------------------ what works */

static void scene_work(answer *a) {
  rig r;
  rig_work(a);
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
  MUST_OK(rig_to_device(&r, &a->error));
  MUST_OK(rig_launch(&r, &rig_reverse, r.x, r.y, -1, &a->error));
  MUST_OK(rig_to_host(&r, r.y, &a->error));
  rig_must_be(&r, -1, true);
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
    MUST_OK(rig_to_device(&r, &a->error));
    MUST_OK(b->follow(r.d, r.q, 1, 0, &a->error));
    MUST_OK(rig_launch(&r, &rig_scale, r.x, r.y, 2, &a->error));
    b->lane(r.d, r.q, 1);
    MUST_OK(rig_launch(&r, &rig_scale, r.x, z, 5, &a->error));
    MUST_OK(b->follow(r.d, r.q, 0, 1, &a->error));
    b->lane(r.d, r.q, 0);
    MUST_OK(rig_launch(&r, &rig_scale, r.y, r.x, 7, &a->error));
    if (!captured) {
      MUST_OK(b->sync(r.d, r.q, &a->error));
      continue;
    }
    MUST_OK(b->capture_end(r.d, r.q, &s, &a->error));
    MUST(s);
  }
  MUST_OK(rig_to_host(&r, r.x, &a->error));
  rig_must_be(&r, 14, false);
  for (int k = 0; k < 3; k++) {
    MUST_OK(b->event_record(r.d, r.q, from, &a->error));
    MUST_OK(b->segment_launch(r.d, r.q, s, &a->error));
    MUST_OK(b->event_record(r.d, r.q, to, &a->error));
    MUST_OK(rig_to_host(&r, z, &a->error));
    rig_must_be(&r, 5, false);
    MUST_OK(b->event_seconds(r.d, from, to, &seconds, &a->error));
    MUST(seconds >= 0 && seconds < 10);
  }
  MUST_OK(rig_to_host(&r, r.x, &a->error));
  rig_must_be(&r, 14, false);
  /* Given up: nothing runs, and the queue goes on. */
  MUST_OK(b->capture_begin(r.d, r.q, &a->error));
  MUST_OK(rig_launch(&r, &rig_scale, r.x, r.x, 0, &a->error));
  MUST_OK(b->capture_end(r.d, r.q, NULL, &a->error));
  MUST_OK(rig_to_host(&r, r.x, &a->error));
  rig_must_be(&r, 14, false);
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
    MUST_OK(rig_to_device(&r, &a->error));
    MUST_OK(rig_launch(&r, &rig_scale, r.x, t, 2, &a->error));
    MUST_OK(rig_launch(&r, &rig_scale, t, r.y, 2, &a->error));
    b->free(r.d, t);
    float *u = b->alloc(r.d, N * sizeof(float));
    b->lane(r.d, r.q, 1);
    MUST_OK(rig_launch(&r, &rig_scale, r.x, u, 100, &a->error));
    b->lane(r.d, r.q, 0);
    MUST_OK(rig_to_host(&r, r.y, &a->error));
    rig_must_be(&r, 4, false);
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
  char prefix[1200];
  MUST(strlen(rig_text) + 40 < sizeof prefix);
  snprintf(prefix, sizeof prefix, "#define VARIANT %d\n%s", (int)(task % 3), rig_text);
  const hn_cuda_kernel k = {"types", prefix, "scale"};
  const hn_cuda_shape shape = {.grid = {1, 1, 1}, .threads = 32};
  const rig_args args = {0};
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
  const hn_cuda_kernel none = {"no_such_text", NULL, "f"}, entry = {"types", rig_text, "no_such_kernel"};
  MUST(hn_cuda_launch(&r.d->dry, &none, &shape, "", 1, &a->error) == HONE_ERROR_INTERNAL);
  MUST(strstr(a->error.what, "no_such_text"));
  MUST(hn_cuda_launch(&r.d->dry, &entry, &shape, "", 1, &a->error) != HONE_OK);
  MUST(strstr(a->error.where, "no_such_kernel"));
  /* Arguments of another size than the kernel's, and shapes that no device has. */
  MUST(hn_cuda_launch(&r.d->dry, &rig_scale, &shape, "", 1, &a->error) == HONE_ERROR_INTERNAL);
  MUST(strstr(a->error.what, "bytes of arguments"));
  static const hn_cuda_shape wrong[] = {{.grid = {0, 1, 1}, .threads = 32},
                                        {.grid = {1, 70000, 1}, .threads = 32},
                                        {.grid = {1, 1, 1}, .threads = 2048},
                                        {.grid = {1, 1, 1}, .threads = 32, .shared = 1 << 20}};
  rig_args args = {0};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    MUST(hn_cuda_launch(&r.d->dry, &rig_scale, &wrong[i], &args, sizeof args, &a->error) ==
         HONE_ERROR_INTERNAL);
  rig_close(&r);
  rig_work(a);
  a->error = first;
}

static void test_bad_text(void **state) {
  (void)state;
  answer a = PLAY(scene_bad_text);
  EXPECT(a, HONE_ERROR_INTERNAL, "there_is_no_such_name", "types", "prefix");
}

/* ------------------------------------------------------------------ the cache on disk */

static void scene_cached(answer *a) {
  rig r;
  rig_open(&r, a);
  MUST_OK(rig_to_device(&r, &a->error));
  MUST_OK(rig_launch(&r, &rig_scale, r.x, r.y, 3, &a->error));
  MUST_OK(rig_to_host(&r, r.y, &a->error));
  rig_must_be(&r, 3, false);
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
  rig_empty_cache();
  answer a = PLAY(scene_cached);
  assert_string_equal(a.note, "compiled 1 loaded 0: ");
  assert_int_equal(rig_cubins(path, sizeof path), 1);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_work),    cmocka_unit_test(test_capture), cmocka_unit_test(test_memory),
      cmocka_unit_test(test_cross),   cmocka_unit_test(test_threads), cmocka_unit_test(test_bad_text),
      cmocka_unit_test(test_cache),   cmocka_unit_test(test_about),   cmocka_unit_test(test_refused_cubin),
      cmocka_unit_test(test_missing), cmocka_unit_test(test_asked),
  };
  return rig_run(tests, sizeof tests / sizeof *tests);
}
