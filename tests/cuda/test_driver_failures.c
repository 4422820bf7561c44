/* The driver layer of the CUDA backend where calls fail: every failure gives one clear error, hangs nowhere,
 * leaks nothing and leaves the process usable (driver_rig.h: on what it runs). */
#include "driver_rig.h"
#include "backends/cuda/driver/memory.h"
#include "backends/cuda/driver/queue.h"

/* ------------------------------------------------------------------ calls that fail */

/* One failing call: an error, and after it the same work is done. */
static void scene_failing(answer *a) {
  rig r;
  hn_segment *s = NULL;
  hone_error e = {0};
  hone_status status;
  rig_open(&r, a);
  status = rig_to_device(&r, &e);
  if (status == HONE_OK) status = rig_launch(&r, &rig_reverse, r.x, r.y, 3, &e);
  if (status == HONE_OK) status = rig_to_host(&r, r.y, &e);
  if (status == HONE_OK && (status = b->capture_begin(r.d, r.q, &e)) == HONE_OK) {
    hone_error other;
    status = rig_launch(&r, &rig_scale, r.x, r.y, 2, &e);
    const hone_status ended = b->capture_end(r.d, r.q, &s, status == HONE_OK ? &e : &other);
    if (status == HONE_OK) status = ended;
    MUST((ended == HONE_OK) == (s != NULL));
  }
  if (status == HONE_OK) status = b->segment_launch(r.d, r.q, s, &e);
  if (status == HONE_OK) status = b->sync(r.d, r.q, &e);
  MUST(status != HONE_OK && status == e.status);
  b->segment_free(r.d, s);
  rig_close(&r);
  rig_work(a); /* the process goes on */
  a->error = e;
}

/* What may not be done while work is captured spoils the capture, and nothing else. */
static void scene_spoilt(answer *a) {
  rig r;
  hn_segment *s = NULL;
  hone_error e = {0};
  rig_open(&r, a);
  MUST_OK(rig_to_device(&r, &a->error));
  MUST_OK(rig_launch(&r, &rig_scale, r.x, r.y, 2, &a->error));
  MUST_OK(b->sync(r.d, r.q, &a->error));
  MUST_OK(b->capture_begin(r.d, r.q, &a->error));
  MUST_OK(rig_launch(&r, &rig_scale, r.x, r.y, 3, &a->error));
  MUST(b->alloc(r.d, 5 << 20) == NULL);
  MUST(b->capture_end(r.d, r.q, &s, &e) == HONE_ERROR_DEVICE && !s);
  MUST_OK(rig_to_host(&r, r.y, &a->error));
  rig_must_be(&r, 2, false);
  rig_close(&r);
  rig_work(a);
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
  rig_empty_cache();
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
  rig_work(a);
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
  MUST_OK(rig_to_device(&r, &a->error));
  /* A real GPU is given a real fault. */
  MUST_OK(rig_launch(&r, &rig_scale, r.x, rig_fake() ? (void *)r.y : (void *)(uintptr_t)16, 3, &a->error));
  MUST(b->sync(r.d, r.q, &e) == HONE_ERROR_DEVICE);
  MUST(rig_to_device(&r, &again) == HONE_ERROR_DEVICE);
  MUST(strcmp(again.what, e.what) == 0);
  MUST(b->alloc(r.d, 100) == NULL);
  MUST(hn_no_memory(b, r.d, 100, "this", &again) == HONE_ERROR_DEVICE);
  rig_close(&r);
  if (rig_fake()) rig_work(a); /* a new context */
  a->error = e;
}

static void test_fault(void **state) {
  (void)state;
  answer a = PLAY(scene_fault, "HONE_FAKE_FAIL=kernel:1");
  EXPECT(a, HONE_ERROR_DEVICE, "cuStreamSynchronize", "context is lost", "cuda:0");
  assert_int_equal(hone_status_exit_code(a.error.status), 6);
}

/* Work that goes on for a while on the rig's queue, and another queue. */
static void begin_work(rig *r, hn_queue **other, answer *a) {
  rig_open(r, a);
  MUST_OK(b->queue_open(r->d, other, &a->error));
  MUST_OK(rig_to_device(r, &a->error));
  MUST_OK(rig_launch(r, &rig_scale, r->x, r->y, 5, &a->error));
  MUST_OK(rig_to_host(r, r->y, &a->error)); /* all that is made once is there */
  for (int i = 0; i < 20; i++) MUST_OK(rig_launch(r, &rig_scale, r->x, r->y, 5, &a->error));
}

/* Whether that work has ended by now, by what the other queue writes to the same place. */
static void note_what_stays(rig *r, hn_queue *other, answer *a) {
  hone_error e = {0};
  MUST_OK(b->copy(r->d, other, r->y, r->host, N * sizeof(float), &e));
  MUST_OK(b->sync(r->d, other, &e));
  MUST_OK(rig_to_host(r, r->y, &e));
  snprintf(a->note, sizeof a->note, "%s",
           memcmp(r->host, r->host + N, N * sizeof(float)) ? "written over" : "kept");
}

/* A wait that fails has not waited: what the device was given goes on. It has ended all the same before
 * others get what it writes, or nobody gets memory any more. WAIT is which wait fails: the queue's, or that
 * for memory that is given back. */
static void scene_failed_wait(answer *a) {
  rig r;
  hn_queue *other;
  hone_status wait = HONE_OK;
  const char *fails = getenv("WAIT"), *given_back = strchr(fails, 'E');
  begin_work(&r, &other, a);
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
    note_what_stays(&r, other, a);
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

/* The same of a wait for an event. */
static void scene_failed_event(answer *a) {
  rig r;
  hone_error e = {0};
  hn_queue *other;
  hn_event *event;
  begin_work(&r, &other, a);
  MUST_OK(b->event_open(r.d, &event, &a->error));
  MUST_OK(b->event_record(r.d, r.q, event, &a->error));
  setenv("HONE_FAKE_FAIL", getenv("WAIT"), 1);
  const hone_status wait = b->event_wait(r.d, event, &a->error);
  setenv("HONE_FAKE_FAIL", "", 1);
  MUST(wait != HONE_OK && wait == a->error.status);
  if (b->sync(r.d, other, &e) == HONE_OK) {
    note_what_stays(&r, other, a);
  } else {
    MUST(e.status == HONE_ERROR_DEVICE && strcmp(e.what, a->error.what) == 0);
    snprintf(a->note, sizeof a->note, "lost");
  }
  b->event_close(r.d, event);
  b->queue_close(r.d, other);
  rig_close(&r);
}

static void test_failed_event(void **state) {
  (void)state;
  NEEDS_FAKE();
  static const struct {
    const char *wait, *fault, *note;
  } cases[] = {
      {"WAIT=cuEventSynchronize:1:999", NULL, "kept"},
      {"WAIT=cuEventSynchronize:1+:999", NULL, "lost"},
      {"WAIT=cuEventSynchronize:1:999", "cuda_failed_wait", "written over"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
#ifndef HN_FAULTS
    if (cases[i].fault) continue;
#endif
    char fault[64];
    snprintf(fault, sizeof fault, "HONE_FAULT=%s", cases[i].fault ? cases[i].fault : "");
    answer a = PLAY(scene_failed_event, cases[i].wait, "HONE_POOL=shared", fault);
    if (strcmp(a.note, cases[i].note)) fail_msg("%s: %s", cases[i].wait, a.note);
    if (i == 1) EXPECT(a, HONE_ERROR_DEVICE, "cuEventSynchronize", "nothing more runs on it");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_failing_calls), cmocka_unit_test(test_spoilt),
      cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_fault),
      cmocka_unit_test(test_failed_wait),   cmocka_unit_test(test_failed_event),
  };
  return rig_run(tests, sizeof tests / sizeof *tests);
}
