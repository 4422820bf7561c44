/* A trace larger than what is kept of it: memory stays within its bound, figures are those of the whole. */
#include "temporary.h"
#include "importers/timeline_help.h"
#include "importers/trace_grow.h"

#include "insight/import/common/timeline.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Sanitizers' shadows are no part of the bound. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#define SAMPLE "tests/importers/data/pytorch/gpu.json"
enum { GROWN_BYTES = 24 << 20, LIMIT_KB = 200 * 1024, ITERATIONS = 3 };

/* In a process of its own: 0 when all is as it should be. */
static int import_grown(const char *path, size_t copies) {
  hone_facts *f = NULL;
  hone_error error = {0};
  const char *paths[1] = {path};
  if (hone_import_files(paths, 1, NULL, &f, &error))
    return fprintf(stderr, "%s (%s)\n", error.what, error.where), 1;
  hone_profile *p = NULL;
  hone_findings *findings = NULL;
  if (hone_profile_create(f, NULL, &p, &error) || hone_diagnose(p, NULL, &findings, &error))
    return fprintf(stderr, "%s\n", error.what), 2;
  int result = 0;
  if (p->doubt) result = (fprintf(stderr, "%s\n", p->doubt), 3);
  if (p->iterations != ITERATIONS * copies) result = (fprintf(stderr, "%zu iterations\n", p->iterations), 4);
  /* Each iteration of the sample: 300.125 us of kernels, 30.25 and 20 us of copies, none hidden behind
   * the others. */
  if (fabs(p->closure.layers_ms - 0.300125) > 1e-6 || fabs(p->stages.h2d_ms - 0.03025) > 1e-6 ||
      fabs(p->stages.d2h_ms - 0.02) > 1e-6)
    result = (fprintf(stderr, "layers %.9f, h2d %.9f, d2h %.9f\n", p->closure.layers_ms, p->stages.h2d_ms,
                      p->stages.d2h_ms),
              5);
  hone_findings_destroy(findings);
  hone_profile_destroy(p);
  hone_facts_destroy(f);
  return result;
}

/* Runs in a process of its own and checks what it returns and how much memory it took. */
static void in_child(int (*body)(const char *path, size_t copies), const char *path, size_t copies) {
  pid_t child = fork();
  if (child == 0) _exit(body(path, copies));
  int status = -1;
  struct rusage used = {0};
  assert_int_equal(wait4(child, &status, 0, &used), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
#ifndef SANITIZED
  if (used.ru_maxrss > LIMIT_KB) fail_msg("%ld KB of memory", used.ru_maxrss);
#endif
}

static void large_trace(void **unused) {
  (void)unused;
  char path[128];
  int file = mkstemp(temporary(path, sizeof path, "hone-trace"));
  assert_true(file >= 0);
  close(file);
  size_t copies = trace_grow(SAMPLE, GROWN_BYTES, path);
  assert_true(copies > 0);
  in_child(import_grown, path, copies);
  unlink(path);
}

/* More events than are kept, in no order of time: what is kept is a whole beginning, counts cover all. */
enum { STEPS = 2000, OF_STEP = 800, STEP_NS = 1000000 };

static int add_many(hn_timeline *t) {
  const uint32_t stream = hn_timeline_lane(t, true, 0, 7, "stream"),
                 thread = hn_timeline_lane(t, false, 1, 1, "thread");
  for (int i = 0; i < STEPS; i++) {
    const int64_t start = (int64_t)((i * 997) % STEPS) * STEP_NS; /* every step once */
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", (i * 997) % STEPS);
    hn_event step = {
        .class = HN_EVENT_RANGE, .lane = thread, .name = name, .start_ns = start, .end_ns = start + STEP_NS};
    hn_timeline_add(t, &step);
    for (int k = 0; k < OF_STEP; k++) {
      hn_event op = {.class = HN_EVENT_OP,
                     .lane = thread,
                     .name = "aten::relu",
                     .start_ns = start + k * 1000,
                     .end_ns = start + k * 1000 + 400};
      hn_event kernel = {.class = HN_EVENT_DEVICE,
                         .kind = HONE_SPAN_KERNEL,
                         .lane = stream,
                         .name = "relu_kernel",
                         .start_ns = start + k * 1000 + 100,
                         .end_ns = start + k * 1000 + 350};
      hn_timeline_add(t, &op);
      hn_timeline_add(t, &kernel);
    }
  }
  return 0;
}

static int keep_a_beginning(const char *unused, size_t none) {
  (void)unused;
  (void)none;
  hn_import in = {.facts = hone_facts_create()};
  hn_timeline *t = hn_timeline_create();
  hone_error error = {0};
  if (!in.facts || !t || add_many(t) || hn_timeline_finish(t, &in, &error))
    return fprintf(stderr, "%s\n", error.what), 1;
  hn_timeline_destroy(t);
  hone_facts_set_meta(in.facts, &in.meta);
  hone_profile *p = NULL;
  if (hone_profile_create(in.facts, NULL, &p, &error)) return fprintf(stderr, "%s\n", error.what), 2;
  int result = 0;
  size_t n;
  const hone_counter *c = hone_facts_counters(in.facts, &n);
  double calls = 0, ms = 0;
  for (size_t i = 0; i < n; i++) {
    if (strcmp(c[i].name, "calls_in_trace") == 0) calls = c[i].value;
    if (strcmp(c[i].name, "ms_in_trace") == 0) ms = c[i].value;
  }
  const double all = (double)STEPS * OF_STEP;
  if (calls != all || fabs(ms - all * 250e-6) > 1e-6)
    result = (fprintf(stderr, "%f calls, %f ms\n", calls, ms), 3);
  if (hone_facts_get_meta(in.facts)->dropped_spans < all) result = (fprintf(stderr, "too much is kept\n"), 4);
  /* The steps of the beginning are whole. */
  double first = 0;
  const hone_span *spans = hone_facts_spans(in.facts, &n);
  for (size_t i = 0; i < n; i++)
    if (spans[i].iteration == 100 && spans[i].kind == HONE_SPAN_KERNEL)
      first += (double)(spans[i].end_ns - spans[i].start_ns);
  if (fabs(first - OF_STEP * 250.0) > 1e-6) result = (fprintf(stderr, "step 100: %f ns\n", first), 5);
  /* Those of which only a part was kept are no iterations. */
  if (p->iterations < 100 || p->iterations > STEPS / 2 ||
      fabs(p->closure.layers_ms - OF_STEP * 250e-6) > 1e-9)
    result = (fprintf(stderr, "%zu iterations of %f ms\n", p->iterations, p->closure.layers_ms), 6);
  hone_profile_destroy(p);
  hone_facts_destroy(in.facts);
  hn_map_free(&in.steps);
  hn_arena_free(&in.arena);
  return result;
}

static void more_than_is_kept(void **unused) {
  (void)unused;
  in_child(keep_a_beginning, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(large_trace), cmocka_unit_test(more_than_is_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
