/* Generation: sequences that run together, and join and leave at any step, get the tokens that each gets
 * alone by plain runs. */
#include "generate_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/serve/generate.h"
#include "base/fault.h"

#include <string.h>

static void short_prompts(void) { prompts.least = 1, prompts.more = 40, prompts.room = CONTEXT; }
static void long_prompts(void) { prompts.least = 150, prompts.more = 151, prompts.room = LONGEST; }

static uint64_t moved; /* sequences from slot to slot, in all tests */

/* How many tokens the sequences get: enough of them to move between slots. What is watched, or emulated,
 * takes its time for each token, and sees in half of them what there is to see. */
static uint32_t tokens_of(uint32_t k) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const bool few = true;
#else
  const bool few = device != NULL;
#endif
  return few ? 12 + k * 11 % 14 : 20 + k * 11 % 30;
}

/* How many of the sequences, of which each comes some rounds after the one before, get other tokens than
 * alone. */
static uint32_t differing(const decoder_size *z, hone_served_options o, uint32_t pace) {
  o.context = prompts.room;
  hone_server *s = serve(z, NULL, o);
  struct hn_generator *g = s->model[0]->generator;
  if (!g) fail_msg("%s", s->model[0]->no_decoder.text);
  hone_server_response r[ASKED];
  int64_t want[MOST], got[MOST];
  uint32_t wrong = 0;
  hn_generator_rounds(g, 0);
  for (uint32_t k = 0; k < ASKED; k++) {
    r[k] = open_stream(s, k, tokens_of(k));
    assert_int_equal(r[k].status, 200);
    hn_generator_rounds(g, pace * (1 + k % 3));
  }
  hn_generator_rounds(g, UINT64_MAX);
  for (uint32_t k = 0; k < ASKED; k++) {
    const uint32_t most = tokens_of(k);
    assert_int_equal(read_all(&r[k], got), most);
    alone(z, k, most, want);
    wrong += memcmp(want, got, most * sizeof *want) != 0;
  }
  /* Runs of prompts have one sequence each: those of tokens have several. */
  if (o.sequences != 1 && !z->single)
    if (metric(s, "hone_samples_total{") < 1.4 * metric(s, "hone_runs_total{")) {
      const char *why = "";
      hn_slots_share(hn_generator_slots(g), &why);
      fail_msg("pace %u: %g in %g %s", pace, metric(s, "hone_samples_total{"), metric(s, "hone_runs_total{"),
               why);
    }
  assert_true(metric(s, "hone_cache_blocks_used{") == 0);
  moved += hn_slots_moved(hn_generator_slots(g));
  hone_server_destroy(s);
  return wrong;
}

/* ------------------------------------------------------------------ tests */

static void together_is_alone(void **state) {
  (void)state;
  decoder_size z = small;
  for (uint32_t pace = 0; pace < 4; pace++)
    if (!device || pace == 2) assert_int_equal(differing(&z, (hone_served_options){0}, pace), 0);
  if (!device) { /* one that is emulated takes its time */
    assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 2), 0);
    assert_int_equal(differing(&z, (hone_served_options){.sequences = 1}, 1), 0);
    z.places = true;
    assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
    z.places = false, z.lengths = true;
    assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
    z.kv_heads = 4;
    assert_int_equal(differing(&z, (hone_served_options){0}, 3), 0);
  }
  z = small, z.single = true; /* from token to token, but each by itself */
  assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
  z = small, z.halves = true, z.heads = 8; /* weights that are large enough to say the precision */
  assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
  assert_true(moved > 0); /* or this test saw none of it */
}

/* Prompts that a round does not read to their end, while others are at their tokens. */
static void long_prompts_are_read_beside_others(void **state) {
  (void)state;
  decoder_size z = small;
  z.positions = LONGEST;
  long_prompts();
  for (uint32_t pace = 1; pace < 4; pace++)
    assert_int_equal(differing(&z, (hone_served_options){0}, pace), 0);
  z.lengths = true;
  assert_int_equal(differing(&z, (hone_served_options){0}, 1), 0);
  z.lengths = false, z.places = true;
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 2), 0);
  /* Five of these are read in a round, and a part of the sixth, which is a row of their run. */
  prompts.least = 20, prompts.more = 10;
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 0), 0);
#ifdef HN_FAULTS
  uint32_t wrong = 0;
  hn_fault_set("generate_nobody_writes_early");
  for (z.seed = 1; z.seed < 30 && !wrong; z.seed++)
    wrong = differing(&z, (hone_served_options){.sequences = 7}, 0);
  hn_fault_set(NULL);
  if (!wrong) fail_msg("a token of nobody's in the place of another is not seen");
#endif
  short_prompts();
}

/* Caches to which new tokens are joined, of one length for all that run together. */
static void joined_caches_may_have_holes(void **state) {
  (void)state;
  decoder_size z = small;
  z.form = DECODER_CONCAT;
  if (device) { /* one that is emulated takes its time */
    assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
    z.halves = true, z.way = DECODER_PLACES_OF_MASK;
    assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
    z = small, z.form = DECODER_CONCAT, z.single = true, z.places = true;
    assert_int_equal(differing(&z, (hone_served_options){.sequences = 3}, 1), 0);
    z = small, z.form = DECODER_ATTENTION, z.halves = true;
    assert_int_equal(differing(&z, (hone_served_options){0}, 3), 0);
    return;
  }
  for (uint32_t pace = 0; pace < 4; pace++)
    assert_int_equal(differing(&z, (hone_served_options){0}, pace), 0);
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 2), 0);
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 1}, 1), 0);
  z.way = DECODER_PLACES_OF_MASK, z.kv_heads = 4;
  assert_int_equal(differing(&z, (hone_served_options){0}, 1), 0);
  z = small, z.form = DECODER_CONCAT, z.single = true, z.places = true;
  assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
  z.single = false, z.halves = true;
  assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
  z = small, z.form = DECODER_ATTENTION;
  assert_int_equal(differing(&z, (hone_served_options){0}, 2), 0);
  assert_int_equal(differing(&z, (hone_served_options){0}, 3), 0);
  z = small, z.form = DECODER_CONCAT, z.positions = LONGEST;
  long_prompts();
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 1), 0);
  prompts.least = 20, prompts.more = 10;
  assert_int_equal(differing(&z, (hone_served_options){.sequences = 7}, 0), 0);
  short_prompts();
}

/* Numbers that are none, which a sequence leaves, do not reach who has its place after it. */
static uint32_t after_poison(void) {
  decoder_size z = small;
  z.form = DECODER_CONCAT, z.poison = true, z.vocabulary = 4099; /* ids at random are others */
  hone_server *s = serve(&z, NULL, (hone_served_options){.sequences = 1});
  int64_t want[MOST], got[256];
  wants(s, "/v2/models/net/generate", "{\"input_ids\":[1,4098,3,4]}", 500,
        "the model's logits are no numbers");
  asked a = {.server = s, .k = 0, .most = 20};
  ask(&a);
  const bool good = a.status == 200 && ids_of(a.text, got) == 20;
  alone(&z, 0, 20, want);
  hone_server_destroy(s);
  return !good || memcmp(got, want, 20 * sizeof *want) != 0;
}

static void a_hole_is_empty(void **state) {
  (void)state;
  assert_int_equal(after_poison(), 0);
}

static void caches_may_be_written_at_an_index(void **state) {
  (void)state;
  decoder_size z = small;
  z.form = DECODER_SCATTER;
  for (uint32_t pace = 0; pace < 4; pace++)
    if (!device || pace == 2) assert_int_equal(differing(&z, (hone_served_options){0}, pace), 0);
  z.places = true;
  assert_int_equal(differing(&z, (hone_served_options){.sequences = device ? 3 : 7}, 2), 0);
}

/* The same from threads, as requests come. */
static void threads_get_what_is_theirs(void **state) {
  (void)state;
  hone_server *s = serve(&small, NULL, (hone_served_options){0});
  asked a[ASKED];
  int64_t want[MOST], got[256];
  for (uint32_t k = 0; k < ASKED; k++) a[k] = (asked){.server = s, .k = k, .most = 40, .after_us = k * 300};
  ask_all(a, ASKED);
  for (uint32_t k = 0; k < ASKED; k++) {
    if (a[k].status != 200) fail_msg("%d %s", a[k].status, a[k].text);
    assert_int_equal(ids_of(a[k].text, got), 40);
    alone(&small, k, 40, want);
    assert_memory_equal(got, want, 40 * sizeof *want);
  }
  hone_server_destroy(s);
}

/* Where the room is no input the caches are written where they lie. */
static void caches_stay_where_they_are(void **state) {
  (void)state;
  for (int halves = 0; halves < 2; halves++) {
    decoder_size z = small;
    z.halves = halves;
    hone_model *m = decoder_build(&z);
    plain p;
    plain_open(m, 1, CONTEXT, CONTEXT, &p);
    for (uint32_t i = 1; i < hone_plan_outputs(p.plan); i++)
      assert_true(hone_plan_output_over(p.plan, i) >= 0);
    plain_close(&p);
    hone_model_release(m);
  }
}

/* Work that a device was given once for a slot is not captured again for each token, though the next run is
 * that of another slot. */
static void captured_work_is_kept(void **state) {
  (void)state;
  if (!device) skip();
  decoder_size z = small;
  z.single = true;
  int64_t got[MOST], want[MOST];
  hone_server *s = serve(&z, NULL, (hone_served_options){.sequences = 3});
  struct hn_generator *g = s->model[0]->generator;
  uint64_t captured = 0;
  for (int wave = 0; wave < 2; wave++) {
    hone_server_response r[3];
    hn_generator_rounds(g, 0);
    for (uint32_t k = 0; k < 3; k++) r[k] = open_stream(s, k, 9);
    hn_generator_rounds(g, 3); /* all prompts are read, and each has a token of a run of one */
    const uint64_t now = hn_slots_captured(hn_generator_slots(g));
    assert_true(wave ? now == captured : now > 3);
    hn_generator_rounds(g, UINT64_MAX);
    for (uint32_t k = 0; k < 3; k++) {
      assert_int_equal(read_all(&r[k], got), 9);
      alone(&z, k, 9, want);
      assert_memory_equal(got, want, 9 * sizeof *want);
    }
    captured = hn_slots_captured(hn_generator_slots(g));
    assert_int_equal(captured, now);
  }
  hone_server_destroy(s);
}

static void faults_are_seen(void **state) {
  (void)state;
#ifndef HN_FAULTS
  skip();
#else
  if (device) { /* one that is emulated takes its time */
    decoder_size z = small;
    z.form = DECODER_CONCAT;
    hn_fault_set("generate_hole_is_seen");
    const uint32_t wrong = differing(&z, (hone_served_options){0}, 2);
    hn_fault_set("generate_hole_is_left");
    const uint32_t left = after_poison();
    hn_fault_set(NULL);
    assert_true(wrong > 0 && left > 0);
    return;
  }
  static const char *const faults[] = {"generate_slot_length", "generate_slot_taken_early"};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    hn_fault_set(faults[i]);
    const uint32_t wrong = differing(&small, (hone_served_options){0}, 2);
    hn_fault_set(NULL);
    if (!wrong) fail_msg("%s", faults[i]);
  }
  static const char *const joined[] = {"generate_hole_is_seen", "generate_joined_is_elsewhere"};
  decoder_size z = small;
  z.form = DECODER_CONCAT;
  for (size_t i = 0; i < sizeof joined / sizeof *joined; i++) {
    hn_fault_set(joined[i]);
    const uint32_t wrong = differing(&z, (hone_served_options){0}, 2);
    hn_fault_set(NULL);
    if (!wrong) fail_msg("%s", joined[i]);
  }
  hn_fault_set("generate_hole_is_left");
  const uint32_t left = after_poison();
  hn_fault_set(NULL);
  assert_int_equal(left, 1);
#endif
}

int main(int argc, char **argv) {
  if (argc > 1) device = argv[1];
  if (argc > 2) cmocka_set_test_filter(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(together_is_alone),
      cmocka_unit_test(long_prompts_are_read_beside_others),
      cmocka_unit_test(joined_caches_may_have_holes),
      cmocka_unit_test(a_hole_is_empty),
      cmocka_unit_test(caches_may_be_written_at_an_index),
      cmocka_unit_test(threads_get_what_is_theirs),
      cmocka_unit_test(caches_stay_where_they_are),
      cmocka_unit_test(captured_work_is_kept),
      cmocka_unit_test(faults_are_seen),
  };
  return cmocka_run_group_tests(tests, start, end);
}
