/* Which windows of measured peaks count, and which are kept: with a meter of this test's own, whose machine
 * is as busy and as fast as the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/os.h"
#include "cli/process.h"
#include "improve/roofs.h"
#include "temporary.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define ASSERT_NEAR(a, b, within) assert_true(fabs((a) - (b)) <= (within))

enum { PROCESSORS = 4 };

/* A machine: what others take of its processors, and how fast it is, by figure measured. */
typedef struct machine {
  hn_roof_meter meter; /* first */
  double now, busy, own, delay;
  uint32_t opened, closed, rates;
  double others[64]; /* by window, the last one for all that follow */
  size_t n_others;
  double delays;
  double speed;        /* of f32 when nobody disturbs */
  bool blind;          /* the system counts nothing */
  uint32_t stop_after; /* rates; 0: never */
  bool fails;
} machine;

static double others_now(const machine *m) {
  const size_t window = m->rates / HN_ROOF_COUNT;
  return m->n_others ? m->others[window < m->n_others ? window : m->n_others - 1] : 0;
}

static hone_status open_it(hn_roof_meter *meter, const hone_roofs *about, hone_error *error) {
  machine *m = (machine *)meter;
  m->opened++;
  assert_true(about->threads > 0);
  if (!m->fails) return HONE_OK;
  *error = (hone_error){.status = HONE_ERROR_MEMORY};
  return HONE_ERROR_MEMORY;
}

static void close_it(hn_roof_meter *meter) { ((machine *)meter)->closed++; }

/* A tenth of a second, in which others slow it down by what they take. */
static double rate_of(hn_roof_meter *meter, hn_roof_figure figure) {
  machine *m = (machine *)meter;
  const double taken = others_now(m);
  m->rates++;
  m->now += 0.1;
  m->own += 0.1 * PROCESSORS * (1 - taken);
  m->busy += 0.1 * PROCESSORS;
  m->delay += 0.1 * PROCESSORS * m->delays;
  return m->speed * (1 - taken) * (figure == HN_ROOF_f32_gflops ? 1 : 0.1);
}

static void load_of(hn_roof_meter *meter, hn_load *now) {
  const machine *m = (machine *)meter;
  *now = (hn_load){m->now, m->blind ? -1 : m->busy, m->own, m->blind ? -1 : m->delay};
}

/* The first windows are known, and nobody knows how many others there will be. */
static bool go_on(void *arg, uint32_t done, uint32_t total) {
  const machine *m = arg;
  assert_int_equal(total, done < 3 * HN_ROOF_COUNT ? 3 * HN_ROOF_COUNT : 0);
  return !m->stop_after || m->rates < m->stop_after;
}

static machine quiet_machine(double speed) {
  return (machine){.meter = {PROCESSORS, open_it, close_it, rate_of, load_of, 0}, .speed = speed};
}

static hone_roofs measured(machine *m, const hone_roofs_options *o) {
  hone_roofs r;
  hone_error e = {0};
  assert_int_equal(hn_roofs_measure(&m->meter, 0, o, &r, &e), HONE_OK);
  assert_int_equal(m->opened, m->closed);
  assert_int_equal(r.threads, PROCESSORS);
  return r;
}

static char folder[256];

static int new_cache(void **state) {
  (void)state;
  if (!mkdtemp(temporary(folder, sizeof folder, "hone-roofs"))) return -1;
  return setenv("XDG_CACHE_HOME", folder, 1);
}

static int drop_cache(void **state) {
  (void)state;
  char sub[300], path[600];
  snprintf(sub, sizeof sub, "%s/hone", folder);
  DIR *d = opendir(sub);
  for (const struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%.255s", sub, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  if (d) closedir(d);
  rmdir(sub);
  return rmdir(folder);
}

static void a_quiet_machine_is_measured_once(void **state) {
  (void)state;
  machine m = quiet_machine(1000), other = quiet_machine(5);
  hone_roofs r = measured(&m, NULL);
  assert_int_equal(r.windows, 3);
  assert_int_equal(m.rates, 3 * HN_ROOF_COUNT);
  assert_true(r.quiet);
  ASSERT_NEAR(r.f32_gflops, 1000, 1e-9);
  ASSERT_NEAR(r.dram_gbs, 100, 1e-9);
  ASSERT_NEAR(r.spread, 0, 1e-9);
  r = measured(&other, NULL);
  assert_int_equal(other.opened, 0);
  assert_true(r.quiet);
  ASSERT_NEAR(r.f32_gflops, 1000, 1e-6);
  assert_int_equal(r.windows, 3);
  r = measured(&other, &(hone_roofs_options){.again = true});
  ASSERT_NEAR(r.f32_gflops, 5, 1e-9); /* asked for, and the machine is quiet: this is what it is now */
}

static void a_busy_machine_is_not_kept(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    machine m = quiet_machine(1000);
    m.others[0] = 0.5, m.n_others = 1;
    hone_roofs r = measured(&m, NULL);
    assert_int_equal(m.opened, 1); /* the second time, too */
    assert_false(r.quiet);
    assert_true(r.windows > 3);
    assert_true(m.now < 7); /* and then it gives up */
    ASSERT_NEAR(r.others, 0.5, 1e-9);
    ASSERT_NEAR(r.f32_gflops, 500, 1e-9);
  }
}

static void waiting_for_a_processor_is_busy_too(void **state) {
  (void)state;
  machine m = quiet_machine(1000);
  m.delays = 0.3;
  hone_roofs r = measured(&m, NULL);
  assert_false(r.quiet);
  ASSERT_NEAR(r.others, 0, 1e-9);
  ASSERT_NEAR(r.delay, 0.3, 1e-9);
}

static void busy_windows_are_waited_out(void **state) {
  (void)state;
  machine m = quiet_machine(1000), other = quiet_machine(1);
  const double others[] = {0.6, 0.6, 0.2, 0.05, 0.5, 0.01, 0.01};
  memcpy(m.others, others, sizeof others);
  m.n_others = sizeof others / sizeof *others;
  hone_roofs r = measured(&m, NULL);
  assert_int_equal(r.windows, 6); /* two quiet ones */
  assert_true(r.quiet);
  ASSERT_NEAR(r.f32_gflops, 990, 1e-9); /* the best */
  ASSERT_NEAR(r.others, 0.01, 1e-9);    /* in the quietest */
  ASSERT_NEAR(r.spread, (990.0 - 400) / 990, 1e-9);
  r = measured(&other, NULL);
  assert_int_equal(other.opened, 0);
  ASSERT_NEAR(r.spread, (990.0 - 400) / 990, 1e-5);
}

static void a_system_that_counts_nothing_is_believed(void **state) {
  (void)state;
  machine m = quiet_machine(1000);
  m.others[0] = 0.5, m.n_others = 1, m.blind = true;
  hone_roofs r = measured(&m, NULL);
  assert_true(r.quiet);
  assert_int_equal(r.windows, 3);
}

static void time_and_users_end_it(void **state) {
  (void)state;
  machine m = quiet_machine(1000);
  hone_error e = {0};
  hone_roofs r = measured(&m, &(hone_roofs_options){.max_seconds = 0.35});
  assert_int_equal(r.windows, 0);
  assert_false(r.quiet);
  ASSERT_NEAR(r.f32_gflops, 1000, 1e-9); /* there was time for it */
  ASSERT_NEAR(r.dram_gbs, 0, 0);
  m = quiet_machine(1000);
  m.stop_after = 9;
  assert_int_equal(
      hn_roofs_measure(&m.meter, 0, &(hone_roofs_options){.progress = go_on, .progress_arg = &m}, &r, &e),
      HONE_ERROR_CANCELLED);
  assert_int_equal(e.status, HONE_ERROR_CANCELLED);
  assert_int_equal(m.closed, 1);
  assert_int_equal(m.rates, 9);
  m = quiet_machine(7);
  m.fails = true;
  assert_int_equal(hn_roofs_measure(&m.meter, 0, NULL, &r, &e), HONE_ERROR_MEMORY);
  m = quiet_machine(7); /* nothing was kept on the way */
  ASSERT_NEAR(measured(&m, NULL).f32_gflops, 7, 1e-9);
}

static void figures_rise_and_never_fall(void **state) {
  (void)state;
  machine m = quiet_machine(1000), other = quiet_machine(1);
  hone_roofs r = measured(&m, NULL);
  const hone_roofs seen = {.f32_gflops = 1100, .dram_gbs = 20};
  hone_roofs_raise(&r, &seen); /* a kernel was faster */
  ASSERT_NEAR(r.f32_gflops, 1100, 0);
  ASSERT_NEAR(r.dram_gbs, 100, 1e-9);
  assert_true(r.quiet);
  hone_roofs kept = measured(&other, NULL);
  assert_int_equal(other.opened, 0);
  ASSERT_NEAR(kept.f32_gflops, 1100, 1e-6); /* the next run does not meet the same surprise */
  ASSERT_NEAR(kept.dram_gbs, 100, 1e-6);
  hone_roofs_raise(NULL, &seen);
  hone_roofs_raise(&r, NULL);
}

static void what_a_busy_machine_showed_is_raised_and_not_kept(void **state) {
  (void)state;
  machine m = quiet_machine(1000), other = quiet_machine(1);
  m.others[0] = 0.5, m.n_others = 1;
  hone_roofs r = measured(&m, NULL);
  hone_roofs_raise(&r, &(hone_roofs){.f32_gflops = 800});
  ASSERT_NEAR(r.f32_gflops, 800, 0);
  assert_false(r.quiet);
  ASSERT_NEAR(measured(&other, NULL).f32_gflops, 1, 1e-9);
}

static void other_files_are_no_cache(void **state) {
  (void)state;
  machine m = quiet_machine(1000);
  measured(&m, NULL);
  char sub[300], path[600] = "", first[512];
  snprintf(sub, sizeof sub, "%s/hone", folder);
  DIR *d = opendir(sub);
  assert_non_null(d);
  for (const struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.') snprintf(path, sizeof path, "%s/%.255s", sub, e->d_name);
  closedir(d);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(first, sizeof first, f));
  fclose(f);
  static const char *const rests[] = {"", "f32_gflops\n", "f32_gflops x\n", "f32_gflops 1000\ndram_gbs 1\n",
                                      "1000 1 1 1 1 1 1\n"};
  for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s%s", first, rests[i]);
    fclose(f);
    machine again = quiet_machine(3);
    ASSERT_NEAR(measured(&again, NULL).f32_gflops, 3, 1e-9);
    assert_int_equal(again.opened, 1);
  }
}

/* Time that is over when a figure begins: what needs no buffers is measured once, and none are made. */
static void a_meter_ends_when_time_is_up(void **state) {
  (void)state;
  hone_error e = {0};
  hn_roof_meter *meter = hn_roof_meter_new();
  assert_non_null(meter);
  assert_int_equal(meter->open(meter, &(hone_roofs){.threads = 1}, &e), HONE_OK);
  meter->until = 1e-9;
  assert_true(meter->rate(meter, HN_ROOF_f32_gflops) > 0);
  assert_true(meter->rate(meter, HN_ROOF_dram_gbs) == 0);
  meter->until = 0;
  assert_true(meter->rate(meter, HN_ROOF_l1_gbs) > 0);
  meter->close(meter);
  hn_free(meter);
}

/* The processor's own meter: whatever else this machine does, something is measured. */
static void the_processor_has_peaks(void **state) {
  (void)state;
  hone_roofs r;
  hone_error e = {0};
  hn_roof_meter *meter = hn_roof_meter_new();
  assert_non_null(meter);
  assert_int_equal(meter->open(meter, &(hone_roofs){.threads = 1}, &e), HONE_OK);
  assert_true(meter->rate(meter, HN_ROOF_f32_gflops) > 0);
  assert_true(meter->rate(meter, HN_ROOF_l1_gbs) > 0);
  meter->close(meter);
  hn_free(meter);
  assert_int_equal(hone_roofs_measure(1, NULL, NULL, &e), HONE_ERROR_USAGE);
  assert_int_equal(hone_roofs_measure(1, &(hone_roofs_options){.max_seconds = 0.01}, &r, &e), HONE_OK);
  assert_int_equal(r.threads, 1);
}

/* A cache whose peak every layer beats, as one that was measured beside others: the record does not
 * contradict itself, and the cache is mended. */
static void a_beaten_peak_is_measured_again(void **state) {
  (void)state;
  machine m = quiet_machine(0.001);
  m.meter.processors = hn_cpu_count();
  hone_roofs r;
  hone_error e = {0};
  assert_int_equal(hn_roofs_measure(&m.meter, 1, NULL, &r, &e), HONE_OK);
  assert_true(r.quiet && r.threads == 1);
  process p = process_run(
      folder, 0,
      (const char *const[]){"zoo", "mobilenetv2", "-o", "tiny.onnx", "--width", "0.1", "--size", "32", NULL});
  assert_int_equal(p.code, 0);
  process_free(&p);
  p = process_run(folder, 0,
                  (const char *const[]){"profile", "tiny.onnx", "-t", "1", "-n", "5", "--json", NULL});
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  const json_t *roofs = json_object_get(doc, "roofs"), *roof;
  size_t i;
  double f32 = 0;
  json_array_foreach(roofs, i, roof) if (strcmp(json_string_value(json_object_get(roof, "name")), "f32") == 0)
      f32 = json_number_value(json_object_get(roof, "gflops"));
  assert_true(f32 > 0.002);
  const json_t *doubt = json_object_get(json_object_get(doc, "closure"), "doubt");
  if (json_is_string(doubt)) assert_null(strstr(json_string_value(doubt), "peak"));
  json_decref(doc);
  process_free(&p);
  machine other = quiet_machine(1);
  other.meter.processors = hn_cpu_count();
  assert_int_equal(hn_roofs_measure(&other.meter, 1, NULL, &r, &e), HONE_OK);
  assert_int_equal(other.opened, 0);
  assert_true(r.f32_gflops > 0.002);
  char tiny[300];
  snprintf(tiny, sizeof tiny, "%s/tiny.onnx", folder);
  unlink(tiny);
}

/* Chips whose every eight cores have a last level of their own: what is to come from memory fits into none.
 */
static void buffers_are_beyond_all_caches(void **state) {
  (void)state;
  const size_t mib = 1 << 20;
  const struct {
    uint32_t threads;
    size_t l2, l3;
  } chips[] = {{2, mib, 32 * mib},
               {1, mib / 2, 8 * mib},
               {192, mib, 384 * mib},
               {96, mib, 1152 * mib},
               {64, 2 * mib, 105 * mib}};
  for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
    const hn_roof_buffers b = hn_roof_buffers_for(chips[i].threads, chips[i].l2, chips[i].l3, UINT64_MAX);
    assert_true(b.dram * chips[i].threads + 4096 * chips[i].threads >= 2 * chips[i].l3);
    assert_true(b.dram >= 4 * chips[i].l2 - 4096);
    assert_true(b.l3 >= 2 * chips[i].l2 && b.l3 <= b.dram);
    assert_int_equal(b.dram % 4096, 0);
  }
  /* A container of a large machine has little memory. */
  const hn_roof_buffers small = hn_roof_buffers_for(192, mib, 384 * mib, 512 * mib);
  assert_true(small.dram * 192 <= 128 * mib && small.l3 <= small.dram);
  assert_true(hn_roof_buffers_for(192, mib, 384 * mib, 0).dram > 0);
  assert_int_equal(!hn_cache_total(3), !hn_cache_size(3));
}

int main(void) {
  unsetenv("HONE_ROOF_SECONDS"); /* set for tests that start commands */
  unsetenv("HONE_ROOF_QUICK");
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_cache, drop_cache)
  const struct CMUnitTest tests[] = {TEST(a_quiet_machine_is_measured_once),
                                     TEST(a_busy_machine_is_not_kept),
                                     TEST(waiting_for_a_processor_is_busy_too),
                                     TEST(busy_windows_are_waited_out),
                                     TEST(a_system_that_counts_nothing_is_believed),
                                     TEST(time_and_users_end_it),
                                     TEST(figures_rise_and_never_fall),
                                     TEST(what_a_busy_machine_showed_is_raised_and_not_kept),
                                     TEST(other_files_are_no_cache),
                                     TEST(buffers_are_beyond_all_caches),
                                     TEST(the_processor_has_peaks),
                                     TEST(a_meter_ends_when_time_is_up),
                                     TEST(a_beaten_peak_is_measured_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
