/* Why a model of 8 bits is not faster, of real quantised models and real runs: which layers stayed float and
 * why. What is asserted follows from the graph alone; how long it took does not matter. */
#include "samples.h"

#include <hone/hone.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

typedef struct explained {
  hone_engine *engine;
  hone_plan *plan;
  hone_context *context;
  hone_tensor in;
  float data[3 * 12 * 12];
  hone_recording record;
  hone_findings *findings;
} explained;

/* Speaks of everything, however little it costs. */
static hone_findings *diagnose(const hone_profile *p) {
  hone_error e = {0};
  hone_findings *findings = NULL;
  hone_thresholds *t = hone_thresholds_create();
  static const char *const all[] = {"min_gain=0", "quant_extra=0", "merge_share=1000"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    assert_int_equal(hone_thresholds_parse(t, all[i], &e), HONE_OK);
  assert_int_equal(hone_diagnose(p, &(hone_diagnose_options){.thresholds = t}, &findings, &e), HONE_OK);
  hone_thresholds_destroy(t);
  return findings;
}

static void explain(explained *x, const hone_model *model) {
  hone_error e = {0};
  *x = (explained){.in = {.data = NULL}};
  unsigned seed = 5;
  for (size_t i = 0; i < sizeof x->data / sizeof *x->data; i++) x->data[i] = normal(&seed);
  assert_int_equal(hone_engine_create(&(hone_engine_options){.threads = 1}, &x->engine, &e), HONE_OK);
  assert_int_equal(
      hone_plan_create(x->engine, (hone_model *)model, &(hone_plan_options){.level = 2}, &x->plan, &e),
      HONE_OK);
  assert_int_equal(hone_context_create(x->plan, &x->context, &e), HONE_OK);
  x->in = (hone_tensor){.desc = *hone_plan_input_desc(x->plan, 0), .data = x->data};
  const hone_tensor *in[] = {&x->in};
  const hone_subject subject = {
      .engine = x->engine, .plan = x->plan, .context = x->context, .in = in, .device = "cpu", .level = 2};
  if (hone_subjects_record(&subject, 1, &(hone_recording_options){.warmups = 1, .runs = 3}, &x->record, &e) !=
      HONE_OK)
    fail_msg("%s: %s", e.where, e.what);
  x->findings = diagnose(x->record.profile);
}

static void explained_free(explained *x) {
  hone_findings_destroy(x->findings);
  hone_recording_free(&x->record);
  hone_context_destroy(x->context);
  hone_plan_destroy(x->plan);
  hone_engine_destroy(x->engine);
}

static const hone_part *part(const explained *x, const char *name) {
  for (size_t i = 0; i < x->findings->count; i++)
    if (strcmp(x->findings->items[i].id, "quantisation_without_gain") == 0)
      for (size_t k = 0; k < x->findings->items[i].part_count; k++)
        if (strcmp(x->findings->items[i].parts[k].name, name) == 0) return &x->findings->items[i].parts[k];
  return NULL;
}

/* hone quantize places Q and DQ so that no product stays float. */
static void well_placed(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  explained x;
  explain(&x, q.model);
  assert_null(part(&x, "unfused"));
  assert_non_null(part(&x, "conversions")); /* of input and output */
  explained_free(&x);
  quantised_free(&q);
  hone_model_release(m);
}

/* A sum that was left out is an island, with the convolutions before it codes. */
static void skipped_operator(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q =
      quantise(m, &(hone_quantize_options){
                      .calib = "random", .skip = (const char *[]){"Add"}, .n_skip = 1, .threads = 1});
  explained x;
  explain(&x, q.model);
  const hone_part *p = part(&x, "islands");
  assert_non_null(p);
  if (!strstr(p->why, "Add + Relu")) fail_msg("%s", p->why);
  explained_free(&x);
  quantised_free(&q);
  hone_model_release(m);
}

/* Somebody looks at what a convolution makes before it is quantised, and at its weights in f32: the product
 * is one of floats. */
static void badly_placed(void **state) {
  (void)state;
  hn_model *m = residual_network(1, 1);
  quantised q = quantise(m, &(hone_quantize_options){.calib = "random", .threads = 1});
  hone_node *conv = NULL;
  for (hone_node *n = ((hn_model *)q.model)->graph->first; n; n = n->next)
    if (strcmp(n->op_type, "Conv") == 0) conv = n; /* the last one */
  assert_non_null(conv);
  net_output((hn_model *)q.model, conv->out[0]);
  net_output((hn_model *)q.model, conv->in[1]);
  explained x;
  explain(&x, q.model);
  const hone_part *p = part(&x, "unfused");
  assert_non_null(p);
  assert_int_equal(p->layer_count, 1);
  assert_non_null(strstr(p->why, "is an output"));
  assert_non_null(strstr(p->why, p->layers[0]));
  explained_free(&x);
  quantised_free(&q);
  hone_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(well_placed),
      cmocka_unit_test(skipped_operator),
      cmocka_unit_test(badly_placed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
