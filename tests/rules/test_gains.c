/* What findings promise, and what came of it. */
#include "rules/illnesses.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool foretold(fixture *f, hone_forecast *forecast) {
  fixture_diagnose(f);
  return hone_forecast_make(f->profile, forecast);
}

/* Known tactics by what they took, unknown ones by how fast the machine was: the model's half is made good in
 * both. */
static void forecast(void **state) {
  (void)state;
  fixture f = fixture_healthy();
  ill_faster_kernels(&f);
  hone_forecast forecast;
  assert_true(foretold(&f, &forecast));
  /* five convolutions of 2 ms become 1.2 each; 0.8 ms of others and 0.07 between steps stay */
  assert_true(fabs(forecast.before_ms - 10.87) < 0.02);
  assert_true(fabs(forecast.after_ms - 6.87) < 0.02);
  assert_true(fabs(forecast.saved_pct - 100 * 4 / 10.87) < 0.3);
  const hone_finding *finding = fixture_finding(&f, "faster_tactics");
  assert_non_null(finding);
  assert_true(fabs(finding->predicted_saved_pct - forecast.saved_pct) < 0.5);
  fixture_free(&f);
  /* some microseconds of a step's time are its cold start: a change of so little is none */
  for (int i = 0; i < 2; i++) {
    f = fixture_healthy();
    ill_same_kernels(&f);
    f.layers[0].timed_ms = i ? 1.9 : 1.998;
    assert_true(foretold(&f, &forecast));
    assert_true((forecast.unsure_ms > 0) == !i && (forecast.gain_pct == 0) == !i);
    fixture_free(&f);
  }
  /* what was timed on its own takes that, whatever the models say; what was not goes as its kernel does */
  f = fixture_healthy();
  ill_faster_kernels(&f);
  for (int i = 0; i < 4; i++) f.layers[i].timed_ms = 0.9;
  f.layers[4].scaled_ms = 0.9;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.before_ms - forecast.after_ms - 5 * 1.1) < 0.02);
  assert_true(fabs(forecast.seen_pct - 100 * (4 * 0.9 + 0.8) / (5 * 0.9 + 0.8)) < 0.5);
  finding = fixture_finding(&f, "faster_tactics");
  assert_int_equal(finding->basis, HONE_BASIS_MODEL); /* one of five is not timed */
  fixture_free(&f);
  f = fixture_healthy();
  ill_faster_kernels(&f);
  for (int i = 0; i < 5; i++) f.layers[i].timed_ms = 0.9;
  assert_true(foretold(&f, &forecast));
  finding = fixture_finding(&f, "faster_tactics");
  assert_int_equal(finding->basis, HONE_BASIS_MEASURED);
  assert_true(fabs(finding->predicted_saved_pct - forecast.saved_pct) < 0.5);
  fixture_free(&f);
  /* a start of 3 ms that is in the model only: what the model adds is added, not the model's share of it */
  f = fixture_healthy();
  ill_same_kernels(&f);
  for (int i = 0; i < 5; i++) f.layers[i].model_ms = 5, f.layers[i].preview_ms = 5.5;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.after_ms - forecast.before_ms - 2.5) < 0.05);
  fixture_free(&f);
  /* a tensor that is brought into a layout and back: the way there stays, and takes what that way took */
  f = fixture_healthy();
  fixture_layer *there = fixture_add(&f, "x", "Reformat", 1), *back = fixture_add(&f, "x", "Reformat", 3);
  there->reformat = back->reformat = true;
  there->does = "to pixels", back->does = "to rows";
  ill_same_kernels(&f);
  back->preview_ms = 0;
  assert_true(foretold(&f, &forecast));
  assert_true(fabs(forecast.before_ms - forecast.after_ms - 3) < 0.05);
  fixture_free(&f);
  f = fixture_healthy();
  assert_false(foretold(&f, &forecast));
  fixture_free(&f);
}

/* The prediction is scored against what really happened to the nodes it names. */
static void measured_gain_follows_the_nodes(void **state) {
  (void)state;
  fixture before = fixture_healthy(), after = fixture_healthy();
  ill_unfused(&before);
  ill_one_thread(&before); /* and nobody does anything about that */
  fixture_diagnose(&before);
  fixture_add(&after, "c", "Conv", 1)->mb = 4; /* bn and relu are gone */
  fixture_diagnose(&after);
  hone_error error = {0};
  assert_int_equal(hone_findings_measure(before.findings, before.profile, after.profile, &error), HONE_OK);
  const hone_finding *f = fixture_finding(&before, "unfused_pattern");
  assert_non_null(f);
  assert_true(f->measured);
  assert_non_null(fixture_finding(&before, "single_thread"));
  assert_false(fixture_finding(&before, "single_thread")->measured);
  double saved = 1.0 / before.profile->closure.wall_ms;
  assert_true(fabs(f->measured_saved_pct - 100 * saved) < 0.5);
  assert_true(fabs(f->measured_gain_pct - 100 * (1 / (1 - saved) - 1)) < 0.5);
  double all = hone_findings_predict(before.findings, HONE_REMEDY_OPTIMIZER);
  assert_true(fabs(all - f->predicted_gain_pct) < 0.5);
  for (size_t i = 0; i < before.findings->count; i++) /* nobody did what others ask for */
    assert_true(before.findings->items[i].measured ==
                (before.findings->items[i].remedy == HONE_REMEDY_OPTIMIZER));
  fixture_free(&before);
  fixture_free(&after);
}

/* The same network in float decides whether int8 brought anything. */
static void gain_of_int8_against_float(void **state) {
  (void)state;
  fixture before = fixture_healthy(), quick = fixture_healthy(), slow = fixture_healthy();
  fixture_diagnose(&before);
  ill_int8(&quick);
  quick.float_profile = before.profile;
  fixture_diagnose(&quick);
  /* Whoever gives both wants to know: a note. */
  const hone_finding *pays = fixture_finding(&quick, "quantisation_without_gain");
  assert_non_null(pays);
  fixture_complete(pays);
  assert_int_equal(pays->category, HONE_CATEGORY_NOTE);
  assert_true(fixture_evidence(pays, "gain over float") > 100);
  fixture alone = fixture_healthy();
  ill_int8(&alone);
  fixture_diagnose(&alone);
  assert_null(fixture_finding(&alone, "quantisation_without_gain"));
  fixture_free(&alone);
  ill_int8(&slow);
  for (int i = 0; i < 5; i++) slow.layers[i].ms = 1.95;
  slow.float_profile = before.profile;
  slow.no_roofs = true;
  fixture_diagnose(&slow);
  const hone_finding *f = fixture_finding(&slow, "quantisation_without_gain");
  assert_non_null(f);
  assert_true(fabs(fixture_evidence(f, "gain over float") - 2.3) < 0.5);
  assert_non_null(strstr(f->title, "brings only +2 %"));
  /* Slower than float: said so, and what is to be had is float's own time. */
  fixture slower = fixture_healthy();
  ill_int8(&slower);
  for (int i = 0; i < 5; i++) slower.layers[i].ms = 3.9;
  slower.float_profile = before.profile;
  slower.no_roofs = true;
  fixture_diagnose(&slower);
  f = fixture_finding(&slower, "quantisation_without_gain");
  assert_non_null(f ? strstr(f->title, "slower than float") : NULL);
  const double loss = fixture_evidence(f, "gain over float");
  assert_true(loss < -40 && f->basis == HONE_BASIS_MEASURED);
  assert_true(fabs(f->predicted_gain_pct - 100 * (100 / (100 + loss) - 1)) < 1);
  fixture_free(&slower);
  fixture_free(&before);
  fixture_free(&quick);
  fixture_free(&slow);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(forecast),
      cmocka_unit_test(measured_gain_follows_the_nodes),
      cmocka_unit_test(gain_of_int8_against_float),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
