/* Engine, plan and context as a program uses them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/denormals.h"
#include "base/fault.h"
#include "base/mem.h"
#include "net.h"
#include "temporary.h"

#include <fenv.h>
#include <hone/facts.h>
#include <hone/improve.h>
#include <hone/session.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* x -> Conv -> BatchNormalization -> (+ x) -> Relu -> MaxPool -> Conv -> Flatten -> Gemm: every kind of step.
 */
static hn_model *small_net(void) {
  hn_model *m = net_begin();
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11});
  hn_value *c = net_op(m, "Conv", (hn_value *[]){x, net_weights(m, 4, (const int64_t[]){5, 5, 3, 3}, 1)}, 2);
  assert_true(hn_node_set_ints(c->producer, "pads", (const int64_t[]){1, 1, 1, 1}, 4));
  float one[5] = {1, 1.5f, 0.5f, 2, 1};
  int64_t five = 5;
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 1, &five);
  hn_value *g = hn_value_constant(m->graph, NULL, &d, one, true), *b = net_weights(m, 1, &five, 7);
  c = net_op(m, "BatchNormalization", (hn_value *[]){c, g, b, b, g}, 5);
  c = net_op(m, "Add", (hn_value *[]){c, x}, 2);
  c = net_op(m, "Relu", &c, 1);
  c = net_op(m, "MaxPool", &c, 1);
  assert_true(hn_node_set_ints(c->producer, "kernel_shape", (const int64_t[]){2, 2}, 2));
  assert_true(hn_node_set_ints(c->producer, "strides", (const int64_t[]){2, 2}, 2));
  c = net_op(m, "Conv", (hn_value *[]){c, net_weights(m, 4, (const int64_t[]){8, 5, 1, 1}, 3)}, 2);
  c = net_op(m, "Sigmoid", &c, 1);
  c = net_op(m, "Flatten", &c, 1);
  c = net_op(m, "Gemm", (hn_value *[]){c, net_weights(m, 2, (const int64_t[]){160, 3}, 4)}, 2);
  net_finish(m, c);
  return m;
}

static void fill(float *x, size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = (float)((i * 37) % 101) / 50.0f - 1.0f;
}

static void all_levels_agree_with_the_reference(void **state) {
  (void)state;
  float x[495], want[3];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  for (int level = -1; level <= 2; level++) {
    net_session s = net_open(small_net(), level < 0 ? 0 : level, level < 0, 2);
    hone_error e = {0};
    assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
    const float *y = hone_context_output(s.context, 0)->data;
    for (int i = 0; i < 3; i++) {
      if (level < 0) want[i] = y[i];
      assert_true(fabsf(y[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])));
    }
    net_close(&s);
  }
}

static void fusion_owns_its_nodes(void **state) {
  (void)state;
  net_session s = net_open(small_net(), 2, false, 1);
  uint32_t n = hone_plan_source_nodes(s.plan), executed = 0;
  assert_int_equal(n, 9);
  for (uint32_t i = 0; i < n; i++) {
    const char *name, *op_type, *fate;
    int32_t step;
    assert_true(hone_plan_source_node(s.plan, i, &name, &op_type, &step, &fate));
    executed += step >= 0;
  }
  assert_true(executed >= 7); /* all but the Flatten, which is a view */
  bool fused = false;
  for (uint32_t i = 0; i < hone_plan_steps(s.plan); i++) {
    hone_step_info info;
    assert_true(hone_plan_step(s.plan, i, &info));
    fused |= strcmp(info.op_type, "Conv") == 0 && strstr(info.what, "Add") && strstr(info.what, "Relu");
  }
  assert_true(fused);
  net_close(&s);
}

static void the_steady_state_allocates_nothing(void **state) {
  (void)state;
  for (int level = 0; level <= 2; level++) {
    net_session s = net_open(small_net(), level, false, 2);
    float x[495];
    fill(x, 495);
    hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
    const hone_tensor *inputs[] = {&in};
    for (int i = 0; i < 2; i++) assert_int_equal(hone_context_run(s.context, inputs, NULL, NULL), HONE_OK);
    uint64_t before = hn_mem_count();
    for (int i = 0; i < 20; i++) assert_int_equal(hone_context_run(s.context, inputs, NULL, NULL), HONE_OK);
    assert_int_equal(hn_mem_count(), before);
    net_close(&s);
  }
}

typedef struct job {
  net_session *s;
  float want[3];
  int wrong;
} job;

static void *many_runs(void *arg) {
  job *j = arg;
  hone_context *c;
  if (hone_context_create(j->s->plan, &c, NULL) != HONE_OK) return j->wrong++, NULL;
  float x[495];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  for (int i = 0; i < 50; i++) {
    if (hone_context_run(c, inputs, NULL, NULL) != HONE_OK ||
        memcmp(hone_context_output(c, 0)->data, j->want, sizeof j->want))
      j->wrong++;
  }
  hone_context_destroy(c);
  return NULL;
}

static void several_contexts_share_a_plan(void **state) {
  (void)state;
  net_session s = net_open(small_net(), 2, false, 2);
  job j[4];
  pthread_t t[4];
  float x[495];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  assert_int_equal(hone_context_run(s.context, inputs, NULL, NULL), HONE_OK);
  for (int i = 0; i < 4; i++) {
    j[i] = (job){.s = &s};
    memcpy(j[i].want, hone_context_output(s.context, 0)->data, sizeof j[i].want);
    assert_int_equal(pthread_create(&t[i], NULL, many_runs, &j[i]), 0);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(t[i], NULL);
    assert_int_equal(j[i].wrong, 0);
  }
  net_close(&s);
}

static void wrong_inputs_are_refused(void **state) {
  (void)state;
  net_session s = net_open(small_net(), 2, false, 1);
  float x[495];
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 11, 9}), x};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.expected, "f32[1x5x9x11]");
  inputs[0] = NULL;
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_ERROR_USAGE);
  hone_plan *p;
  hone_binding b = {.input = "nope", .rank = 1, .dim = {1}};
  assert_int_equal(hone_plan_create(s.engine, s.model,
                                    &(hone_plan_options){.level = 2, .bindings = &b, .n_bindings = 1}, &p,
                                    &e),
                   HONE_ERROR_USAGE);
  net_close(&s);
}

static void loops_run_and_stop(void **state) {
  (void)state;
  float x[4] = {1, 2, 3, 4};
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4}), x};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  net_session s = net_open(net_loop(9), 2, false, 1);
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
  assert_true(((const float *)hone_context_output(s.context, 0)->data)[3] == 40.0f);
  net_close(&s);
  s = net_open(net_loop((int64_t)1 << 62), 2, false, 1);
  assert_int_equal(hone_context_run(s.context, inputs, &(hone_run_options){.max_seconds = 0.05}, &e),
                   HONE_ERROR_BUDGET);
  assert_int_equal(hone_context_run(s.context, inputs, &(hone_run_options){.max_nodes = 1000}, &e),
                   HONE_ERROR_BUDGET);
  hone_context_cancel(s.context);
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_ERROR_CANCELLED);
  assert_int_equal(hone_context_run(s.context, inputs, &(hone_run_options){.max_nodes = 10}, &e),
                   HONE_ERROR_BUDGET);
  net_close(&s);
}

/* A run that ends when it is cancelled. It is refused itself while the other thread asks for the context:
 * again. */
static void *long_run(void *arg) {
  float x[4] = {1, 2, 3, 4};
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4}), x};
  const hone_tensor *inputs[] = {&in};
  hone_status s;
  while ((s = hone_context_run(arg, inputs, NULL, NULL)) == HONE_ERROR_USAGE) sched_yield();
  return (void *)(uintptr_t)s;
}

static void a_context_serves_one_thread(void **state) {
  (void)state;
  net_session s = net_open(net_loop((int64_t)1 << 62), 2, false, 1);
  float x[4] = {1, 2, 3, 4};
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 1, (const int64_t[]){4}), x};
  const hone_tensor *inputs[] = {&in};
  hone_error e = {0};
  hone_facts *f = hone_facts_create();
  pthread_t other;
  void *ended;
  assert_int_equal(pthread_create(&other, NULL, long_run, s.context), 0);
  /* A small thing that is refused from when the other thread is at work. */
  while (hone_context_record(s.context, NULL, 0, &e) == HONE_OK) sched_yield();
  assert_non_null(strstr(e.what, "another thread"));
  assert_int_equal(e.status, HONE_ERROR_USAGE);
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_record(s.context, f, 9, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_record_end(s.context, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_stage_begin(s.context, HONE_SPAN_PRE, &e), HONE_ERROR_USAGE);
  hone_context_cancel(s.context);
  pthread_join(other, &ended);
  assert_int_equal((uintptr_t)ended, HONE_ERROR_CANCELLED);
  /* And then it serves the next one. */
  assert_int_equal(hone_context_run(s.context, inputs, &(hone_run_options){.max_nodes = 10}, &e),
                   HONE_ERROR_BUDGET);
  hone_facts_destroy(f);
  net_close(&s);
}

static double closure(hone_facts *f, double *wall, double *steps, double *run) {
  size_t n;
  const hone_span *span = hone_facts_spans(f, &n);
  *wall = *steps = *run = 0;
  for (size_t i = 0; i < n; i++) {
    double ms = (double)(span[i].end_ns - span[i].start_ns) * 1e-6;
    *(span[i].kind == HONE_SPAN_RUN ? run : steps) += ms;
  }
  const hone_wall *w = hone_facts_walls(f, &n);
  for (size_t i = 0; i < n; i++) *wall += (double)w[i].wall_ns * 1e-6;
  return *wall - *run;
}

/* What three runs leave between their steps and beside them, in ms, while `fault` sleeps. */
static void left_by(const char *fault, double *gaps, double *residual, size_t *steps) {
  float x[495];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  net_session s = net_open(small_net(), 2, false, 1);
  hone_facts *f = hone_facts_create();
  hone_error e = {0};
  hn_fault_set(fault);
  assert_int_equal(hone_context_record(s.context, f, 3, &e), HONE_OK);
  for (int i = 0; i < 3; i++) assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
  hn_fault_set(NULL);
  if (hone_context_record_end(s.context, &e) != HONE_OK) fail_msg("%s", e.what);
  double wall, in_steps, run;
  *residual = closure(f, &wall, &in_steps, &run), *gaps = run - in_steps;
  hone_facts_steps(f, steps);
  assert_int_equal(*steps, hone_plan_steps(s.plan));
  hone_facts_destroy(f);
  net_close(&s);
}

static void gaps_and_residuals_are_told_apart(void **state) {
  (void)state;
  double gaps, residual;
  size_t n;
  left_by(NULL, &gaps, &residual, &n);
#ifdef HN_FAULTS
  /* A sleep takes its time always; what it is not counted as is small, but for runs that the machine
   * interrupts. */
  bool apart = false;
  for (int tries = 0; tries < 20 && !apart; tries++) {
    left_by("sleep_between_steps", &gaps, &residual, &n);
    assert_true(gaps > 3 * 2.0 * (double)(n - 1) * 0.9);
    apart = residual < 3 * 5.0;
  }
  assert_true(apart);
  apart = false;
  for (int tries = 0; tries < 20 && !apart; tries++) {
    left_by("sleep_uninstrumented", &gaps, &residual, &n);
    assert_true(residual > 3 * 19.0);
    apart = gaps < 3 * 5.0;
  }
  assert_true(apart);
#endif
}

static void stages_belong_to_their_runs(void **state) {
  (void)state;
  float x[495];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  net_session s = net_open(small_net(), 2, false, 1);
  hone_facts *f = hone_facts_create();
  hone_error e = {0};
  assert_int_equal(hone_context_stage_end(s.context, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_stage_begin(s.context, HONE_SPAN_KERNEL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_context_record(s.context, f, 2, &e), HONE_OK);
  for (int i = 0; i < 3; i++) { /* the third run is not recorded, nor what belongs to it */
    assert_int_equal(hone_context_stage_begin(s.context, HONE_SPAN_PRE, &e), HONE_OK);
    assert_int_equal(hone_context_stage_begin(s.context, HONE_SPAN_PRE, &e), HONE_ERROR_USAGE);
    assert_int_equal(hone_context_stage_end(s.context, &e), HONE_OK);
    assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
    assert_int_equal(hone_context_stage_begin(s.context, HONE_SPAN_POST, &e), HONE_OK);
    assert_int_equal(hone_context_stage_end(s.context, &e), HONE_OK);
  }
  if (hone_context_record_end(s.context, &e) != HONE_OK) fail_msg("%s", e.what);
  size_t n, pre = 0, post = 0;
  int64_t begin[2] = {0}, end[2] = {0};
  const hone_span *span = hone_facts_spans(f, &n);
  for (size_t i = 0; i < n; i++)
    if (span[i].kind == HONE_SPAN_RUN) {
      begin[span[i].iteration] = span[i].start_ns;
      end[span[i].iteration] = span[i].end_ns;
    }
  for (size_t i = 0; i < n; i++) {
    pre += span[i].kind == HONE_SPAN_PRE;
    post += span[i].kind == HONE_SPAN_POST;
    if (span[i].kind == HONE_SPAN_PRE) assert_true(span[i].end_ns <= begin[span[i].iteration]);
    if (span[i].kind == HONE_SPAN_POST) assert_true(span[i].start_ns >= end[span[i].iteration]);
  }
  assert_int_equal(pre, 2);
  assert_int_equal(post, 2);
  hone_facts_destroy(f);
  net_close(&s);
}

/* 2:4 along K: input channels of a convolution, rows of a product's B. */
static void sparse_weights_are_counted(void **state) {
  (void)state;
  enum { C = 24 };
  float conv[C * C * 9], product[C * C], x[C * 36];
  fill(x, C * 36);
  for (int o = 0; o < C; o++)
    for (int c = 0; c < C; c++) {
      for (int k = 0; k < 9; k++) conv[(o * C + c) * 9 + k] = (c + k) % 4 < 2 ? -0.0f : 1;
      product[o * C + c] = o % 4 == 0 || o >= C / 2 ? 0 : 1; /* half of the groups along o, rows of B */
    }
  hn_model *m = net_begin();
  hn_value *v = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, C, 6, 6});
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){C, C, 3, 3});
  v = net_op(m, "Conv", (hn_value *[]){v, hn_value_constant(m->graph, NULL, &d, conv, true)}, 2);
  v = net_op(m, "GlobalAveragePool", &v, 1);
  v = net_op(m, "Flatten", &v, 1);
  d = hone_desc(HONE_DTYPE_F32, 2, (const int64_t[]){C, C});
  v = net_op(m, "MatMul", (hn_value *[]){v, hn_value_constant(m->graph, NULL, &d, product, true)}, 2);
  net_finish(m, net_op(m, "MatMul", (hn_value *[]){v, net_weights(m, 2, (const int64_t[]){C, 30}, 3)}, 2));
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, C, 6, 6}), x};
  const hone_tensor *inputs[] = {&in};
  net_session s = net_open(m, 2, false, 1);
  hone_facts *f = hone_facts_create();
  hone_error e = {0};
  assert_int_equal(hone_context_record(s.context, f, 1, &e), HONE_OK);
  assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
  if (hone_context_record_end(s.context, &e) != HONE_OK) fail_msg("%s", e.what);
  const double want[] = {100, 50, 0};
  size_t n, seen = 0;
  const hone_counter *c = hone_facts_counters(f, &n);
  for (size_t i = 0; i < n; i++)
    if (strcmp(c[i].name, "weights_2_4") == 0) {
      assert_true(seen < 3);
      assert_true(c[i].value == want[seen]);
      seen++;
    }
  assert_int_equal(seen, 3);
  hone_facts_destroy(f);
  net_close(&s);
}

/* Products whose weights are all denormal, 2 threads: zero where denormals count as zero (level 2), else what
 * they are. The caller's mode stays, and so do the exceptions that it has seen. */
static void denormal_products(void **state) {
  (void)state;
  enum { C = 32, SIDE = 40 };
  static float x[C * SIDE * SIDE], w[C * C];
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = 1;
  for (int i = 0; i < C * C; i++) w[i] = 0x1p-140f;
  for (int level = 1; level <= 2; level++) {
    hn_model *m = net_begin();
    hn_value *v = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, C, SIDE, SIDE});
    hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){C, C, 1, 1});
    net_finish(m, net_op(m, "Conv", (hn_value *[]){v, hn_value_constant(m->graph, NULL, &d, w, true)}, 2));
    hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, C, SIDE, SIDE}), x};
    const hone_tensor *inputs[] = {&in};
    net_session s = net_open(m, level, false, 2);
    hone_facts *f = hone_facts_create();
    hone_error e = {0};
    const uint32_t mode = hn_float_mode();
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO); /* the caller's affair */
    assert_int_equal(hone_context_record(s.context, f, 1, &e), HONE_OK);
    assert_int_equal(hone_context_run(s.context, inputs, NULL, &e), HONE_OK);
    if (hone_context_record_end(s.context, &e) != HONE_OK) fail_msg("%s", e.what);
    assert_int_equal(hn_float_mode(), mode);
    assert_true(fetestexcept(FE_DIVBYZERO));
    const float *y = hone_context_output(s.context, 0)->data;
    for (int i = 0; i < C * SIDE * SIDE; i++) assert_true(y[i] == (level == 2 ? 0 : C * 0x1p-140f));
    size_t n, counted = 0;
    const hone_counter *c = hone_facts_counters(f, &n);
    for (size_t i = 0; i < n; i++) counted += strcmp(c[i].name, "weights_denormal") == 0 && c[i].value == 100;
    assert_int_equal(counted, level == 1);
    hone_facts_destroy(f);
    net_close(&s);
  }
}

/* No output channels, an activation behind: nothing to compute, which takes a known time. */
static void empty_products_have_a_cost(void **state) {
  (void)state;
  const float none = 0;
  hn_model *m = net_begin();
  hn_value *v = net_input(m, "x", HONE_DTYPE_F32, 4, (const int64_t[]){1, 3, 6, 6});
  hone_tensor_desc d = hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){0, 3, 3, 3});
  v = net_op(m, "Conv", (hn_value *[]){v, hn_value_constant(m->graph, NULL, &d, &none, true)}, 2);
  net_finish(m, net_op(m, "Sigmoid", (hn_value *[]){v}, 1));
  net_session s = net_open(m, 2, false, 1);
  hone_facts *f = hone_facts_create();
  hone_error e = {0};
  assert_int_equal(hone_plan_preview(s.plan, f, &e), HONE_OK);
  size_t n;
  const hone_preview_step *p = hone_facts_preview_steps(f, &n);
  assert_true(n > 0);
  for (size_t i = 0; i < n; i++) assert_true(isfinite(p[i].predicted_ms));
  hone_facts_destroy(f);
  net_close(&s);
}

/* Every allocation on the way from a model to an answer fails once: an error, no crash, no leak (the
 * sanitizers watch). */
static void every_allocation_may_fail(void **state) {
  (void)state;
  float x[495];
  fill(x, 495);
  hone_tensor in = {hone_desc(HONE_DTYPE_F32, 4, (const int64_t[]){1, 5, 9, 11}), x};
  const hone_tensor *inputs[] = {&in};
  hn_model *m = small_net();
  hone_status last = HONE_ERROR_MEMORY;
  uint64_t failures = 0;
  for (uint64_t n = 1; last != HONE_OK && n < 20000; n += n < 400 ? 1 : 7) {
    hone_engine *engine = NULL;
    hone_plan *plan = NULL;
    hone_context *context = NULL;
    hone_error e = {0};
    hn_mem_fail_after(n);
    last = hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, &e);
    if (last == HONE_OK) last = hone_plan_create(engine, m, NULL, &plan, &e);
    if (last == HONE_OK) last = hone_context_create(plan, &context, &e);
    if (last == HONE_OK) last = hone_context_run(context, inputs, NULL, &e);
    bool reached = hn_mem_failed();
    hn_mem_fail_after(0);
    if (last != HONE_OK) {
      assert_int_equal(last, HONE_ERROR_MEMORY);
      failures++;
    }
    hone_context_destroy(context);
    hone_plan_destroy(plan);
    hone_engine_destroy(engine);
    if (last == HONE_OK && reached) last = HONE_ERROR_MEMORY; /* an optional allocation: go on */
    if (!reached) break;
  }
  assert_true(failures > 50);
  hone_model_release(m);
}

static bool two_steps(void *arg, uint32_t done, uint32_t total, double seconds_left) {
  (void)arg, (void)total, (void)seconds_left;
  return done < 2;
}

/* What was measured may wait for who knows whether it is any good: until then the file is as it was. */
static void choices_are_saved_when_asked(void **state) {
  (void)state;
  char folder[112], path[128];
  const char *file;
  assert_non_null(mkdtemp(temporary(folder, sizeof folder, "hone-tune")));
  snprintf(path, sizeof path, "%s/t.txt", folder);
  hone_model *model;
  hone_plan *plan;
  hone_engine *engine, *again;
  hone_tune_report r;
  const hone_engine_options o = {.threads = 1, .tuning = path};
  const hone_zoo_options small = {.width = 0.1, .size = 32, .batch = 1};
  assert_int_equal(hone_zoo_build("mobilenetv2", &small, &model, NULL), HONE_OK);
  assert_int_equal(hone_engine_create(&o, &engine, NULL), HONE_OK);
  assert_int_equal(hone_plan_create(engine, model, &(hone_plan_options){.level = 2}, &plan, NULL), HONE_OK);
  const hone_tune_options quick = {.progress = two_steps, .alone = true, .unsaved = true};
  assert_int_equal(hone_tune(plan, &quick, &r, NULL), HONE_OK);
  const uint32_t measured = r.measured;
  assert_true(measured > 0);
  assert_string_equal(r.file, "");
  hone_tune_report_free(&r);
  assert_int_equal(hone_engine_tuned(engine, &file, NULL), measured);
  assert_string_equal(file, path);
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_equal(hone_tune_save(plan, NULL), HONE_OK);
  assert_int_equal(hone_engine_create(&o, &again, NULL), HONE_OK);
  assert_int_equal(hone_engine_tuned(again, NULL, NULL), measured);
  hone_engine_destroy(again);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_model_release(model);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_levels_agree_with_the_reference),
      cmocka_unit_test(fusion_owns_its_nodes),
      cmocka_unit_test(the_steady_state_allocates_nothing),
      cmocka_unit_test(several_contexts_share_a_plan),
      cmocka_unit_test(wrong_inputs_are_refused),
      cmocka_unit_test(loops_run_and_stop),
      cmocka_unit_test(a_context_serves_one_thread),
      cmocka_unit_test(gaps_and_residuals_are_told_apart),
      cmocka_unit_test(stages_belong_to_their_runs),
      cmocka_unit_test(sparse_weights_are_counted),
      cmocka_unit_test(denormal_products),
      cmocka_unit_test(empty_products_have_a_cost),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(choices_are_saved_when_asked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
