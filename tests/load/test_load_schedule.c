/* Random numbers as libstdc++ makes them, schedules as LoadGen's (both taken from the originals once), and
 * early stopping against LoadGen's tables. */
#include "api/load/early.h"
#include "api/load/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static void test_words(void **state) {
  (void)state;
  hn_mt g;
  hn_mt_seed(&g, 42);
  assert_int_equal(hn_mt_u32(&g), 1608637542u);
  assert_int_equal(hn_mt_u32(&g), 3421126067u);
  /* The standard says what the 10000th number of the default seed is. Seeds count with 32 bits. */
  hn_mt_seed(&g, 5489 + (UINT64_C(7) << 32));
  for (int i = 1; i < 10000; i++) hn_mt_u32(&g);
  assert_int_equal(hn_mt_u32(&g), 4123659995u);
}

static void test_unit(void **state) {
  (void)state;
  hn_mt g;
  hn_mt_seed(&g, 3);
  assert_true(hn_mt_unit(&g) == 0x1.21b06988d0117p-4);
  assert_true(hn_mt_unit(&g) == 0x1.ae0dcd076a926p-1);
  assert_true(hn_mt_unit(&g) == 0x1.f0f63c84a78bcp-4);
}

/* The logarithm is the C library's: its last bit may differ. */
static void test_exponential(void **state) {
  (void)state;
  static const double want[] = {0x1.0e71861ab1ca5p-10, 0x1.92d011a23ddc4p-10, 0x1.f59953960733cp-7,
                                0x1.3eca30397742ep-9};
  hn_mt g;
  hn_mt_seed(&g, 7);
  for (int i = 0; i < 4; i++) assert_true(fabs(hn_mt_exponential(&g, 250) / want[i] - 1) < 4e-16);
}

static void test_below(void **state) {
  (void)state;
  static const uint32_t n[] = {1, 2, 7, 1000, 2147483647}, want[] = {0, 0, 3, 499, 1064665050};
  hn_mt g;
  hn_mt_seed(&g, 9);
  for (int i = 0; i < 5; i++) assert_int_equal(hn_mt_below(&g, n[i]), want[i]);
  assert_int_equal(hn_mt_u32(&g), 32397368u);
  /* Of 3e9 numbers three in ten draws are made again. */
  uint64_t sum = 0;
  hn_mt_seed(&g, 1);
  for (int i = 0; i < 1000; i++) sum += hn_mt_below(&g, 3000000000u);
  assert_int_equal(sum, UINT64_C(1506798492317));
  assert_int_equal(hn_mt_u32(&g), 689030378u);
}

static void test_shuffle(void **state) {
  (void)state;
  static const struct {
    uint32_t n, want[9], next;
  } rows[] = {{1, {0}, 774252441},
              {2, {1, 0}, 293375679},
              {5, {3, 4, 0, 1, 2}, 83645520},
              {8, {5, 0, 1, 2, 6, 7, 3, 4}, 1989508433},
              {9, {6, 4, 8, 1, 2, 7, 5, 3, 0}, 1989508433}};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    uint32_t items[9];
    hn_mt g;
    hn_mt_seed(&g, 11);
    for (uint32_t i = 0; i < rows[r].n; i++) items[i] = i;
    hn_mt_shuffle(&g, items, rows[r].n);
    assert_memory_equal(items, rows[r].want, rows[r].n * sizeof *items);
    assert_int_equal(hn_mt_u32(&g), rows[r].next);
  }
}

/* More than 65535 items are drawn one by one. */
static void test_shuffle_many(void **state) {
  (void)state;
  enum { MANY = 70000 };
  uint32_t *items = malloc(MANY * sizeof *items);
  assert_non_null(items);
  hn_mt g;
  hn_mt_seed(&g, 12);
  for (uint32_t i = 0; i < MANY; i++) items[i] = i;
  hn_mt_shuffle(&g, items, MANY);
  uint64_t hash = UINT64_C(1469598103934665603);
  for (uint32_t i = 0; i < MANY; i++) hash = (hash ^ items[i]) * UINT64_C(1099511628211);
  assert_true(hash == UINT64_C(4432206954238835859));
  assert_int_equal(hn_mt_u32(&g), 3580770321u);
  hn_mt_shuffle(&g, items, 0);
  free(items);
}

static hn_schedule open(hone_load_settings *s) {
  hn_schedule d;
  hone_error error = {0};
  assert_int_equal(hn_schedule_open(s, &d, &error), HONE_OK);
  return d;
}

/* LoadGen 6.0.17, seeds of mlperf.conf: 1000 queries a second of 32 samples for 6 ms. */
static void test_server(void **state) {
  (void)state;
  static const struct {
    uint64_t due;
    uint32_t sample;
  } want[] = {{0, 27}, {1843654, 22}, {2301577, 0}, {3587439, 4}, {4300433, 9}, {4686839, 12}, {6935180, 1}};
  hone_load_settings s;
  hone_load_defaults(HONE_SCENARIO_SERVER, &s);
  s.samples = 32, s.qps = 1000, s.min_duration_ns = 6000000, s.min_queries = 4;
  hn_schedule d = open(&s);
  const size_t n = sizeof want / sizeof *want;
  for (size_t i = 0; i < n; i++) {
    assert_true(hn_schedule_more(&d));
    assert_int_equal(hn_schedule_next(&d), want[i].due);
    assert_int_equal(hn_schedule_sample(&d, 0), want[i].sample);
  }
  assert_false(hn_schedule_more(&d));
  uint64_t count = 0;
  assert_int_equal(hn_schedule_count(&s, &count, NULL), HONE_OK);
  assert_int_equal(count, n);
  hn_schedule_close(&d);
}

/* The same for queries of 8 of 5 samples: round and round. */
static void test_multi(void **state) {
  (void)state;
  static const uint32_t want[3][8] = {
      {2, 0, 1, 4, 3, 2, 0, 1}, {4, 3, 2, 0, 1, 4, 3, 2}, {3, 2, 0, 1, 4, 3, 2, 0}};
  hone_load_settings s;
  hone_load_defaults(HONE_SCENARIO_MULTI, &s);
  s.samples = 5, s.min_queries = 4;
  hn_schedule d = open(&s);
  for (int i = 0; i < 3; i++) {
    assert_true(hn_schedule_more(&d));
    hn_schedule_next(&d);
    for (uint32_t k = 0; k < 8; k++) assert_int_equal(hn_schedule_sample(&d, k), want[i][k]);
  }
  assert_int_equal(d.size, 8);
  hn_schedule_close(&d);
}

static void test_offline(void **state) {
  (void)state;
  hone_load_settings s;
  hone_load_defaults(HONE_SCENARIO_OFFLINE, &s);
  s.samples = 3, s.qps = 200, s.min_duration_ns = 1000000000, s.min_queries = 100;
  hn_schedule d = open(&s);
  assert_int_equal(d.size, 220); /* a tenth more than a second's */
  assert_true(hn_schedule_more(&d));
  assert_int_equal(hn_schedule_next(&d), 0);
  assert_false(hn_schedule_more(&d));
  for (uint32_t k = 0; k < 220; k++) assert_int_equal(hn_schedule_sample(&d, k), d.set[k % 3]);
  hn_schedule_close(&d);
  s.min_queries = 300;
  d = open(&s);
  assert_int_equal(d.size, 300);
  hn_schedule_close(&d);
}

/* What LoadGen prints: queries that a test wants, and how many of the slowest it would leave out. */
static void test_early(void **state) {
  (void)state;
  static const struct {
    uint64_t n;
    double p;
    uint64_t late;
  } rows[] = {{63, 0.9, 0},   {64, 0.9, 1},    {65, 0.9, 1},     {100, 0.9, 3},      {661, 0.9, 48},
              {662, 0.9, 48}, {1000, 0.9, 78}, {5000, 0.9, 450}, {20000, 0.9, 1901}, {661, 0.99, 0},
              {662, 0.99, 1}, {1000, 0.99, 2}, {5000, 0.99, 33}, {0, 0.99, 0},       {1, 0.5, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_int_equal(hn_early_late(rows[i].n, rows[i].p), rows[i].late);
  assert_int_equal(hn_early_in_time(0, 0.99), 459);
  assert_int_equal(hn_early_in_time(1, 0.99), 661);
  assert_int_equal(hn_early_in_time(1, 0.9), 63);
  /* One side of the edge and the other. */
  for (uint64_t t = 0; t < 3000; t += 271) {
    const uint64_t h = hn_early_in_time(t, 0.97);
    assert_true(hn_early_odds(h, t, 0.97) < 0.01);
    assert_true(hn_early_odds(h - 1, t, 0.97) >= 0.01);
  }
}

/* Sums of a small binomial by hand: of 3, 0.9^3 has none late, 3 * 0.1 * 0.9^2 one. */
static void test_odds(void **state) {
  (void)state;
  assert_true(fabs(hn_early_odds(3, 0, 0.9) - 0.729) < 1e-14);
  assert_true(fabs(hn_early_odds(2, 1, 0.9) - 0.972) < 1e-14);
  assert_true(fabs(hn_early_odds(0, 3, 0.9) - 1) < 1e-14);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words),  cmocka_unit_test(test_unit),    cmocka_unit_test(test_exponential),
      cmocka_unit_test(test_below),  cmocka_unit_test(test_shuffle), cmocka_unit_test(test_shuffle_many),
      cmocka_unit_test(test_server), cmocka_unit_test(test_multi),   cmocka_unit_test(test_offline),
      cmocka_unit_test(test_early),  cmocka_unit_test(test_odds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
