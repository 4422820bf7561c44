/* hone_mix: what goes back to f32, that the budget holds on samples that chose nothing, and what is refused.
 */
#include "samples.h"

#include "api/api.h"
#include "api/mixed/mixed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which types a unit may have, by figures alone */

static void take(hn_mix_unit *u, hone_mixed_type type, double ms, double noise) {
  u->timed[type] = true;
  for (int i = 0; i < HN_MIX_ROUNDS; i++) u->ms[type][i] = ms + noise * (i % 3 - 1);
  u->median[type] = ms;
}

static void ladder_is(double f32, double f16, double bf16, double int8, double noise, const char *want) {
  hn_mix_unit u = {0};
  char have[64] = "";
  take(&u, HONE_MIXED_F32, f32, noise);
  take(&u, HONE_MIXED_F16, f16, noise);
  take(&u, HONE_MIXED_BF16, bf16, noise);
  take(&u, HONE_MIXED_INT8, int8, noise);
  hn_mix_climb(&u, false);
  for (uint32_t i = 0; i < u.rungs; i++) {
    strcat(have, hone_mixed_type_name(u.ladder[i]));
    strcat(have, " ");
  }
  assert_string_equal(have, want);
}

static void test_ladders(void **state) {
  (void)state;
  ladder_is(1, 1, 1, 0.5, 0.01, "int8 f32 ");
  ladder_is(1, 1, 0.7, 0.5, 0.01, "int8 bf16 f32 ");
  ladder_is(1, 0.8, 0.7, 0.5, 0.01, "int8 bf16 f16 f32 ");
  ladder_is(1, 0.6, 0.7, 0.5, 0.01, "int8 f16 f32 "); /* what is wider and faster, too */
  ladder_is(1, 1, 0.4, 0.5, 0.01, "bf16 f32 ");
  ladder_is(1, 1, 1, 1.5, 0.01, "f32 ");
  ladder_is(1, 1, 1, 1, 0.01, "f32 ");   /* as fast is not faster */
  ladder_is(1, 1, 1, 0.95, 0.3, "f32 "); /* nor within the noise */
  hn_mix_unit follower = {.follows = true};
  hn_mix_climb(&follower, false);
  assert_int_equal(follower.rungs, 2);
  assert_int_equal(follower.ladder[0], HONE_MIXED_INT8);
  hn_mix_unit slow = {0};
  take(&slow, HONE_MIXED_F32, 1, 0);
  take(&slow, HONE_MIXED_INT8, 2, 0);
  hn_mix_climb(&slow, true); /* time is not asked */
  assert_int_equal(slow.ladder[0], HONE_MIXED_INT8);
  hn_mix_climb(&slow, false);
  assert_int_equal(slow.rungs, 1);
  hn_mix_climb_together(&slow);
  assert_true(slow.together && slow.rungs == 2 && slow.ladder[0] == HONE_MIXED_INT8);
}

/* ---- searches */

typedef struct mixed {
  hone_model *model;
  hone_mixed_report report;
} mixed;

static mixed mix(hone_model *m, hone_mixed_options o) {
  mixed x = {0};
  hone_error e = {0};
  o.quantize.threads = 1;
  if (!o.quantize.calib && !o.set) o.quantize.calib = "random";
  if (hone_mix(m, &o, &x.model, &x.report, &e) != HONE_OK) fail_msg("%s %s", e.what, e.got);
  assert_int_equal(x.model != NULL, x.report.verdict == HONE_MIXED_MET);
  return x;
}

static void mixed_free(mixed *x) {
  hone_model_release(x->model);
  hone_mixed_report_free(&x->report);
}

static const hone_mixed_layer *layer(const mixed *x, const char *op_type, int which) {
  for (uint32_t i = 0; i < x->report.n_layers; i++)
    if (strcmp(x->report.layer[i].op_type, op_type) == 0 && which-- == 0) return &x->report.layer[i];
  fail_msg("no %s", op_type);
  return NULL;
}

/* Power of the differences between two models over that of the first, on random inputs of these seeds. */
static double noise_on(hone_model *a, hone_model *b, uint64_t seed, uint64_t step, int n) {
  hone_engine *engine = NULL;
  hone_plan *plan[2];
  hone_context *context[2];
  double signal = 0, noise = 0;
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  for (int k = 0; k < 2; k++) {
    assert_int_equal(hone_plan_create(engine, k ? b : a, NULL, &plan[k], NULL), HONE_OK);
    assert_int_equal(hone_context_create(plan[k], &context[k], NULL), HONE_OK);
  }
  for (int i = 0; i < n; i++) {
    hone_data data;
    assert_int_equal(
        hone_data_for_input(a, 0, hone_plan_input_desc(plan[0], 0), seed + step * (uint64_t)i, &data, NULL),
        HONE_OK);
    const hone_tensor *in[] = {&data.tensor};
    for (int k = 0; k < 2; k++) assert_int_equal(hone_context_run(context[k], in, NULL, NULL), HONE_OK);
    const float *x = hone_context_output(context[0], 0)->data, *y = hone_context_output(context[1], 0)->data;
    for (int64_t k = 0; k < hone_desc_count(&hone_context_output(context[0], 0)->desc); k++) {
      signal += (double)x[k] * x[k];
      noise += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
    }
    hone_data_free(&data);
  }
  for (int k = 0; k < 2; k++) {
    hone_context_destroy(context[k]);
    hone_plan_destroy(plan[k]);
  }
  hone_engine_destroy(engine);
  return noise / signal;
}

/* The channels of two convolutions differ a thousandfold, which one scale for all of them cannot hold. */
static void test_guilty_layer(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 4);
  mixed all = mix(m, (hone_mixed_options){.metric = HONE_MIXED_SQNR, .max_drop = 1, .untimed = true});
  const double budget = 0.001;
  assert_true(all.report.held_out.drop > budget);
  mixed x = mix(m, (hone_mixed_options){.metric = HONE_MIXED_SQNR, .max_drop = budget, .untimed = true});
  assert_int_equal(x.report.verdict, HONE_MIXED_MET);
  assert_true(x.report.returned > 0 && x.report.narrow > 0);
  assert_int_equal(layer(&x, "Gemm", 0)->type, HONE_MIXED_INT8);
  uint32_t wide = 0;
  double guilty = 0, good = 0;
  for (uint32_t i = 0; i < x.report.n_layers; i++) {
    const hone_mixed_layer *l = &x.report.layer[i];
    if (l->unit < 0) continue;
    const bool back = l->reason == HONE_MIXED_ERROR || l->reason == HONE_MIXED_HELD_OUT;
    assert_int_equal(back, l->type == HONE_MIXED_F32);
    wide += back;
    if (!isnan(l->noise[HONE_MIXED_INT8]))
      *(back ? &guilty : &good) = fmax(back ? guilty : good, l->noise[HONE_MIXED_INT8]);
  }
  assert_true(wide > 0 && wide < 5);
  assert_true(guilty > 10 * good);
  /* The budget, measured here, on the seeds that chose nothing: every second from the second on. */
  const double held = noise_on(m, x.model, 2, 2, 16);
  assert_true(held <= budget);
  assert_true(fabs(held - x.report.held_out.drop) <= 1e-3 * held);
  mixed_free(&all);
  mixed_free(&x);
  hone_model_release(m);
}

static void test_budgets(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  static const hone_mixed_metric metrics[] = {HONE_MIXED_COSINE, HONE_MIXED_SQNR};
  for (int i = 0; i < 2; i++) {
    mixed none = mix(m, (hone_mixed_options){.metric = metrics[i], .max_drop = 0, .untimed = true});
    assert_int_equal(none.report.verdict, HONE_MIXED_NO_BUDGET);
    assert_int_equal(layer(&none, "Conv", 0)->type, HONE_MIXED_F32);
    assert_int_equal(layer(&none, "Conv", 0)->reason, HONE_MIXED_ERROR);
    mixed tiny = mix(m, (hone_mixed_options){.metric = metrics[i], .max_drop = 1e-12, .untimed = true});
    assert_int_equal(tiny.report.verdict, HONE_MIXED_NO_BUDGET);
    mixed large = mix(m, (hone_mixed_options){.metric = metrics[i], .max_drop = 1, .untimed = true});
    assert_int_equal(large.report.verdict, HONE_MIXED_MET);
    assert_int_equal(large.report.returned, 0);
    assert_int_equal(layer(&large, "Conv", 0)->type, HONE_MIXED_INT8);
    assert_int_equal(layer(&large, "Conv", 0)->reason, HONE_MIXED_NO_TIME);
    assert_true(large.report.held_out.samples == 16 && large.report.chosen.samples == 16);
    assert_true(large.report.held_out.drop > 0 && large.report.held_out.drop < 0.1);
    mixed_free(&none);
    mixed_free(&tiny);
    mixed_free(&large);
  }
  hone_model_release(m);
}

/* With time: whatever this processor is, each figure follows from the others. */
static void test_timed(void **state) {
  (void)state;
  hn_model *m = residual_network(4, 1);
  mixed x = mix(m, (hone_mixed_options){.metric = HONE_MIXED_COSINE, .max_drop = 0.1});
  const hone_mixed_report *r = &x.report;
  assert_true(r->verdict != HONE_MIXED_NO_BUDGET);
  assert_int_equal(r->timed, r->verdict != HONE_MIXED_NO_GAIN);
  if (r->verdict == HONE_MIXED_MET) assert_true(r->high < 0 && r->after_ms > 0);
  if (r->verdict == HONE_MIXED_SLOWER) assert_true(r->high >= 0);
  for (uint32_t i = 0; i < r->n_layers; i++) {
    const hone_mixed_layer *l = &r->layer[i];
    if (l->reason == HONE_MIXED_NOT_FASTER) assert_int_equal(l->type, HONE_MIXED_F32);
    if (l->reason == HONE_MIXED_FASTER) assert_true(l->ms[l->type] < l->ms[HONE_MIXED_F32]);
    if (l->unit >= 0 && strcmp(l->op_type, "Conv") == 0) assert_true(l->ms[HONE_MIXED_F32] > 0);
    assert_true((l->unit < 0) == (l->reason == HONE_MIXED_NO_FORM));
  }
  mixed_free(&x);
  hone_model_release(m);
}

/* ---- the half held out */

/* 16 samples; those held out are so many times as large. */
static const char *halves(const char *name, float factor) {
  static char path[512];
  const char *folder = getenv("TMPDIR");
  const int64_t dims[] = {16, 3, 12, 12}, one = 3 * 12 * 12;
  hone_tensor t = {.desc = hone_desc(HONE_DTYPE_F32, 4, dims)};
  unsigned seed = 3;
  float *v = t.data = malloc((size_t)(16 * one) * sizeof *v);
  for (int64_t i = 0; i < 16 * one; i++) v[i] = normal(&seed) * (i / one % 2 ? factor : 1);
  snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "/tmp", name);
  assert_int_equal(hone_data_save_npy(&t, path, NULL), HONE_OK);
  free(v);
  return path;
}

/* Ranges come from the other half, so they cut off what is held out, and no layer may be narrow. */
static void test_held_out(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  const hone_mixed_options o = {.metric = HONE_MIXED_SQNR, .max_drop = 0.001, .untimed = true};
  hone_mixed_options same = o, other = o;
  same.quantize.calib = halves("same.npy", 1);
  mixed x = mix(m, same);
  assert_int_equal(x.report.verdict, HONE_MIXED_MET);
  other.quantize.calib = halves("other.npy", 30);
  mixed y = mix(m, other);
  assert_true(y.report.all_narrow <= 0.001);
  assert_int_equal(y.report.verdict, HONE_MIXED_NO_BUDGET);
  assert_true(y.report.held_out.drop > 0.001 && y.report.held_back > 0);
  assert_int_equal(layer(&y, "Conv", 0)->reason, HONE_MIXED_HELD_OUT);
  mixed_free(&x);
  mixed_free(&y);
  hone_model_release(m);
}

/* ---- refusals */

static hone_error refused(hn_model *m, hone_mixed_options o, hone_status want, const char *said) {
  hone_model *out = NULL;
  hone_mixed_report report;
  hone_error e = {0};
  o.quantize.threads = 1;
  assert_int_equal(hone_mix(m, &o, &out, &report, &e), want);
  if (!strstr(e.what, said)) fail_msg("%s", e.what);
  assert_null(out);
  hone_mixed_report_free(&report);
  return e;
}

static void test_refused(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  hone_mixed_options o = {
      .metric = HONE_MIXED_SQNR, .max_drop = 2, .untimed = true, .quantize.calib = "random"};
  assert_non_null(strstr(refused(m, o, HONE_ERROR_USAGE, "between 0 and 1").hint, "30 dB"));
  o.max_drop = NAN;
  refused(m, o, HONE_ERROR_USAGE, "between 0 and 1");
  o.max_drop = -0.1;
  refused(m, o, HONE_ERROR_USAGE, "between 0 and 1");
  o = (hone_mixed_options){.metric = HONE_MIXED_TOP1, .max_drop = 0.1, .quantize.calib = "random"};
  refused(m, o, HONE_ERROR_USAGE, "labelled data");
  o.metric = (hone_mixed_metric)77;
  refused(m, o, HONE_ERROR_USAGE, "metric");
  o.metric = HONE_MIXED_COSINE;
  o.quantize.target = HONE_QUANTIZE_TENSORRT;
  assert_non_null(strstr(refused(m, o, HONE_ERROR_USAGE, "say nothing of tensorrt").hint, "untimed"));
  o.quantize.target = HONE_QUANTIZE_HONE;
  o.quantize.calib = NULL;
  refused(m, o, HONE_ERROR_USAGE, "needs samples");
  o.quantize.calib = write_samples("few.npy", 4, (const int64_t[]){7, 3, 12, 12}, 1, 0, 1);
  const hone_error e = refused(m, o, HONE_ERROR_INPUT, "too few samples");
  assert_string_equal(e.got, "7");
  assert_string_equal(e.expected, "at least 8");
  assert_non_null(strstr(e.where, "few.npy"));
  hone_model_release(m);
}

static uint32_t calls, stop_at;
static bool counts(void *arg, const char *what, uint32_t done, uint32_t total) {
  (void)arg, (void)what, (void)done, (void)total;
  return ++calls != stop_at;
}

static bool any_ranges_left(void) {
  const char *folder = getenv("TMPDIR");
  DIR *dir = opendir(folder && *folder ? folder : "/tmp");
  bool any = false;
  assert_non_null(dir);
  for (const struct dirent *d; (d = readdir(dir));) any |= strncmp(d->d_name, "hone-ranges-", 12) == 0;
  closedir(dir);
  return any;
}

/* At each of the places where it may be stopped, with nothing left behind. */
static void test_stopped(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 4);
  const hone_watch watch = {.progress = counts};
  hone_mixed_options o = {.metric = HONE_MIXED_SQNR,
                          .max_drop = 0.001,
                          .untimed = true,
                          .quantize.calib = "random",
                          .quantize.samples = 8,
                          .watch = &watch};
  calls = stop_at = 0;
  mixed x = mix(m, o);
  mixed_free(&x);
  const uint32_t all = calls;
  assert_true(all > 20);
  for (uint32_t i = 1; i < all; i += 7) {
    calls = 0;
    stop_at = i;
    refused(m, o, HONE_ERROR_CANCELLED, "");
  }
  const char *folder = getenv("TMPDIR");
  if (folder && *folder) assert_false(any_ranges_left()); /* else others' files may lie there */
  hone_model_release(m);
}

/* ---- a file that is bf16 in part */

/* Two products: only the one whose weights are bf16 is. */
static hn_model *two_products(void) {
  hn_model *m = net_begin();
  const int64_t square[] = {64, 64};
  hn_value *x = net_input(m, "x", HONE_DTYPE_F32, 2, (const int64_t[]){8, 64});
  hn_value *first = net_op(m, "Gemm", (hn_value *[]){x, net_weights(m, 2, square, 1)}, 2);
  hn_value *relu = net_op(m, "Relu", &first, 1);
  net_finish(m, net_op(m, "Gemm", (hn_value *[]){relu, net_weights(m, 2, square, 2)}, 2));
  return m;
}

static void test_bf16_in_part(void **state) {
  (void)state;
  hn_model *m = two_products();
  hone_model *q = NULL;
  hone_quantize_report report;
  hone_engine *engine = NULL;
  hone_plan *plan = NULL;
  const hone_node *second = NULL;
  for (const hone_node *n = m->graph->first; n; n = n->next)
    if (strcmp(n->op_type, "Gemm") == 0) second = n;
  assert_non_null(second);
  const hone_quantize_options o = {
      .to = HONE_QUANTIZE_BF16, .only = (const char *const[]){second->name}, .n_only = 1};
  assert_int_equal(hone_quantize(m, &o, &q, &report, NULL), HONE_OK);
  assert_int_equal(report.quantized, 1);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &engine, NULL), HONE_OK);
  assert_int_equal(hone_plan_create(engine, q, NULL, &plan, NULL), HONE_OK);
  assert_string_equal(hone_plan_precision(plan), "bf16");
  const hn_plan *p = hn_api_plan(plan);
  uint32_t wide = 0, narrow = 0;
  for (size_t i = 0; i < p->steps.len; i++) {
    const hone_step *s = &p->steps.ptr[i].desc;
    if (s->cost.macs <= 0) continue;
    wide += s->math == HONE_MATH_F32;
    narrow += s->math == HONE_MATH_BF16;
  }
  assert_int_equal(wide, 1);
  assert_int_equal(narrow, 1);
  hone_plan_destroy(plan);
  hone_engine_destroy(engine);
  hone_quantize_report_free(&report);
  hone_model_release(q);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ladders),  cmocka_unit_test(test_guilty_layer),
                                     cmocka_unit_test(test_budgets),  cmocka_unit_test(test_timed),
                                     cmocka_unit_test(test_held_out), cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_stopped),  cmocka_unit_test(test_bf16_in_part)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
