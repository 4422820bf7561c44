/* hone_shapes: which plan serves, what stays, and that answers are those of fresh plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"

#include "api/shapes/keep.h"
#include "base/mem.h"

#include <hone/hone.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDE = 24, LONGEST = 64 };

/* Rows are independent; the second output says something of each column alone. */
static const char rows_net[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx24], %s: f32[24]) -> (%y, %t, %z) {\n"
                               "  const %w: f32[24x40] = rand(1)\n"
                               "  %m = Mul(%x, %s)\n"
                               "  %p = MatMul(%m, %w)\n"
                               "  %y = Softmax(%p) {axis=-1}\n"
                               "  %t = Transpose(%y)\n"
                               "  %z = Neg(%s)\n}";
/* The mean over N. */
static const char mean_net[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx24], %s: f32[24]) -> (%y) {\n"
                               "  %m = ReduceMean(%x) {axes=[0]} \"mean_3\"\n"
                               "  %y = Mul(%m, %s)\n}";
static const char image_net[] = "ir 8\nopset 17\ngraph g(%x: f32[Nx3xHx10]) -> (%y) {\n"
                                "  const %w: f32[5x3x3x3] = rand(1)\n"
                                "  %c = Conv(%x, %w) {pads=[1, 1, 1, 1]}\n"
                                "  %y = Relu(%c)\n}";

typedef struct given {
  hone_engine *engine;
  hone_model *model;
  hone_shapes *shapes;
} given;

static given start(const char *text, const hone_shapes_options *o, uint32_t threads) {
  given g = {0};
  hone_error e = {0};
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = threads}, &g.engine, NULL), HONE_OK);
  g.model = net_parse("shapes", text);
  if (hone_shapes_create(g.engine, g.model, o, &g.shapes, &e) != HONE_OK) fail_msg("%s: %s", e.what, e.got);
  return g;
}

static void stop(given *g) {
  hone_shapes_destroy(g->shapes);
  hone_model_release(g->model);
  hone_engine_destroy(g->engine);
}

typedef struct question {
  float x[LONGEST * WIDE], s[WIDE];
  hone_tensor tensor[2];
  const hone_tensor *in[2];
} question;

static void ask(question *q, int64_t n, unsigned seed) {
  for (int64_t i = 0; i < n * WIDE; i++) q->x[i] = (float)((i * 37 + (int64_t)seed * 101) % 97) / 48 - 1;
  for (int i = 0; i < WIDE; i++) q->s[i] = (float)(i % 5) - 2;
  q->tensor[0] = (hone_tensor){hone_desc(HONE_DTYPE_F32, 2, (int64_t[]){n, WIDE}), q->x};
  q->tensor[1] = (hone_tensor){hone_desc(HONE_DTYPE_F32, 1, (int64_t[]){WIDE}), q->s};
  q->in[0] = &q->tensor[0], q->in[1] = &q->tensor[1];
}

static hone_shapes_answer *run(hone_shapes *shapes, question *q, int64_t n) {
  hone_shapes_answer *answer = NULL;
  hone_error e = {0};
  ask(q, n, (unsigned)n);
  if (hone_shapes_run(shapes, q->in, NULL, &answer, &e) != HONE_OK) fail_msg("%s", e.what);
  return answer;
}

/* As a fresh plan for these very sizes answers. */
static void same_as_fresh(const given *g, const question *q, int64_t n, const hone_shapes_answer *answer) {
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  const hone_binding b = {.symbol = "N", .rank = 1, .dim = {n}};
  const hone_plan_options o = {.level = -1, .bindings = &b, .n_bindings = 1};
  assert_int_equal(hone_plan_create(g->engine, g->model, &o, &plan, NULL), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
  assert_int_equal(hone_context_run(context, q->in, NULL, NULL), HONE_OK);
  for (uint32_t i = 0; i < hone_plan_outputs(plan); i++) {
    const hone_tensor *want = hone_context_output(context, i), *is = hone_shapes_answer_output(answer, i);
    assert_true(hone_desc_same_dims(&want->desc, &is->desc));
    for (int64_t k = 0; k < hone_desc_count(&want->desc); k++)
      assert_float_equal(((const float *)is->data)[k], ((const float *)want->data)[k], 1e-6);
  }
  assert_null(hone_shapes_answer_output(answer, hone_plan_outputs(plan)));
  hone_context_destroy(context);
  hone_plan_destroy(plan);
}

static int64_t planned(const hone_shapes_answer *a) {
  return hone_plan_input_desc(hone_shapes_answer_plan(a), 0)->dim[0];
}

static void rows_are_padded_to_buckets(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 8, .max = 20};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1}, 1);
  const int64_t *bucket = NULL, want[] = {1, 2, 4, 8, 16, 20};
  const char *reason = NULL;
  assert_true(hone_shapes_pads(g.shapes, 0, &reason));
  assert_string_equal(reason, "");
  assert_int_equal(hone_shapes_buckets(g.shapes, 0, &bucket), 6);
  assert_memory_equal(bucket, want, sizeof want);
  for (int64_t n = 1; n <= 20; n++) {
    question q;
    hone_shapes_answer *a = run(g.shapes, &q, n);
    int64_t size = 0;
    for (int i = 5; i >= 0; i--)
      if (want[i] >= n) size = want[i];
    assert_int_equal(planned(a), size);
    assert_int_equal(hone_shapes_answer_padded(a), size != n);
    same_as_fresh(&g, &q, n, a);
    hone_shapes_answer_release(a);
  }
  hone_shapes_counts c;
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 6);
  assert_int_equal(c.made, 6);
  assert_int_equal(c.evicted, 0);
  stop(&g);
}

static void what_is_not_proved_is_not_padded(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 4, .max = 20};
  given g =
      start(mean_net,
            &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 3, .background = true}, 1);
  const char *reason = NULL;
  assert_false(hone_shapes_pads(g.shapes, 0, &reason));
  assert_string_equal(reason, "node 'mean_3' (ReduceMean) reduces over it");
  for (int64_t n = 1; n <= 7; n++) {
    question q;
    hone_shapes_answer *a = run(g.shapes, &q, n);
    assert_int_equal(planned(a), n);
    assert_false(hone_shapes_answer_padded(a));
    same_as_fresh(&g, &q, n, a);
    hone_shapes_answer_release(a);
  }
  hone_shapes_counts c;
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 3);
  assert_int_equal(c.evicted, 5); /* 4 was there at first, and went, and came again */
  stop(&g);
}

static void two_dimensions(void **state) {
  (void)state;
  const int64_t list[] = {4, 12};
  const hone_size_profile p[] = {{.symbol = "H", .min = 3, .opt = 6, .max = 12},
                                 {.symbol = "N",
                                  .min = 1,
                                  .opt = 4,
                                  .max = 12,
                                  .buckets = HONE_BUCKETS_LIST,
                                  .list = list,
                                  .n_list = 2}};
  given g = start(image_net, &(hone_shapes_options){.profiles = p, .n_profiles = 2}, 1);
  const char *reason = NULL;
  assert_false(hone_shapes_pads(g.shapes, 0, &reason)); /* neighbours of a pixel */
  assert_non_null(strstr(reason, "Conv"));
  assert_true(hone_shapes_pads(g.shapes, 1, NULL));
  static float x[3 * 3 * 7 * 10];
  for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i % 23) / 11 - 1;
  hone_tensor t = {hone_desc(HONE_DTYPE_F32, 4, (int64_t[]){3, 3, 7, 10}), x};
  hone_shapes_answer *a = NULL;
  assert_int_equal(hone_shapes_run(g.shapes, (const hone_tensor *[]){&t}, NULL, &a, NULL), HONE_OK);
  const hone_tensor_desc *d = hone_plan_input_desc(hone_shapes_answer_plan(a), 0);
  assert_int_equal(d->dim[0], 4);
  assert_int_equal(d->dim[2], 7);
  assert_int_equal(hone_shapes_answer_output(a, 0)->desc.dim[0], 3);
  assert_int_equal(hone_shapes_answer_output(a, 0)->desc.dim[2], 7);
  hone_shapes_answer_release(a);
  hone_context *context = NULL;
  assert_int_equal(hone_shapes_acquire(g.shapes, (int64_t[]){5, 3}, &context, NULL), HONE_OK);
  d = hone_plan_input_desc(hone_context_plan(context), 0);
  assert_int_equal(d->dim[0], 3); /* never padded */
  assert_int_equal(d->dim[2], 5);
  hone_shapes_release(g.shapes, context);
  hone_shape_plan info;
  assert_true(hone_shapes_plan(g.shapes, 0, &info) && hone_shapes_plan(g.shapes, 2, &info));
  assert_int_equal(info.size[0], 5);
  assert_false(hone_shapes_plan(g.shapes, 3, &info));
  stop(&g);
}

/* ------------------------------------------------------------------ which stay */

static void the_longest_unused_goes(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 1, .max = 64};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 3}, 1);
  question q;
  hone_shape_plan info;
  for (int64_t n = 1; n <= 4; n *= 2) hone_shapes_answer_release(run(g.shapes, &q, n));
  hone_shapes_answer_release(run(g.shapes, &q, 1)); /* 2 is the oldest now */
  hone_shapes_answer *held = run(g.shapes, &q, 4);
  hone_shapes_answer_release(run(g.shapes, &q, 8));
  hone_shapes_counts c;
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 3);
  assert_int_equal(c.evicted, 1);
  assert_true(hone_shapes_plan(g.shapes, 0, &info));
  assert_int_equal(info.size[0], 1);
  /* What is in use stays, however old it gets, and its answer with it. */
  for (int64_t n = 16; n <= 64; n *= 2) hone_shapes_answer_release(run(g.shapes, &q, n));
  assert_true(hone_shapes_plan(g.shapes, 0, &info));
  assert_int_equal(info.size[0], 4);
  assert_int_equal(info.in_use, 1);
  ask(&q, 4, 4);
  same_as_fresh(&g, &q, 4, held);
  hone_shapes_answer_release(held);
  stop(&g);
}

static void more_in_use_than_are_kept(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 1, .max = 64};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 2}, 1);
  question q;
  hone_shapes_answer *held[4];
  hone_shapes_counts c;
  for (int i = 0; i < 4; i++) held[i] = run(g.shapes, &q, (int64_t)1 << i);
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 4);
  for (int i = 0; i < 4; i++) hone_shapes_answer_release(held[i]);
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 2);
  stop(&g);
}

static void bytes_are_bounded_too(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 1, .max = 64};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .max_bytes = 1}, 1);
  question q;
  hone_shapes_counts c;
  for (int64_t n = 1; n <= 64; n *= 2) hone_shapes_answer_release(run(g.shapes, &q, n));
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.plans, 1);
  assert_true(c.bytes > 0);
  assert_int_equal(c.evicted, 6);
  stop(&g);
}

static void all_buckets_share_weights(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 4, .max = 16};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1}, 1);
  assert_int_equal(hone_shapes_prepare(g.shapes, NULL), HONE_OK);
  hone_shape_plan info;
  uint32_t n = 0, sharing = 0;
  for (; hone_shapes_plan(g.shapes, n, &info); n++) {
    sharing += info.shared_bytes > 0;
    assert_true(info.plan_s > 0 && info.predicted_s > 0 && info.arena_bytes > 0);
    assert_true(info.most_waste_pct >= 0 && info.most_waste_pct < 50);
  }
  assert_int_equal(n, 5);
  assert_true(sharing >= 3);
  stop(&g);
}

/* ------------------------------------------------------------------ in the background */

static void a_larger_plan_serves_meanwhile(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 16, .max = 64};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .background = true}, 1);
  hn_keep *keep = hn_shapes_keep(g.shapes);
  hn_keep_hold(keep, true);
  question q;
  hone_shapes_counts c;
  for (int i = 0; i < 3; i++) {
    hone_shapes_answer *a = run(g.shapes, &q, 3);
    assert_int_equal(planned(a), 16);
    assert_true(hone_shapes_answer_padded(a));
    same_as_fresh(&g, &q, 3, a);
    hone_shapes_answer_release(a);
  }
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.waiting, 1); /* asked for once */
  assert_int_equal(c.padded, 3);
  /* Nothing larger is there: it is made now. */
  hone_shapes_answer *a = run(g.shapes, &q, 17);
  assert_int_equal(planned(a), 32);
  hone_shapes_answer_release(a);
  hn_keep_hold(keep, false);
  hone_shapes_wait(g.shapes);
  a = run(g.shapes, &q, 3);
  assert_int_equal(planned(a), 4);
  same_as_fresh(&g, &q, 3, a);
  hone_shapes_answer_release(a);
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.waiting, 0);
  assert_int_equal(c.plans, 3);
  stop(&g);
}

static void it_ends_with_work_left(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 64, .max = 64};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .background = true}, 1);
  question q;
  for (int64_t n = 1; n <= 32; n *= 2) hone_shapes_answer_release(run(g.shapes, &q, n));
  stop(&g);
}

/* ------------------------------------------------------------------ several callers */

typedef struct caller {
  const given *g;
  unsigned seed;
  atomic_uint *answers;
} caller;

static void *call(void *arg) {
  const caller *c = arg;
  for (unsigned i = 0; i < 40; i++) {
    const int64_t n = 1 + (int64_t)((c->seed * 7 + i * 13) % 31);
    question q;
    hone_shapes_answer *a = NULL;
    ask(&q, n, c->seed);
    if (hone_shapes_run(c->g->shapes, q.in, NULL, &a, NULL) != HONE_OK) continue;
    const hone_tensor *y = hone_shapes_answer_output(a, 0), *t = hone_shapes_answer_output(a, 1);
    bool good = y->desc.dim[0] == n && t->desc.dim[1] == n;
    for (int64_t k = 0; k < n && good; k++) {
      float sum = 0;
      for (int64_t j = 0; j < 40; j++) {
        sum += ((const float *)y->data)[k * 40 + j];
        good = good && ((const float *)y->data)[k * 40 + j] == ((const float *)t->data)[j * n + k];
      }
      good = good && sum > 0.999f && sum < 1.001f;
    }
    atomic_fetch_add(c->answers, good);
    hone_shapes_answer_release(a);
    if (i % 8 == 0) {
      hone_context *context = NULL;
      hone_shape_plan info;
      if (hone_shapes_acquire(c->g->shapes, &n, &context, NULL) == HONE_OK)
        hone_shapes_release(c->g->shapes, context);
      hone_shapes_plan(c->g->shapes, 0, &info);
    }
  }
  return NULL;
}

static void callers_at_once(void **state) {
  (void)state;
  enum { CALLERS = 4 };
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 31, .max = 31};
  given g =
      start(rows_net,
            &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 3, .background = true}, 2);
  pthread_t thread[CALLERS];
  caller c[CALLERS];
  atomic_uint answers = 0;
  for (unsigned i = 0; i < CALLERS; i++) {
    c[i] = (caller){&g, i + 1, &answers};
    assert_int_equal(pthread_create(&thread[i], NULL, call, &c[i]), 0);
  }
  for (unsigned i = 0; i < CALLERS; i++) pthread_join(thread[i], NULL);
  assert_int_equal(answers, CALLERS * 40);
  hone_shapes_wait(g.shapes);
  hone_shapes_counts counts;
  hone_shapes_count(g.shapes, &counts);
  assert_true(counts.plans <= 3);
  stop(&g);
}

/* ------------------------------------------------------------------ what is refused */

static void refuse_run(hone_shapes *shapes, const hone_tensor *x, const hone_tensor *s, const char *what,
                       const char *expected) {
  hone_shapes_answer *a = NULL;
  hone_error e = {0};
  assert_int_equal(hone_shapes_run(shapes, (const hone_tensor *[]){x, s}, NULL, &a, &e), HONE_ERROR_USAGE);
  assert_null(a);
  if (!strstr(e.what, what) || !strstr(e.expected, expected)) fail_msg("%s (%s)", e.what, e.expected);
}

static void hostile_inputs(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 2, .opt = 4, .max = 8};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1}, 1);
  question q;
  ask(&q, 4, 1);
  hone_tensor x = q.tensor[0];
  static const int64_t bad[] = {0, -1, 1, 9, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    x.desc.dim[0] = bad[i];
    refuse_run(g.shapes, &x, &q.tensor[1], "dimension 0 ('N') of input 'x' is outside of its profile",
               "2 to 8");
    hone_context *context = NULL;
    assert_int_equal(hone_shapes_acquire(g.shapes, &bad[i], &context, NULL), HONE_ERROR_USAGE);
  }
  x = q.tensor[0];
  x.desc.dim[1] = WIDE + 1;
  refuse_run(g.shapes, &x, &q.tensor[1], "dimension 1 of input 'x' is fixed", "24");
  x = q.tensor[0];
  x.desc.rank = 1;
  refuse_run(g.shapes, &x, &q.tensor[1], "does not fit the model", "f32");
  x = q.tensor[0];
  x.desc.dtype = HONE_DTYPE_I32;
  refuse_run(g.shapes, &x, &q.tensor[1], "does not fit the model", "f32");
  refuse_run(g.shapes, NULL, &q.tensor[1], "input 'x' was not given", "");
  refuse_run(g.shapes, &q.tensor[0], NULL, "input 's' was not given", "");
  stop(&g);
}

static void refuse_create(hone_engine *engine, hone_model *m, const hone_size_profile *p, uint32_t n,
                          const char *what) {
  hone_shapes *s = NULL;
  hone_error e = {0};
  const hone_shapes_options o = {.profiles = p, .n_profiles = n};
  assert_int_equal(hone_shapes_create(engine, m, &o, &s, &e), HONE_ERROR_USAGE);
  assert_null(s);
  if (!strstr(e.what, what)) fail_msg("%s", e.what);
}

static void hostile_profiles(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  hone_model *m = net_parse("shapes", rows_net);
  static const hone_size_profile bad[] = {{"N", 0, 1, 4, 0, 0, NULL, 0},
                                          {"N", -3, 1, 4, 0, 0, NULL, 0},
                                          {"N", 4, 2, 8, 0, 0, NULL, 0},
                                          {"N", 1, 9, 8, 0, 0, NULL, 0}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuse_create(engine, m, &bad[i], 1, "has no sizes");
  const int64_t list[] = {3, 99};
  refuse_create(engine, m, NULL, 0, "no dimension has a profile");
  refuse_create(engine, m, &(hone_size_profile){"M", 1, 2, 4, 0, 0, NULL, 0}, 1,
                "no input has a symbolic dimension named 'M'");
  refuse_create(engine, m, &(hone_size_profile){"N", 1, 2, 4, HONE_BUCKETS_STEP, 0, NULL, 0}, 1,
                "a step of 0");
  refuse_create(engine, m, &(hone_size_profile){"N", 1, 2, INT64_MAX, HONE_BUCKETS_STEP, 1, NULL, 0}, 1,
                "too many buckets");
  refuse_create(engine, m, &(hone_size_profile){"N", 1, 2, 4, HONE_BUCKETS_LIST, 0, list, 2}, 1, "bucket 99");
  refuse_create(engine, m, &(hone_size_profile){NULL, 1, 2, 4, 0, 0, NULL, 0}, 1, "names no dimension");
  const hone_size_profile twice[] = {{"N", 1, 2, 4, 0, 0, NULL, 0}, {"N", 1, 2, 4, 0, 0, NULL, 0}};
  refuse_create(engine, m, twice, 2, "two profiles");
  hone_model_release(m);
  hone_engine_destroy(engine);
}

/* Where no size comes twice, a plan that is there becomes the next one. */
static void plans_move_along(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 2, .opt = 4, .max = 60};
  given g = start(mean_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 3}, 1);
  for (int64_t n = 5; n <= 40; n++) {
    question q;
    hone_shapes_answer *a = run(g.shapes, &q, n);
    assert_int_equal(planned(a), n);
    same_as_fresh(&g, &q, n, a);
    hone_shapes_answer_release(a);
  }
  hone_shapes_counts c;
  hone_shapes_count(g.shapes, &c);
  assert_int_equal(c.made, 37);
  assert_true(c.moved >= 25);
  assert_true(c.plans <= 3);
  stop(&g);
}

static void memory_may_be_short(void **state) {
  (void)state;
  const hone_size_profile p = {.symbol = "N", .min = 1, .opt = 4, .max = 8};
  given g = start(rows_net, &(hone_shapes_options){.profiles = &p, .n_profiles = 1, .capacity = 2}, 1);
  bool reached = true;
  for (uint64_t n = 1; reached; n += 1 + n / 16) {
    question q;
    hone_shapes_answer *a = NULL;
    ask(&q, n % 2 ? 3 : 7, 1);
    hn_mem_fail_after(n);
    const hone_status status = hone_shapes_run(g.shapes, q.in, NULL, &a, NULL);
    reached = hn_mem_failed() || n < 50;
    hn_mem_fail_after(0);
    assert_true(status == HONE_OK || status == HONE_ERROR_MEMORY);
    assert_int_equal(status == HONE_OK, a != NULL);
    hone_shapes_answer_release(a);
  }
  question q;
  hone_shapes_answer_release(run(g.shapes, &q, 5));
  stop(&g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_padded_to_buckets),
      cmocka_unit_test(what_is_not_proved_is_not_padded),
      cmocka_unit_test(two_dimensions),
      cmocka_unit_test(the_longest_unused_goes),
      cmocka_unit_test(more_in_use_than_are_kept),
      cmocka_unit_test(bytes_are_bounded_too),
      cmocka_unit_test(all_buckets_share_weights),
      cmocka_unit_test(a_larger_plan_serves_meanwhile),
      cmocka_unit_test(it_ends_with_work_left),
      cmocka_unit_test(callers_at_once),
      cmocka_unit_test(hostile_inputs),
      cmocka_unit_test(hostile_profiles),
      cmocka_unit_test(plans_move_along),
      cmocka_unit_test(memory_may_be_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
