/* Seeded faults in recording, sweep and closure (HONE_FAULT, test builds): each must make the profile doubt
 * itself. */
#include "base/fault.h"

#include <hone/insight.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RUNS = 4, STEPS = 6 };

/* Two lanes: the main one with a layout change, a nested step, host work and waiting, another with a step and
 * a copy that overlap. Times in microseconds from the start of an iteration. */
static const struct {
  int lane, step;
  hone_span_kind kind;
  int from, to;
} plan[] = {
    {0, 0, HONE_SPAN_REFORMAT, 20, 60},    {0, 1, HONE_SPAN_KERNEL, 60, 300},
    {0, 2, HONE_SPAN_KERNEL, 310, 600},    {0, 3, HONE_SPAN_KERNEL, 400, 450},
    {0, -1, HONE_SPAN_HOST, 600, 640},     {1, 4, HONE_SPAN_KERNEL, 200, 500},
    {1, -1, HONE_SPAN_COPY_H2D, 550, 700}, {0, 5, HONE_SPAN_KERNEL, 700, 900},
    {0, -1, HONE_SPAN_SYNC, 900, 970},
};

static hone_facts *record(void) {
  hone_error error = {0};
  hone_span_buffer buffer;
  hone_facts *facts = hone_facts_create();
  char name[STEPS][8];
  assert_non_null(facts);
  assert_int_equal(hone_span_buffer_init(&buffer, 100, &error), HONE_OK);
  hone_facts_add_roof(facts, &(hone_roof){"f32", 1, 100, 0, 0});
  for (int i = 0; i < STEPS; i++) {
    snprintf(name[i], sizeof name[i], "s%d", i);
    hone_facts_add_step(
        facts,
        &(hone_step_fact){.name = name[i], .op_type = "Conv", .flops = i ? 3000000 : 0, .anchor_node = -1});
  }
  for (int run = 0; run < RUNS; run++) {
    int64_t start = 5000000 + run * 2000000;
    double slow = 1 + 0.02 * run;
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++)
      hone_span_push(&buffer, plan[i].kind, plan[i].lane, run, plan[i].step,
                     start + (int64_t)(plan[i].from * 1000 * slow),
                     start + (int64_t)(plan[i].to * 1000 * slow), 0, NULL);
    int64_t end = start + (int64_t)(1000000 * slow);
    hone_span_push(&buffer, HONE_SPAN_RUN, 0, run, -1, start, end, 0, NULL);
    hone_facts_add_wall(facts, run, end - start + 2000);
  }
  hone_facts_add_buffer(facts, &buffer);
  hone_span_buffer_free(&buffer);
  return facts;
}

/* The doubt about a recording made with this fault; the text lives in `text`. NULL: none. */
static const char *doubt_with(const char *fault, char text[400]) {
  hone_error error = {0};
  hone_profile *profile = NULL;
  hn_fault_set(fault);
  hone_facts *facts = record();
  hone_status status = hone_profile_create(facts, NULL, &profile, &error);
  hn_fault_set(NULL);
  snprintf(text, 400, "%s", status ? error.what : profile->doubt ? profile->doubt : "");
  hone_profile_destroy(profile);
  hone_facts_destroy(facts);
  return text[0] ? text : NULL;
}

static void sound_record_has_no_doubt(void **state) {
  (void)state;
  char text[400];
  if (doubt_with(NULL, text)) fail_msg("%s", text);
}

static void every_fault_is_caught(void **state) {
  (void)state;
  static const char *const faults[] = {"record_lost_step",
                                       "record_lost_run",
                                       "record_twice",
                                       "record_next_iteration",
                                       "record_late_end",
                                       "record_short_run",
                                       "record_slow_clock",
                                       "record_wrong_step",
                                       "record_microseconds",
                                       "wall_microseconds",
                                       "wall_lost",
                                       "wall_same_iteration",
                                       "sweep_owners_do_not_share",
                                       "sweep_outer_keeps_time",
                                       "sweep_first_gap",
                                       "sweep_window",
                                       "layers_lost_span",
                                       "layers_median_as_mean",
                                       "layers_one_row",
                                       "closure_reformats",
                                       "closure_sync_is_host",
                                       "closure_residual_hidden",
                                       "closure_longest_gap_only"};
  char text[400];
  size_t caught = 0, n = sizeof faults / sizeof *faults;
  for (size_t i = 0; i < n; i++) {
    const char *doubt = doubt_with(faults[i], text);
    printf("%-28s %s\n", faults[i], doubt ? doubt : "NOT CAUGHT");
    caught += doubt != NULL;
  }
  assert_int_equal(caught, n);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sound_record_has_no_doubt),
                                     cmocka_unit_test(every_fault_is_caught)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
