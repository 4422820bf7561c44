/* Which steps may be bf16: the budget is kept, and what is reported is what a plan of that choice shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <hone/data.h>
#include <hone/improve.h>
#include <hone/session.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a test holds; freed by its teardown, so that a failed assertion leaks nothing. */
static struct {
  hone_model *model;
  hone_precision_choice choice[3];
  float *answer[3];
} held;

static int hold(void **state) {
  (void)state;
  hone_zoo_options o = {.width = 0.5, .size = 64};
  memset(&held, 0, sizeof held);
  return hone_zoo_build("resnet50", &o, &held.model, NULL);
}

static int let_go(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    hone_precision_choice_free(&held.choice[i]);
    free(held.answer[i]);
  }
  hone_model_release(held.model);
  return 0;
}

static hone_precision_choice *choose(int which, double budget) {
  hone_precision_choice *c = &held.choice[which];
  hone_precision_options o = {.budget = budget, .threads = 2, .samples = 2, .max_seconds = 600};
  assert_int_equal(hone_precision_choose(held.model, &o, c, NULL), HONE_OK);
  assert_true(c->candidates >= 53);
  assert_int_equal(c->samples, 2);
  return c;
}

/* Output of the network with this choice on the random input of this seed. */
static const float *answer_to(int which, uint64_t seed, const char *precision, const hone_precision_choice *c,
                              int64_t *n) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_data data;
  hone_engine_options eo = {.threads = 2};
  hone_plan_options po = {.level = -1, .precision = precision};
  if (c) po.f32_nodes = (const char *const *)c->f32_nodes, po.n_f32_nodes = c->n_f32_nodes;
  assert_int_equal(hone_engine_create(&eo, &engine, NULL), HONE_OK);
  assert_int_equal(hone_plan_create(engine, held.model, &po, &plan, NULL), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
  assert_int_equal(
      hone_data_random(hone_plan_input_name(plan, 0), hone_plan_input_desc(plan, 0), -1, seed, &data, NULL),
      HONE_OK);
  const hone_tensor *in[] = {&data.tensor};
  assert_int_equal(hone_context_run(context, in, NULL, NULL), HONE_OK);
  const hone_tensor *out = hone_context_output(context, 0);
  *n = hone_desc_count(&out->desc);
  free(held.answer[which]);
  float *y = held.answer[which] = malloc((size_t)*n * sizeof *y);
  assert_non_null(y);
  memcpy(y, out->data, (size_t)*n * sizeof *y);
  hone_data_free(&data);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return y;
}

/* On the first sample of hone_precision_choose. */
static const float *answer(int which, const char *precision, const hone_precision_choice *c, int64_t *n) {
  return answer_to(which, 1, precision, c, n);
}

static double distance(const float *a, const float *b, int64_t n) {
  double low = INFINITY, high = -INFINITY, worst = 0;
  for (int64_t i = 0; i < n; i++) {
    if (b[i] < low) low = b[i];
    if (b[i] > high) high = b[i];
    if (fabs((double)a[i] - b[i]) > worst) worst = fabs((double)a[i] - b[i]);
  }
  return worst / (high - low);
}

/* A budget of everything keeps everything: no step has to stay f32, whatever the processor has. */
static void a_wide_budget_keeps_all(void **state) {
  (void)state;
  const hone_precision_choice *all = choose(0, 1);
  assert_int_equal(all->n_f32_nodes, 0);
  assert_true(all->plans == 2 && all->error == all->error_bf16); /* one chooses, one checks */
  assert_true(all->held_out >= 4 && !all->returned && all->error_held_out <= 1);
  assert_true(all->error_bf16 < 0.05);
}

static void a_budget_is_kept(void **state) {
  (void)state;
  const hone_precision_choice *all = choose(0, 1);
  if (all->error_bf16 == 0) {
    print_message("SKIP: this processor has no bf16 products that hone would choose\n");
    skip();
  }
  assert_true(all->error_bf16 > 1e-4);
  /* Half the error: some steps stay f32, some do not, and a plan of that choice is as good as was said. */
  const hone_precision_choice *half = choose(1, all->error_bf16 / 2);
  assert_true(half->n_f32_nodes > 0 && half->n_f32_nodes < half->candidates);
  assert_true(half->error <= half->budget);
  int64_t n = 0;
  const float *f32 = answer(0, "f32", NULL, &n), *narrow = answer(1, "bf16", NULL, &n),
              *chosen = answer(2, "bf16", half, &n);
  assert_true(distance(narrow, f32, n) > distance(chosen, f32, n));
  assert_true(distance(chosen, f32, n) <= 1.5 * half->budget); /* the range is that of one sample here */
  /* What was held out is kept, too: here the two samples behind those that chose. */
  assert_true(half->error_held_out > 0 && half->error_held_out <= half->budget);
  for (uint64_t k = 2; k < 4; k++) {
    const float *wide = answer_to(0, 1 + k * 1000003, "f32", NULL, &n),
                *mixed = answer_to(2, 1 + k * 1000003, "bf16", half, &n);
    assert_true(distance(mixed, wide, n) <= 1.5 * half->error_held_out);
  }
  /* The same again gives the same. */
  const hone_precision_choice *again = choose(2, all->error_bf16 / 2);
  assert_int_equal(again->n_f32_nodes, half->n_f32_nodes);
  for (uint32_t i = 0; i < half->n_f32_nodes; i++)
    assert_string_equal(again->f32_nodes[i], half->f32_nodes[i]);
}

/* How many steps would be bf16 is the processor's matter; that none of those that would is, is not. */
static void a_budget_that_nothing_keeps_leaves_f32(void **state) {
  (void)state;
  const hone_precision_choice *c = choose(0, 1e-12);
  assert_true((c->n_f32_nodes > 0) == (c->error_bf16 > 0));
  assert_true(c->error <= 1e-12 && c->error_held_out <= 1e-12);
  int64_t n = 0;
  const float *f32 = answer(0, "f32", NULL, &n), *chosen = answer(1, "bf16", c, &n);
  assert_true(distance(chosen, f32, n) <= 1e-12);
}

static bool no(void *arg, uint32_t done, uint32_t total) {
  (void)arg, (void)done, (void)total;
  return false;
}

static void it_can_be_cancelled(void **state) {
  (void)state;
  hone_precision_choice c;
  hone_precision_options o = {.threads = 1, .samples = 1, .progress = no};
  hone_error e = {0};
  assert_int_equal(hone_precision_choose(held.model, &o, &c, &e), HONE_ERROR_CANCELLED);
  assert_null(c.f32_nodes);
  assert_int_equal(hone_precision_choose(NULL, &o, &c, &e), HONE_ERROR_USAGE);
}

static void unknown_precisions_are_refused(void **state) {
  (void)state;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(NULL, &engine, NULL), HONE_OK);
  hone_plan_options o = {.level = -1, .precision = "f16"};
  assert_int_equal(hone_plan_create(engine, held.model, &o, &plan, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.expected, "f32, fp16 or bf16");
  assert_null(plan);
  hone_engine_destroy(engine);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hold, let_go)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_wide_budget_keeps_all),
      TEST(a_budget_is_kept),
      TEST(a_budget_that_nothing_keeps_leaves_f32),
      TEST(it_can_be_cancelled),
      TEST(unknown_precisions_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
