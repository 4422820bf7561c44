/* The ground: allocation, text, maps, half floats, files, thread pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "temporary.h"
#include "base/arena.h"
#include "base/cpuid.h"
#include "base/error.h"
#include "base/half.h"
#include "base/integers.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/quantile.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/stream.h"
#include "base/vec.h"
#include "backends/cpu/kernels/features.h"

#include <hone/hone.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

static void arena_goes_back_to_a_mark(void **state) {
  (void)state;
  hn_arena a = {0};
  char *kept = hn_arena_strdup(&a, "kept");
  hn_arena_mark mark = hn_arena_here(&a);
  const size_t used = a.used;
  assert_non_null(hn_arena_alloc(&a, 100));
  hn_arena_back(&a, mark);
  if (a.head == mark.head) assert_int_equal(a.used, used);
  unsigned char *p = hn_arena_alloc(&a, 100);
  for (size_t i = 0; i < 100; i++) assert_int_equal(p[i], 0);
  assert_string_equal(kept, "kept");
  mark = hn_arena_here(&a);
  memset(hn_arena_alloc(&a, 1 << 20), 1, 1 << 20); /* a block of its own, or a new one: it stays */
  hn_arena_back(&a, mark);
  hn_arena_back(&a, (hn_arena_mark){0});
  assert_true(a.used >= used + 100);
  hn_arena_free(&a);
}

/* Over as many blocks as came since: what was taken before keeps its bytes and its count. */
static void arena_goes_back_over_blocks(void **state) {
  (void)state;
  hn_arena a = {0};
  char *kept = hn_arena_strdup(&a, "kept");
  const hn_arena_mark mark = hn_arena_here(&a);
  const size_t used = a.used;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 3000; i++) {
      unsigned char *p = hn_arena_aligned(&a, 40, i % 2 ? 16 : 256);
      assert_non_null(p);
      assert_int_equal((uintptr_t)p % (i % 2 ? 16 : 256), 0);
      for (size_t k = 0; k < 40; k++) assert_int_equal(p[k], 0);
      memset(p, 0xff, 40);
    }
    hn_arena_back(&a, mark);
    assert_ptr_equal(a.head, mark.head);
    assert_int_equal(a.used, used);
    assert_string_equal(kept, "kept");
  }
  hn_arena_free(&a);
}

static void streamed_copies_are_copies(void **state) {
  (void)state;
  _Alignas(64) unsigned char to[512];
  unsigned char from[512];
  for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)(i * 7 + i / 256);
  for (size_t at = 0; at <= 64; at += 16)
    for (size_t n = 0; n + 64 + 3 <= sizeof from; n += 29) {
      memset(to, 0xee, sizeof to);
      hn_stream_copy(to + at, from + 3, n);
      hn_stream_end();
      assert_memory_equal(to + at, from + 3, n);
      for (size_t i = at + n; i < sizeof to; i++) assert_int_equal(to[i], 0xee);
    }
}

static void normals_together_are_those_alone(void **state) {
  (void)state;
  for (int64_t n = 0; n < 40; n++) {
    hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &n);
    hone_data data;
    assert_int_equal(hone_data_random("x", &d, 0, 5, &data, NULL), HONE_OK);
    hn_rng r = {5 * 0x9e3779b97f4a7c15u ^ hn_hash("x", 1, 0)};
    for (int64_t i = 0; i < n; i++) assert_true(((const float *)data.tensor.data)[i] == hn_rng_normal(&r));
    hone_data_free(&data);
  }
}

static void arena_gives_zeroed_aligned_memory(void **state) {
  (void)state;
  hn_arena a = {0};
  for (size_t size = 0; size < 5000; size += 37) {
    unsigned char *p = hn_arena_aligned(&a, size, 64);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
    memset(p, 0xff, size);
  }
  assert_null(hn_arena_array(&a, SIZE_MAX / 4, 8));
  hn_arena_free(&a);
  hn_arena small = {.limit = 100};
  assert_non_null(hn_arena_alloc(&small, 60));
  assert_null(hn_arena_alloc(&small, 60));
  hn_arena_free(&small);
}

static void map_finds_what_was_stored(void **state) {
  (void)state;
  hn_map m = {0};
  char keys[2000][8];
  for (int i = 0; i < 2000; i++) {
    snprintf(keys[i], sizeof keys[i], "k%d", i);
    assert_true(hn_map_set(&m, keys[i], &keys[i]));
  }
  for (int i = 0; i < 2000; i++) assert_ptr_equal(hn_map_get(&m, keys[i]), &keys[i]);
  assert_null(hn_map_get(&m, "absent"));
  hn_map_free(&m);
}

static void half_conversions_are_exact(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 0x10000; h++) {
    float f = hn_f16_to_f32((uint16_t)h);
    if (isnan(f))
      assert_true(isnan(hn_f16_to_f32(hn_f32_to_f16(f))));
    else
      assert_int_equal(hn_f32_to_f16(f), h);
    float b = hn_bf16_to_f32((uint16_t)h);
    if (!isnan(b)) assert_int_equal(hn_f32_to_bf16(b), h);
  }
  assert_int_equal(hn_f32_to_f16(65520.0f), 0x7c00); /* ties to infinity */
  assert_int_equal(hn_f32_to_f16(65519.996f), 0x7bff);
  assert_int_equal(hn_f32_to_f16(0x1p-25f), 0); /* half of the least subnormal: to even */
  assert_int_equal(hn_f32_to_f16(0x1.8p-25f), 1);
  assert_int_equal(hn_f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
  assert_int_equal(hn_f32_to_f16(1.0f + 0x1.8p-10f), 0x3c02);
}

/* The middle between two neighbours goes to the even one; the next f64 on either side of it, which f32 cannot
 * tell from it, to the nearer. */
static void between_halves(double a, double b, uint16_t code, uint16_t (*to)(double)) {
  const double middle = a + (b - a) / 2;
  assert_int_equal(to(middle), code % 2 ? code + 1 : code);
  assert_int_equal(to(nextafter(middle, -INFINITY)), code);
  assert_int_equal(to(nextafter(middle, INFINITY)), code + 1);
  assert_int_equal(to(-nextafter(middle, INFINITY)), 0x8000 | (code + 1));
}

static void halves_of_f64_are_rounded_once(void **state) {
  (void)state;
  for (uint32_t h = 0; h < 0x7bff; h++)
    between_halves((double)hn_f16_to_f32((uint16_t)h), (double)hn_f16_to_f32((uint16_t)(h + 1)), (uint16_t)h,
                   hn_f64_to_f16);
  for (uint32_t h = 0; h < 0x7f7f; h++)
    between_halves((double)hn_bf16_to_f32((uint16_t)h), (double)hn_bf16_to_f32((uint16_t)(h + 1)),
                   (uint16_t)h, hn_f64_to_bf16);
  assert_int_equal(hn_f64_to_f16(65520), 0x7c00);
  assert_int_equal(hn_f64_to_f16(nextafter(65520, 0)), 0x7bff);
  assert_int_equal(hn_f64_to_f16(1e300), 0x7c00);
  assert_int_equal(hn_f64_to_f16((double)-INFINITY), 0xfc00);
  assert_int_equal(hn_f64_to_f16(5e-324), 0);
  assert_int_equal(hn_f64_to_f16(-5e-324), 0x8000);
  assert_true(isnan(hn_f16_to_f32(hn_f64_to_f16((double)NAN))));
  assert_true(isnan(hn_bf16_to_f32(hn_f64_to_bf16((double)NAN))));
}

static void descriptors_count_and_lay_out(void **state) {
  (void)state;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){2, 3, 5, 7});
  assert_int_equal(hone_desc_count(&d), 210);
  assert_int_equal(d.stride[0], 105);
  hone_desc_set_layout(&d, HONE_LAYOUT_CHANNELS_LAST, 4);
  assert_int_equal(d.stride[1], 1);
  assert_int_equal(d.stride[3], 4);
  assert_int_equal(d.stride[2], 28);
  assert_int_equal(d.stride[0], 140);
  assert_int_equal(hone_desc_bytes(&d), 2 * 35 * 4 * 4);
  hone_tensor_desc huge = hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){INT64_MAX, 2, 2});
  assert_int_equal(hone_desc_count(&huge), -1);
  hone_tensor_desc none = hone_desc(HONE_DTYPE_F32, 3, (const int64_t[]){INT64_MAX, 0, INT64_MAX});
  assert_int_equal(hone_desc_count(&none), 0);
}

static void errors_are_one_line(void **state) {
  (void)state;
  hone_error e = {0};
  hn_fail(&e, HONE_ERROR_INPUT, "bad\nthing");
  hn_error_where(&e, "node 'x'");
  hn_error_where(&e, "m.onnx");
  hn_error_expected(&e, "a");
  hn_error_got(&e, "b");
  hn_error_hint(&e, "do c");
  char line[512];
  hone_error_format(&e, line, sizeof line);
  assert_string_equal(line, "m.onnx: node 'x': bad thing; expected a, got b (do c)");
}

static void external_files_stay_below_their_folder(void **state) {
  (void)state;
  char dir[64], path[160], link[160];
  assert_non_null(mkdtemp(temporary(dir, sizeof dir, "hone-base")));
  snprintf(path, sizeof path, "%s/data.bin", dir);
  assert_int_equal(hn_file_write(path, "abc", 3, NULL), HONE_OK);
  hn_file f;
  assert_int_equal(hn_file_map("data.bin", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_OK);
  assert_int_equal(f.size, 3);
  hn_file_unmap(&f);
  assert_int_equal(hn_file_map("/etc/passwd", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
  assert_int_equal(hn_file_map("../etc/passwd", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
  snprintf(link, sizeof link, "%s/sym", dir);
  assert_int_equal(symlink("/etc/passwd", link), 0);
  assert_int_equal(hn_file_map("sym", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
  unlink(link);
  snprintf(link, sizeof link, "%s/folder", dir);
  assert_int_equal(symlink("/etc", link), 0);
  assert_int_equal(hn_file_map("folder/passwd", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
  unlink(link);
  snprintf(link, sizeof link, "%s/hard", dir);
  if (linkat(0, path, 0, link, 0) == 0) {
    assert_int_equal(hn_file_map("hard", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
    unlink(link);
  }
  snprintf(link, sizeof link, "%s/pipe", dir);
  assert_int_equal(mkfifo(link, 0600), 0);
  assert_int_equal(hn_file_map("pipe", dir, HN_FILE_WEIGHTS, &f, NULL), HONE_ERROR_INPUT);
  unlink(link);
  unlink(path);
  rmdir(dir);
}

static void a_failed_write_leaves_nothing(void **state) {
  (void)state;
  hone_error e = {0};
  assert_int_equal(hn_file_write("/nonexistent-folder/x", "a", 1, &e), HONE_ERROR_IO);
  assert_non_null(strstr(e.hint, "folder"));
}

typedef struct sum_job {
  _Atomic int64_t sum;
  _Atomic int calls[1000];
} sum_job;

static void add_task(void *arg, int64_t task, uint32_t thread) {
  sum_job *j = arg;
  assert_true(thread < 3);
  atomic_fetch_add(&j->sum, task);
  atomic_fetch_add(&j->calls[task], 1);
}

static void nested(void *arg, int64_t task, uint32_t thread) {
  (void)thread;
  if (task < 2) hn_pool_parallel(((void **)arg)[0], 10, add_task, ((void **)arg)[1]);
}

static void pool_runs_every_task_once(void **state) {
  (void)state;
  hn_pool *p;
  assert_int_equal(hn_pool_create(3, &p, NULL), HONE_OK);
  static sum_job j;
  for (int round = 0; round < 3000; round++) {
    int64_t n = round % 1000;
    atomic_store(&j.sum, 0);
    hn_pool_parallel(p, n, add_task, &j);
    assert_int_equal(atomic_load(&j.sum), n * (n - 1) / 2);
    if (round % 500 == 0) usleep(500); /* lets the workers fall asleep */
  }
  memset(&j, 0, sizeof j);
  void *args[2] = {p, &j};
  hn_pool_parallel(p, 4, nested, args);
  assert_int_equal(atomic_load(&j.sum), 90);
  hn_pool_destroy(p);
  assert_int_equal(hn_pool_create(0, &p, NULL), HONE_ERROR_USAGE);
}

/* ---- several callers */

typedef struct seen_threads {
  _Atomic uint32_t threads; /* a bit each */
} seen_threads;

static void see_thread(void *arg, int64_t task, uint32_t thread) {
  seen_threads *s = arg;
  (void)task;
  atomic_fetch_or(&s->threads, 1u << thread);
  usleep(200); /* long enough that all who may come do */
}

static int threads_of_a_job(hn_pool *p) {
  seen_threads s = {0};
  hn_pool_parallel(p, 12, see_thread, &s);
  return __builtin_popcount(atomic_load(&s.threads));
}

static void *enter_and_work(void *arg) {
  sum_job j = {0};
  hn_pool_enter(arg);
  for (int i = 0; i < 2000; i++) hn_pool_parallel(arg, 30, add_task, &j);
  hn_pool_leave(arg);
  return (void *)(intptr_t)atomic_load(&j.sum);
}

/* Callers and workers together are never more than the pool has. Which of the workers come is not told. */
static void a_job_leaves_other_callers_a_thread(void **state) {
  (void)state;
  hn_pool *p;
  assert_int_equal(hn_pool_create(3, &p, NULL), HONE_OK);
  hn_pool_enter(p);
  for (int others = 1; others < 4; others++) {
    hn_pool_enter(p);
    assert_true(threads_of_a_job(p) <= (others < 2 ? 2 : 1));
  }
  for (int i = 0; i < 4; i++) hn_pool_leave(p);
  pthread_t thread[3];
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, enter_and_work, p), 0);
  for (int i = 0; i < 3; i++) {
    void *sum;
    pthread_join(thread[i], &sum);
    assert_int_equal((intptr_t)sum, 2000 * 435);
  }
  hn_pool_destroy(p);
  hn_pool_enter(NULL);
  hn_pool_leave(NULL);
}

static void quantiles_lie_between_sorted_values(void **state) {
  (void)state;
  double v[5] = {7, -1, 3, 11, 3};
  hn_ascend(v, 0);
  hn_ascend(v, 5);
  const double sorted[5] = {-1, 3, 3, 7, 11};
  assert_memory_equal(v, sorted, sizeof v);
  assert_true(hn_median(v, 1) == -1 && hn_median(v, 4) == 3 && hn_median(v, 5) == 3);
  assert_true(hn_median(v + 2, 2) == 5);
  assert_true(hn_quantile(v, 5, 0) == -1 && hn_quantile(v, 5, 1) == 11);
  assert_true(hn_quantile(v, 5, 0.25) == 3 && hn_quantile(v, 5, 0.125) == 1);
}

static void pieces_hold_all(void **state) {
  (void)state;
  assert_int_equal(hn_div_up(0, 4), 0);
  assert_int_equal(hn_div_up(1, 4), 1);
  assert_int_equal(hn_div_up(8, 4), 2);
  assert_int_equal(hn_fill_up(9, 4), 12);
  assert_int_equal(hn_min(-2, INT64_MAX), -2);
  assert_int_equal(hn_max(INT64_MIN, -2), -2);
}

/* A hint, but what it brings is whole pages inside of the range, and zero. */
static void pages_are_brought_together(void **state) {
  (void)state;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char there[8] = {0};
  char *p = hn_map_pages(page, 8 * page);
  assert_non_null(p);
  madvise(p, 8 * page, MADV_NOHUGEPAGE);  /* which would bring neighbours, too */
  hn_bring_pages(p + page + 1, 5 * page); /* pages 2 to 5 are in it from end to end */
  hn_bring_pages(p + 10, page);           /* none */
  assert_int_equal(mincore(p, 8 * page, there), 0);
  const bool brings = there[2] & 1; /* older systems do not */
  for (size_t i = 0; i < 8; i++) assert_int_equal(there[i] & 1, brings && i >= 2 && i <= 5);
  for (size_t i = 0; i < 8 * page; i++) assert_int_equal(p[i], 0);
  hn_unmap_pages(p, 8 * page);
}

/* With numbers in it or without, a reason is what was said, as far as there is room. */
static void reasons_are_words(void **state) {
  (void)state;
  hone_reason why = {"before"};
  char longer[2 * sizeof why.text];
  assert_false(hn_refuse(&why, "several groups"));
  assert_string_equal(why.text, "several groups");
  assert_false(hn_refuse(&why, "%d of %s, 100%%", 3, "four"));
  assert_string_equal(why.text, "3 of four, 100%");
  assert_false(hn_refuse(NULL, "nobody asks"));
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  assert_false(hn_refuse(&why, "%s", longer));
  assert_int_equal(strlen(why.text), sizeof why.text - 1);
  why = (hone_reason){"before"};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  assert_false(hn_refuse(&why, longer));
#pragma GCC diagnostic pop
  assert_int_equal(strlen(why.text), sizeof why.text - 1);
  assert_memory_equal(why.text, longer, sizeof why.text - 1);
}

/* In a process of its own: what the processor offers is found once. */
static void a_word_that_is_no_tier_is_kept(void **state) {
  (void)state;
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    hone_error e = {0};
    setenv("HONE_CPU", "avx3", 1);
    const bool refused = hone_system_instructions(NULL) == HONE_ERROR_USAGE;
    unsetenv("HONE_CPU");
    _exit(refused && hone_system_instructions(&e) == HONE_ERROR_USAGE && strcmp(e.got, "avx3") == 0 ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

/* What a C library heard when the process started is what the processor says, place by place. */
static void cpuid_is_told_as_it_is(void **unused) {
  (void)unused;
  const hn_cpuid_basics *k = hn_cpuid_known();
  const uint32_t most = hn_cpuid(0, 0).a;
  hn_cpuid_regs one = {0}, seven = {0}, seven_1 = {0};
  if (most >= 1) one = hn_cpuid(1, 0);
  if (most >= 7) seven = hn_cpuid(7, 0);
  if (seven.a >= 1) seven_1 = hn_cpuid(7, 1);
  assert_int_equal(k->leaf0.a, most);
  assert_int_equal(k->leaf1.c, one.c);
  assert_int_equal(k->leaf1.d, one.d);
  assert_int_equal(k->leaf7.b, seven.b);
  assert_int_equal(k->leaf7.c, seven.c);
  assert_int_equal(k->leaf7.d, seven.d);
  assert_int_equal(k->leaf7_1.a, seven_1.a);
  /* Cores of a hybrid processor (leaf 7, edx 15) have caches of their own sizes. */
  const bool alike = !(seven.d >> 15 & 1);
  for (uint32_t i = 0; k->told && alike && k->leaf0.b == 0x756e6547 && i < 8;
       i++) { /* "Genu": leaf 4 has the caches */
    const hn_cpuid_regs r = hn_cpuid(4, i);
    const size_t size =
        (size_t)((r.b >> 22) + 1) * ((r.b >> 12 & 1023) + 1) * ((r.b & 4095) + 1) * (r.c + 1u);
    const uint32_t type = r.a & 31, level = r.a >> 5 & 7;
    if (!type) break;
    if (type == 2) continue;
    if (level <= 3)
      assert_int_equal(level == 1 ? hn_cpu()->l1d : level == 2 ? hn_cpu()->l2 : hn_cpu()->l3, size);
  }
}

/* A rank that no descriptor has is none, whatever dimensions come with it. */
static void a_rank_beyond_all_is_none(void **state) {
  (void)state;
  static const int64_t dims[HONE_MAX_RANK + 1] = {1};
  assert_int_equal(hone_desc(HONE_DTYPE_F32, HONE_MAX_RANK, dims).rank, HONE_MAX_RANK);
  assert_int_equal(hone_desc(HONE_DTYPE_F32, HONE_MAX_RANK + 1, dims).rank, -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_rank_beyond_all_is_none),
      cmocka_unit_test(a_word_that_is_no_tier_is_kept),
      cmocka_unit_test(cpuid_is_told_as_it_is),
      cmocka_unit_test(pages_are_brought_together),
      cmocka_unit_test(reasons_are_words),
      cmocka_unit_test(arena_gives_zeroed_aligned_memory),
      cmocka_unit_test(arena_goes_back_to_a_mark),
      cmocka_unit_test(arena_goes_back_over_blocks),
      cmocka_unit_test(streamed_copies_are_copies),
      cmocka_unit_test(normals_together_are_those_alone),
      cmocka_unit_test(map_finds_what_was_stored),
      cmocka_unit_test(half_conversions_are_exact),
      cmocka_unit_test(halves_of_f64_are_rounded_once),
      cmocka_unit_test(descriptors_count_and_lay_out),
      cmocka_unit_test(errors_are_one_line),
      cmocka_unit_test(external_files_stay_below_their_folder),
      cmocka_unit_test(a_failed_write_leaves_nothing),
      cmocka_unit_test(pool_runs_every_task_once),
      cmocka_unit_test(a_job_leaves_other_callers_a_thread),
      cmocka_unit_test(quantiles_lie_between_sorted_values),
      cmocka_unit_test(pieces_hold_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
