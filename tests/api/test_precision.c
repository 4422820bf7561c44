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

static hone_model *network(void) {
  hone_model *m = NULL;
  hone_zoo_options o = {.width = 0.5, .size = 64};
  assert_int_equal(hone_zoo_build("resnet50", &o, &m, NULL), HONE_OK);
  return m;
}

static hone_precision_choice choose(hone_model *m, double budget) {
  hone_precision_choice c;
  hone_precision_options o = {.budget = budget, .threads = 2, .samples = 2};
  hone_error e = {0};
  assert_int_equal(hone_precision_choose(m, &o, &c, &e), HONE_OK);
  assert_true(c.candidates >= 53);
  assert_int_equal(c.samples, 2);
  return c;
}

/* Output of the network with this choice on the first sample of hone_precision_choose; free it. */
static float *answer(hone_model *m, const char *precision, const hone_precision_choice *c, int64_t *n) {
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_context *context = NULL;
  hone_data data;
  hone_engine_options eo = {.threads = 2};
  hone_plan_options po = {.level = -1, .precision = precision};
  if (c) po.f32_nodes = (const char *const *)c->f32_nodes, po.n_f32_nodes = c->n_f32_nodes;
  assert_int_equal(hone_engine_create(&eo, &engine, NULL), HONE_OK);
  assert_int_equal(hone_plan_create(engine, m, &po, &plan, NULL), HONE_OK);
  assert_int_equal(hone_context_create(plan, &context, NULL), HONE_OK);
  assert_int_equal(
      hone_data_random(hone_plan_input_name(plan, 0), hone_plan_input_desc(plan, 0), -1, 1, &data, NULL),
      HONE_OK);
  const hone_tensor *in[] = {&data.tensor};
  assert_int_equal(hone_context_run(context, in, NULL, NULL), HONE_OK);
  const hone_tensor *out = hone_context_output(context, 0);
  *n = hone_desc_count(&out->desc);
  float *y = malloc((size_t)*n * sizeof *y);
  assert_non_null(y);
  memcpy(y, out->data, (size_t)*n * sizeof *y);
  hone_data_free(&data);
  hone_context_destroy(context);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  return y;
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

static void a_budget_is_kept(void **state) {
  (void)state;
  hone_model *m = network();
  hone_precision_choice all = choose(m, 1);
  assert_int_equal(all.n_f32_nodes, 0);
  assert_true(all.plans == 1 && all.error == all.error_bf16);
  if (all.error_bf16 == 0) {
    print_message("SKIP: this processor has no bf16 products that hone would choose\n");
    hone_precision_choice_free(&all);
    hone_model_release(m);
    skip();
  }
  assert_true(all.error_bf16 > 1e-4 && all.error_bf16 < 0.05);
  /* Half the error: some steps stay f32, some do not, and a plan of that choice is as good as was said. */
  hone_precision_choice half = choose(m, all.error_bf16 / 2);
  assert_true(half.n_f32_nodes > 0 && half.n_f32_nodes < half.candidates);
  assert_true(half.error <= half.budget);
  int64_t n = 0;
  float *f32 = answer(m, "f32", NULL, &n), *narrow = answer(m, "bf16", NULL, &n),
        *chosen = answer(m, "bf16", &half, &n);
  assert_true(distance(narrow, f32, n) > distance(chosen, f32, n));
  assert_true(distance(chosen, f32, n) <= 1.5 * half.budget); /* the range is that of one sample here */
  /* The same again gives the same. */
  hone_precision_choice again = choose(m, all.error_bf16 / 2);
  assert_int_equal(again.n_f32_nodes, half.n_f32_nodes);
  for (uint32_t i = 0; i < half.n_f32_nodes; i++) assert_string_equal(again.f32_nodes[i], half.f32_nodes[i]);
  free(f32);
  free(narrow);
  free(chosen);
  hone_precision_choice_free(&again);
  hone_precision_choice_free(&half);
  hone_precision_choice_free(&all);
  hone_model_release(m);
}

static void a_budget_that_nothing_keeps_leaves_f32(void **state) {
  (void)state;
  hone_model *m = network();
  hone_precision_choice c = choose(m, 1e-12);
  if (c.error_bf16 > 0) assert_true(c.n_f32_nodes > c.candidates / 2); /* some are f32 in either plan */
  assert_true(c.error <= 1e-12);
  int64_t n = 0;
  float *f32 = answer(m, "f32", NULL, &n), *chosen = answer(m, "bf16", &c, &n);
  assert_true(distance(chosen, f32, n) <= 1e-12);
  free(f32);
  free(chosen);
  hone_precision_choice_free(&c);
  hone_model_release(m);
}

static bool no(void *arg, uint32_t done, uint32_t total) {
  (void)arg, (void)done, (void)total;
  return false;
}

static void it_can_be_cancelled(void **state) {
  (void)state;
  hone_model *m = network();
  hone_precision_choice c;
  hone_precision_options o = {.threads = 1, .samples = 1, .progress = no};
  hone_error e = {0};
  assert_int_equal(hone_precision_choose(m, &o, &c, &e), HONE_ERROR_CANCELLED);
  assert_null(c.f32_nodes);
  assert_int_equal(hone_precision_choose(NULL, &o, &c, &e), HONE_ERROR_USAGE);
  hone_model_release(m);
}

static void unknown_precisions_are_refused(void **state) {
  (void)state;
  hone_model *m = network();
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  hone_error e = {0};
  assert_int_equal(hone_engine_create(NULL, &engine, NULL), HONE_OK);
  hone_plan_options o = {.level = -1, .precision = "f16"};
  assert_int_equal(hone_plan_create(engine, m, &o, &plan, &e), HONE_ERROR_USAGE);
  assert_string_equal(e.expected, "f32 or bf16");
  assert_null(plan);
  hone_engine_destroy(engine);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_budget_is_kept),
      cmocka_unit_test(a_budget_that_nothing_keeps_leaves_f32),
      cmocka_unit_test(it_can_be_cancelled),
      cmocka_unit_test(unknown_precisions_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
