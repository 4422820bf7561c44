/* Traces of a queue: CUPTI's records become spans of the right step, kind, run and lane on the host's clock;
 * where CUPTI refuses, events take its place and say why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/driver/context.h"
#include "base/os.h"
#include "cuda/fake_cupti.h"

#include <dlfcn.h>
#include <string.h>

static __typeof__(fake_cupti_refuse) *refuse;
static __typeof__(fake_cupti_created) *created;
static __typeof__(fake_cupti_cloned) *cloned;
static __typeof__(fake_cupti_kernel) *kernel;
static __typeof__(fake_cupti_copy) *copy;

typedef struct rig {
  const hn_tracing *t;
  hn_device *d;
  hn_queue *q;
  hn_trace *trace;
} rig;

static void up(rig *r) {
  const hn_backend *b = &hn_backend_cuda;
  hone_error e = {0};
  *r = (rig){.t = b->tracing};
  assert_int_equal(b->open(0, 1, NULL, &r->d, &e), HONE_OK);
  assert_int_equal(b->queue_open(r->d, &r->q, &e), HONE_OK);
  assert_int_equal(r->t->open(r->d, r->q, &r->trace, &e), HONE_OK);
}

static void down(rig *r) {
  r->t->close(r->trace);
  hn_backend_cuda.queue_close(r->d, r->q);
  hn_backend_cuda.close(r->d);
}

static void capture_step(rig *r, hone_span_kind kind, int32_t step, uintptr_t node) {
  hone_error e = {0};
  assert_int_equal(r->t->mark(r->trace, kind, step, &e), HONE_OK);
  created(node);
  assert_int_equal(r->t->mark(r->trace, HONE_SPAN_KIND_COUNT, -1, &e), HONE_OK);
  cloned(node + 100, node); /* into the executable graph */
}

static void test_records(void **state) {
  (void)state;
  rig r;
  up(&r);
  const char *why = "";
  assert_non_null(strstr(r.t->source(r.trace, &why), "CUPTI"));
  assert_null(why);
  capture_step(&r, HONE_SPAN_REFORMAT, 0, 1);
  capture_step(&r, HONE_SPAN_KERNEL, 1, 2);
  capture_step(&r, HONE_SPAN_KERNEL, 2, 3);
  created(4); /* between marks: of nobody */
  cloned(104, 4);
  hone_error e = {0};
  for (int run = 0; run < 2; run++) {
    assert_int_equal(r.t->begin_run(r.trace, &e), HONE_OK);
    const int64_t t = (int64_t)hn_now_ns();
    copy(t + 1000, t + 5000, r.q->lane[0].stream, 4096);
    kernel("planes", t + 5000, t + 7000, 101);
    kernel("first", t + 8000, t + 18000, 102);
    kernel("second", t + 10000, t + 20000, 103); /* launched early: it waits until 18000 */
    kernel("stranger", t + 1000, t + 2000, 104);
    hn_sleep_ms(1);
    assert_int_equal(r.t->end_run(r.trace, &e), HONE_OK);
  }
  const hone_span_record *s;
  size_t n;
  uint64_t lost;
  assert_int_equal(r.t->take(r.trace, &s, &n, &lost, &e), HONE_OK);
  assert_int_equal(lost, 0);
  assert_int_equal(n, 8);
  static const struct {
    hone_span_kind kind;
    int32_t step;
    int64_t after, ns;
  } want[] = {{HONE_SPAN_COPY_H2D, -1, 0, 4000},
              {HONE_SPAN_REFORMAT, 0, 4000, 2000},
              {HONE_SPAN_KERNEL, 1, 7000, 10000},
              {HONE_SPAN_KERNEL, 2, 17000, 2000}};
  for (size_t i = 0; i < n; i++) {
    const hone_span_record *first = &s[i / 4 * 4];
    assert_int_equal(s[i].kind, want[i % 4].kind);
    assert_int_equal(s[i].step, want[i % 4].step);
    assert_int_equal(s[i].iteration, i / 4);
    assert_int_equal(s[i].lane, 1);
    /* The clocks are read a moment apart. */
    assert_in_range(s[i].start_ns - first->start_ns + 50 - want[i % 4].after, 0, 100);
    assert_in_range(s[i].end_ns - s[i].start_ns + 50 - want[i % 4].ns, 0, 100);
    assert_in_range((int64_t)hn_now_ns() - s[i].end_ns, 0, 60 * INT64_C(1000000000)); /* one clock */
  }
  assert_int_equal(s[0].bytes, 4096);
  assert_string_equal(s[2].name, "first");
  down(&r);
}

static void test_refused(void **state) {
  (void)state;
  rig r;
  refuse(1);
  up(&r);
  const char *why = NULL;
  assert_non_null(strstr(r.t->source(r.trace, &why), "events"));
  assert_non_null(why);
  assert_non_null(strstr(why, "INSUFFICIENT_PRIVILEGES"));
  down(&r);
  refuse(0);
}

static int find(void **state) {
  (void)state;
  void *lib = dlopen(FAKE_CUPTI, RTLD_NOW);
  if (!lib) return -1;
  *(void **)&refuse = dlsym(lib, "fake_cupti_refuse");
  *(void **)&created = dlsym(lib, "fake_cupti_created");
  *(void **)&cloned = dlsym(lib, "fake_cupti_cloned");
  *(void **)&kernel = dlsym(lib, "fake_cupti_kernel");
  *(void **)&copy = dlsym(lib, "fake_cupti_copy");
  return refuse && created && cloned && kernel && copy ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_records), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, find, NULL);
}
