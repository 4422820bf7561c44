/* What findings say that hone's own commands do about it. */
#include "rules/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
// clang-format off
#include <cmocka.h>
// clang-format on

static bool says(const hone_finding *finding, const char *words) {
  for (size_t i = 0; finding && i < finding->command_count; i++)
    if (strstr(finding->commands[i], words)) return true;
  return false;
}

/* Gaps are filled by another run, unless there are several already. On a processor nothing is pinned. */
static void gaps_are_filled_by_streams(void **state) {
  (void)state;
  for (int several = 0; several < 2; several++) {
    fixture f = fixture_healthy();
    f.gap_ms = 0.3;
    f.meta.model = "m.onnx";
    f.meta.streams = several ? 2 : 1;
    fixture_diagnose(&f);
    const hone_finding *finding = fixture_finding(&f, "scheduling_gaps");
    assert_non_null(finding);
    assert_int_equal(says(finding, "hone bench m.onnx --streams 2"), !several);
    assert_false(says(finding, "--pinned"));
    fixture_free(&f);
  }
}

static void stages_around_go_into_a_pipeline(void **state) {
  (void)state;
  for (int behind = 0; behind < 2; behind++) {
    fixture f = fixture_healthy();
    *(behind ? &f.post_ms : &f.pre_ms) = 8;
    f.meta.model = "m.onnx";
    fixture_diagnose(&f);
    assert_true(says(fixture_finding(&f, behind ? "slow_post" : "slow_pre"), "hone pipeline m.onnx"));
    fixture_free(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gaps_are_filled_by_streams),
                                     cmocka_unit_test(stages_around_go_into_a_pipeline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
