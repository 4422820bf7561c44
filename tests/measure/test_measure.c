/* Measuring by the library: records, long runs, the gate's processes, the loop. What is asserted holds on any
 * machine, however slow or busy it is. */
#include "api/measure/slow.h"

#include <hone/hone.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A small network of the zoo, ready to run. */
typedef struct bench {
  hone_model *model;
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_data data;
  const hone_tensor *in[1];
} bench;

/* Roofs that need no measuring, and that no run is faster than. */
#define KNOWN_PEAKS                                                                                          \
  { .cpu = {.threads = 1, .f32_gflops = 1e6, .dram_gbs = 1e6}, .threads = 1 }

static hone_model *small(void) {
  hone_model *m = NULL;
  assert_int_equal(hone_zoo_build("mobilenetv2", &(hone_zoo_options){.size = 32, .width = 0.25}, &m, NULL),
                   HONE_OK);
  return m;
}

static int open_bench(void **state) {
  static bench b;
  b = (bench){.model = small()};
  const hone_engine_options e = {.threads = 1, .tuning = "off"};
  const hone_plan_options p = {.level = 2};
  assert_int_equal(hone_engine_create(&e, &b.engine, NULL), HONE_OK);
  assert_int_equal(hone_plan_create(b.engine, b.model, &p, &b.plan, NULL), HONE_OK);
  assert_int_equal(hone_context_create(b.plan, &b.context, NULL), HONE_OK);
  assert_int_equal(hone_data_for_input(b.model, 0, hone_plan_input_desc(b.plan, 0), 1, &b.data, NULL),
                   HONE_OK);
  b.in[0] = &b.data.tensor;
  *state = &b;
  return 0;
}

static int close_bench(void **state) {
  bench *b = *state;
  hone_context_destroy(b->context);
  hone_plan_destroy(b->plan);
  hone_engine_destroy(b->engine);
  hone_model_release(b->model);
  hone_data_free(&b->data);
  return 0;
}

static void describe(void *arg, hone_facts *facts) {
  hone_facts_meta m = *hone_facts_get_meta(facts);
  m.model = arg;
  hone_facts_set_meta(facts, &m);
}

static hone_subject subject_of(const bench *b) {
  return (hone_subject){.engine = b->engine,
                        .plan = b->plan,
                        .context = b->context,
                        .in = b->in,
                        .level = 2,
                        .describe = describe,
                        .arg = "small"};
}

/* Stops after so many calls. */
typedef struct stopper {
  uint32_t calls, most;
  hone_context *last;
} stopper;

static bool progress(void *arg, const char *what, uint32_t done, uint32_t total) {
  stopper *s = arg;
  assert_non_null(what);
  assert_true(done <= total);
  return ++s->calls < s->most;
}

static bool running(void *arg, hone_context *context) {
  ((stopper *)arg)->last = context;
  return true;
}

static void test_runs(void **state) {
  const hone_subject s = subject_of(*state);
  double ms[20];
  hone_disturbance seen[20];
  uint32_t n = 0;
  assert_int_equal(hone_runs_measure(&s, 20, 0, NULL, ms, seen, &n, NULL), HONE_OK);
  assert_int_equal(n, 20);
  for (uint32_t i = 0; i < n; i++) assert_true(ms[i] > 0);
  stopper stop = {.most = 3};
  const hone_watch watch = {progress, running, &stop};
  assert_int_equal(hone_runs_measure(&s, 20, 0, &watch, ms, NULL, &n, NULL), HONE_ERROR_CANCELLED);
  assert_int_equal(n, 3);
  assert_ptr_equal(stop.last, s.context);
}

static void test_record(void **state) {
  const hone_subject s[2] = {subject_of(*state), subject_of(*state)};
  hone_recording r = {0};
  hone_peaks peaks = KNOWN_PEAKS;
  hone_recording_options o = {.warmups = 1, .runs = 8, .peaks = &peaks};
  assert_int_equal(hone_subjects_record(s, 1, &o, &r, NULL), HONE_OK);
  const hone_facts_meta *m = hone_facts_get_meta(r.facts);
  assert_string_equal(m->model, "small");
  assert_string_equal(m->backend, "cpu");
  assert_true(m->runs == 8 && m->warmups == 1 && m->opt_level == 2 && m->threads == 1);
  assert_int_equal(r.profile->iterations, 8);
  assert_int_equal(r.profile->layer_count, hone_plan_steps(s->plan));
  hone_recording_free(&r);
  assert_null(r.facts);
  /* Stopped in the fourth run: what is complete is kept where that is wanted, and nothing else. */
  stopper stop = {.most = 5};
  const hone_watch watch = {progress, running, &stop};
  o.watch = &watch;
  o.keep = true;
  assert_int_equal(hone_subjects_record(s, 1, &o, &r, NULL), HONE_OK);
  assert_int_equal(r.profile->iterations, 4);
  assert_true(hone_facts_get_meta(r.facts)->interrupted == 1);
  hone_recording_free(&r);
  stop.calls = 0;
  o.keep = false;
  assert_int_equal(hone_subjects_record(s, 1, &o, &r, NULL), HONE_ERROR_CANCELLED);
  assert_null(r.facts);
  assert_null(r.profile);
}

/* Recorded times: a run of the machine's usual ones and some that stand out. */
static void test_slow(void **state) {
  hone_subject s = subject_of(*state);
  s.device = "cuda"; /* no steps are recorded: the times are what is here */
  static hn_slow_watch w;
  hone_slow_place found[HONE_MOST_SLOW_RUNS];
  assert_int_equal(hn_slow_begin(&w, &s, NULL), HONE_OK);
  for (int i = 0; i < 100; i++) {
    const double ms = i == 30 ? 9 : i == 60 ? 5 : i == 80 ? 1.4 : 1;
    const hone_disturbance seen = {.involuntary_switches = i == 30 ? 7 : 0, .major_faults = i == 60 ? 3 : 0};
    assert_int_equal(hn_slow_saw(&w, 0.01 * i, ms, seen, NULL), HONE_OK);
    if (i % 50 == 49) assert_int_equal(hn_slow_stretch(&w, i < 50 ? 3000 : 2000, 5, 0, NULL), HONE_OK);
  }
  assert_int_equal(hn_slow_settle(&w, 1, 3000, found), 2);
  assert_true(found[0].run.wall_ms == 9 && found[0].run.involuntary_switches == 7);
  assert_true(found[0].run.clock_mhz == 3000 && found[1].run.clock_mhz == 2000);
  assert_true(fabs(found[1].run.time_s - 0.6) < 1e-9);
  assert_null(found[0].run.step);
  assert_int_equal(hone_slow_run_cause(&found[0].run), HONE_SLOW_SWITCHED);
  assert_int_equal(hone_slow_run_cause(&found[1].run), HONE_SLOW_DISK);
  hn_slow_end(&w);
}

static void test_steady(void **state) {
  const hone_subject s = subject_of(*state);
  static hone_steady r;
  double samples[16];
  hone_disturbance seen[16];
  uint32_t kept = 0;
  const hone_steady_options o = {.seconds = 0.6, .samples = samples, .seen = seen, .most = 16};
  assert_int_equal(hone_steady_measure(&s, &o, &kept, &r, NULL), HONE_OK);
  assert_true(r.n > 0 && r.n <= HONE_STEADY_WINDOWS && r.runs >= r.n);
  assert_true(kept > 0 && kept <= 16);
  double before = 0;
  for (size_t i = 0; i < r.n; i++) {
    assert_true(r.time_s[i] > before && r.latency_ms[i] > 0 && r.p95_ms[i] >= r.latency_ms[i]);
    before = r.time_s[i];
  }
  assert_int_equal(r.record.profile->iterations, r.n);
  assert_string_equal(hone_facts_get_meta(r.record.facts)->model, "small");
  assert_non_null(r.findings);
  for (size_t i = 1; i < r.n_slow; i++)
    assert_true(r.slow[i].run.wall_ms - r.slow[i].run.usual_ms <=
                r.slow[i - 1].run.wall_ms - r.slow[i - 1].run.usual_ms);
  hone_steady_free(&r);
  assert_int_equal(hone_steady_measure(&s, &(hone_steady_options){0}, NULL, &r, NULL), HONE_ERROR_USAGE);
}

static void test_quiet(void **state) {
  (void)state;
  hone_quiet q;
  stopper stop = {.most = 2};
  const hone_watch watch = {progress, NULL, &stop};
  assert_int_equal(hone_quiet_wait(0, NULL, &q, NULL), HONE_OK);
  assert_true(q.seconds == 0 && !q.quiet);
  assert_int_equal(hone_quiet_wait(600, &watch, &q, NULL), HONE_ERROR_CANCELLED);
  assert_true(q.seconds < 600);
}

/* A process that prints a report is judged by it, whatever its own time. */
static void test_gate(void **state) {
  (void)state;
  static hone_gate_run g;
  hone_error e = {0};
  g = (hone_gate_run){.threshold = 0.05};
  strcpy(g.old.label, "old");
  strcpy(g.old.command, "echo '{\"median_latency_ms\": 2.0, \"avg_latency_ms\": 2.0}'");
  strcpy(g.now.command, "echo '{\"median_latency_ms\": 3.0, \"avg_latency_ms\": 3.0}'");
  assert_int_equal(hone_gate_run_pairs(&g, 12, 0, NULL, &e), HONE_OK);
  assert_int_equal(g.result.verdict, HONE_GATE_WORSE);
  assert_false(g.wall);
  assert_int_equal(g.old.n, 12);
  assert_true(fabs(g.result.change - 0.5) < 1e-9);
  g.now.n = 0;
  assert_int_equal(hone_gate_run_new(&g, 12, 0, NULL, &e), HONE_OK);
  assert_int_equal(g.result.verdict, HONE_GATE_WORSE);
  g.given = true;
  strcpy(g.now.command, "true");
  assert_int_equal(hone_gate_run_pairs(&g, 12, 0, NULL, &e), HONE_ERROR_INPUT);
  assert_true(g.silent);
  strcpy(g.old.command, "echo that is wrong >&2; exit 3");
  assert_int_equal(hone_gate_run_pairs(&g, 12, 0, NULL, &e), HONE_ERROR_INPUT);
  assert_string_equal(e.where, "old");
  assert_non_null(strstr(e.what, "exit code 3: that is wrong"));
  strcpy(g.old.command, "sleep 100");
  assert_int_equal(hone_gate_run_pairs(&g, 12, 0.3, NULL, &e), HONE_OK);
  assert_true(g.timeout && g.result.verdict == HONE_GATE_NONE);
}

static void test_same_ports(void **state) {
  const bench *b = *state;
  hone_model *other = NULL;
  hone_error e = {0};
  assert_int_equal(
      hone_zoo_build("mobilenetv2", &(hone_zoo_options){.size = 64, .width = 0.25}, &other, NULL), HONE_OK);
  assert_int_equal(hone_same_ports(b->model, "a", b->model, "b", NULL), HONE_OK);
  assert_int_equal(hone_same_ports(b->model, "a", other, "b", &e), HONE_ERROR_INPUT);
  assert_string_equal(e.where, "a");
  assert_non_null(strstr(e.what, "x32]"));
  hone_model_release(other);
}

/* ---- the loop */

typedef struct seen {
  int stages;
  int levels[4], n_levels;
  hone_loop_stage fail_at;
} seen;

static hone_status begins(void *arg, hone_loop_stage stage, const hone_loop *l, hone_error *error) {
  seen *s = arg;
  (void)error;
  assert_int_equal(stage, s->stages++);
  assert_int_equal(l->stage, stage);
  assert_non_null(l->plan);
  assert_int_equal(l->first.profile != NULL, stage >= HONE_LOOP_OPTIMIZE);
  assert_int_equal(l->predicted_at[0] != 0, stage >= HONE_LOOP_OPTIMIZE);
  assert_int_equal(l->after.profile != NULL, stage == HONE_LOOP_DONE);
  return s->fail_at && stage == s->fail_at ? HONE_ERROR_IO : HONE_OK;
}

static void note_level(void *arg, hone_facts *facts, int level) {
  seen *s = arg;
  assert_true(hone_facts_get_meta(facts)->opt_level == level);
  s->levels[s->n_levels++] = level;
}

static void test_loop(void **state) {
  const bench *b = *state;
  static hone_loop l;
  seen s = {0};
  hone_peaks peaks = KNOWN_PEAKS;
  const hone_loop_options o = {.peaks = &peaks,
                               .threads = 1,
                               .verify_inputs = 2,
                               .max_seconds = 500,
                               .describe = note_level,
                               .begins = begins,
                               .arg = &s};
  assert_int_equal(hone_loop_run(b->engine, b->model, &o, &l, NULL), HONE_OK);
  assert_int_equal(s.stages, HONE_LOOP_DONE + 1);
  assert_int_equal(s.n_levels, 3);
  assert_true(s.levels[0] == 0 && s.levels[1] == 0 && s.levels[2] == 2);
  assert_int_equal(l.verdict.verdict, HONE_VERDICT_SAME);
  assert_int_equal(l.verdict.inputs, 2);
  /* How much it brings is measured: on a busy machine that may be nothing. */
  assert_true(l.predicted_ms > 0 && isfinite(l.predicted_pct) && l.rehearsal.steps > 0);
  assert_true(l.predicted_unsure_ms == 0 || l.predicted_pct == 0);
  assert_true(strlen(l.predicted_at) == strlen("2026-01-01T00:00:00Z") && l.predicted_by[0]);
  /* Fused: the changed plan has fewer steps, and it is the one that the command makes at level 2. */
  assert_int_equal(hone_plan_steps(l.plan), hone_plan_steps(b->plan));
  assert_true(l.after.profile->layer_count < l.before.profile->layer_count);
  assert_int_equal(l.before.profile->layer_count, l.first.profile->layer_count);
  assert_true(l.before.profile->iterations == l.after.profile->iterations);
  assert_non_null(l.comparison);
  assert_non_null(l.left);
  /* What fusing was to bring has been measured, for each finding that the optimizer removes. */
  bool promised = false;
  for (size_t i = 0; i < l.findings->count; i++)
    promised |= l.findings->items[i].remedy == HONE_REMEDY_OPTIMIZER;
  assert_true(promised);
  hone_loop_free(&l);
  assert_null(l.plan);
}

static void test_loop_ends(void **state) {
  const bench *b = *state;
  static hone_loop l;
  hone_error e = {0};
  seen s = {.fail_at = HONE_LOOP_OPTIMIZE};
  hone_peaks peaks = KNOWN_PEAKS;
  hone_loop_options o = {.peaks = &peaks, .threads = 1, .begins = begins, .arg = &s};
  assert_int_equal(hone_loop_run(b->engine, b->model, &o, &l, &e), HONE_ERROR_IO);
  assert_int_equal(l.stage, HONE_LOOP_OPTIMIZE);
  assert_non_null(l.findings); /* what was found stays */
  assert_null(l.after.profile);
  hone_loop_free(&l);
  o = (hone_loop_options){.peaks = &peaks, .threads = 1, .max_seconds = 100, .spent_ms = 1e6};
  assert_int_equal(hone_loop_run(b->engine, b->model, &o, &l, &e), HONE_ERROR_BUDGET);
  /* Whether a run is done in the least time that a limit leaves depends on the machine. */
  assert_true(l.late && l.stage == (l.within ? HONE_LOOP_RUN : HONE_LOOP_DIAGNOSE));
  hone_loop_free(&l);
  stopper stop = {.most = 4};
  const hone_watch watch = {progress, running, &stop};
  o = (hone_loop_options){.peaks = &peaks, .threads = 1, .watch = &watch};
  assert_int_equal(hone_loop_run(b->engine, b->model, &o, &l, &e), HONE_ERROR_CANCELLED);
  assert_null(stop.last); /* no context is there any more that could be cancelled */
  hone_loop_free(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runs),       cmocka_unit_test(test_record), cmocka_unit_test(test_slow),
      cmocka_unit_test(test_steady),     cmocka_unit_test(test_quiet),  cmocka_unit_test(test_gate),
      cmocka_unit_test(test_same_ports), cmocka_unit_test(test_loop),   cmocka_unit_test(test_loop_ends)};
  return cmocka_run_group_tests(tests, open_bench, close_bench);
}
