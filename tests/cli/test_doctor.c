/* hone doctor's checks on a made-up machine: files of /proc and /sys below a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/doctor/doctor.h"
#include "temporary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[200];

static void put(const char *path, const char *text) {
  char full[500];
  snprintf(full, sizeof full, "%s%s", root, path);
  for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); *p++ = '/') {
    *p = 0;
    mkdir(full, 0700);
  }
  FILE *f = fopen(full, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

typedef void look(const cli_patient *, cli_check *);

static cli_patient patient(void) {
  return (cli_patient){.root = root,
                       .machine = {.isa = HONE_ISA_AVX2 | HONE_ISA_AVX512 | HONE_ISA_AVX512VNNI},
                       .seen = {.processors = 4}};
}

/* The check says `health` and, in what it found, `words`; what lacks says what it costs and what to do. */
static void expect_of(cli_patient p, look *check, cli_health health, const char *words) {
  for (int language = 0; language < 2; language++) {
    cli_check c = {0};
    p.language = language ? HONE_LANGUAGE_ZH : HONE_LANGUAGE_EN;
    check(&p, &c);
    if (c.health != health || !strstr(c.found, words))
      fail_msg("%d \"%s\", wanted %d \"%s\"", c.health, c.found, health, words);
    assert_int_equal(health == CLI_LACKS, *c.cost != 0);
    if (health == CLI_LACKS) assert_true(*c.todo);
    if (language && *c.cost)
      assert_true((unsigned char)*c.cost >= 0x80 || strchr(c.cost, '\xe4') || strchr(c.cost, '\xe6'));
  }
}

static void expect(look *check, cli_health health, const char *words) {
  expect_of(patient(), check, health, words);
}

static void an_empty_machine_is_no_error(void **state) {
  (void)state;
  expect(cli_check_processor, CLI_GOOD, "");
  expect(cli_check_processors, CLI_GOOD, "4");
  expect(cli_check_container, CLI_GOOD, "");
  expect(cli_check_memory, CLI_NOTE, "");
  expect(cli_check_governor, CLI_NOTE, "");
  expect(cli_check_huge_pages, CLI_NOTE, "");
}

static void processors(void **state) {
  (void)state;
  put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor 9\nflags : a\n");
  expect(cli_check_processor, CLI_GOOD, "Some Processor 9");
  put("/sys/devices/system/cpu/online", "0-3\n");
  expect(cli_check_processors, CLI_GOOD, "4");
  put("/sys/devices/system/cpu/online", "0-2,5,7-9\n");
  expect(cli_check_processors, CLI_LACKS, "7");
  put("/sys/devices/system/cpu/online", "9-2\n"); /* nonsense */
  expect(cli_check_processors, CLI_GOOD, "4");
  put("/sys/devices/system/cpu/online", "0-3\n");
  static const char *const pairs[] = {"0,2\n", "1,3\n", "0,2\n", "1,3\n"};
  for (int i = 0; i < 4; i++) {
    char path[100];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
    put(path, pairs[i]);
  }
  expect(cli_check_processors, CLI_GOOD, "2");
}

static void instructions(void **state) {
  (void)state;
  char kept[50] = "";
  if (getenv("HONE_CPU")) snprintf(kept, sizeof kept, "%s", getenv("HONE_CPU"));
  unsetenv("HONE_CPU");
  cli_patient p = patient();
  expect_of(p, cli_check_instructions, CLI_GOOD, "AVX2, AVX-512, AVX-512 VNNI");
  p.machine.isa = HONE_ISA_AVX2 | HONE_ISA_AVXVNNI;
  expect_of(p, cli_check_instructions, CLI_GOOD, "AVX2, AVX-VNNI");
  p.machine.isa = HONE_ISA_AVX2;
  expect_of(p, cli_check_instructions, CLI_NOTE, "AVX2");
  p.machine.isa = 0;
  expect_of(p, cli_check_instructions, CLI_LACKS, "scalar");
  p.machine.isa = HONE_ISA_AVX2;
  setenv("HONE_CPU", "avx2", 1);
  expect_of(p, cli_check_instructions, CLI_LACKS, "AVX2");
  if (*kept)
    setenv("HONE_CPU", kept, 1);
  else
    unsetenv("HONE_CPU");
}

static void limits(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  expect(cli_check_container, CLI_GOOD, "");
  put("/sys/fs/cgroup/a/cpu.max", "150000 100000\n"); /* of a group above */
  expect(cli_check_container, CLI_LACKS, "1.5");
  put("/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/memory.max", "2000000000\n");
  expect(cli_check_container, CLI_GOOD, "2 GB");
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  expect(cli_check_container, CLI_LACKS, "0.5");
}

static void memory(void **state) {
  (void)state;
  put("/proc/meminfo", "MemTotal:       8000000 kB\nMemFree: 1 kB\nMemAvailable:    4000000 kB\n");
  expect(cli_check_memory, CLI_GOOD, "4.1");
  put("/proc/meminfo", "MemTotal:       8000000 kB\nMemAvailable:    400000 kB\n");
  expect(cli_check_memory, CLI_LACKS, "0.4");
}

static void settings(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  expect(cli_check_governor, CLI_GOOD, "performance");
  put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n");
  expect(cli_check_governor, CLI_LACKS, "powersave, intel_pstate");
  put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  expect(cli_check_huge_pages, CLI_GOOD, "madvise");
  put("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  expect(cli_check_huge_pages, CLI_LACKS, "never");
}

static void a_network_that_does_not_run(void **state) {
  (void)state;
  cli_patient p = patient();
  p.works = p.failed.status = HONE_ERROR_MEMORY;
  snprintf(p.failed.what, sizeof p.failed.what, "no memory for it");
  cli_check c = {0};
  cli_check_hone(&p, &c);
  assert_int_equal(c.health, CLI_BROKEN);
  assert_non_null(strstr(c.found, "no memory for it"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(an_empty_machine_is_no_error),
                                     cmocka_unit_test(processors),
                                     cmocka_unit_test(instructions),
                                     cmocka_unit_test(limits),
                                     cmocka_unit_test(memory),
                                     cmocka_unit_test(settings),
                                     cmocka_unit_test(a_network_that_does_not_run)};
  if (!mkdtemp(temporary(root, sizeof root, "machine"))) return 1;
  const int bad = cmocka_run_group_tests(tests, NULL, NULL);
  temporary_remove(root);
  return bad;
}
