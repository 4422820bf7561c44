/* What a container grants, from trees of files as Docker, Kubernetes and systemd make them. */
#include "temporary.h"
#include "base/cgroup.h"
#include "base/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char root[256];

static int enter(void **state) {
  (void)state;
  return mkdtemp(temporary(root, sizeof root, "cgroup")) ? 0 : -1;
}

static int leave(void **state) {
  (void)state;
  return temporary_remove(root);
}

static void put(const char *path, const char *text) {
  char full[600], *slash;
  snprintf(full, sizeof full, "%s%s", root, path);
  slash = strrchr(full, '/');
  *slash = 0;
  assert_int_equal(hn_mkdirs(full, NULL), HONE_OK);
  *slash = '/';
  FILE *f = fopen(full, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static void is(double processors, uint64_t memory) {
  assert_true(hn_cgroup_processors(root) == processors);
  assert_int_equal(hn_cgroup_memory(root), memory);
}

static void nothing_is_known(void **state) {
  (void)state;
  is(0, 0);
  put("/proc/self/cgroup", "0::/\nno line of this kind\n\n:\n7:cpu\n");
  is(0, 0);
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/memory.max", "max\n");
  is(0, 0);
}

static void version_2_counts_the_least_on_the_way(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/system.slice/a.service/inner\n");
  put("/sys/fs/cgroup/system.slice/cpu.max", "400000 100000\n");
  put("/sys/fs/cgroup/system.slice/memory.max", "1000\n");
  is(4, 1000);
  put("/sys/fs/cgroup/system.slice/a.service/cpu.max", "250000 100000\n");
  put("/sys/fs/cgroup/system.slice/a.service/inner/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/system.slice/a.service/inner/memory.max", "5000\n");
  is(2.5, 1000);
}

static void version_2_in_a_container(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/memory.max", "536870912\n");
  is(1.5, 536870912);
}

/* Docker: the path is the host's, the mount begins at the container. */
static void version_1_in_a_container(void **state) {
  (void)state;
  put("/proc/self/cgroup",
      "9:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n1:name=systemd:/docker/0123\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "300000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  is(3, 0);
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
  is(0, 4096);
}

static void version_1_on_the_host(void **state) {
  (void)state;
  put("/proc/self/cgroup", "4:cpuset:/x\n3:cpu:/kubepods/pod1:2\n");
  put("/sys/fs/cgroup/cpu/kubepods/cpu.cfs_quota_us", "6400000\n");
  put("/sys/fs/cgroup/cpu/kubepods/cpu.cfs_period_us", "100000\n");
  put("/sys/fs/cgroup/cpu/kubepods/pod1:2/cpu.cfs_quota_us", "50000\n");
  put("/sys/fs/cgroup/cpu/kubepods/pod1:2/cpu.cfs_period_us", "100000\n");
  is(0.5, 0);
}

static void threads_are_within_both(void **state) {
  (void)state;
  const double granted = hn_cgroup_processors("");
  const uint32_t n = hn_thread_count();
  assert_in_range(n, 1, hn_cpu_count());
  if (granted >= 1) assert_true(n <= granted);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(nothing_is_known, enter, leave),
      cmocka_unit_test_setup_teardown(version_2_counts_the_least_on_the_way, enter, leave),
      cmocka_unit_test_setup_teardown(version_2_in_a_container, enter, leave),
      cmocka_unit_test_setup_teardown(version_1_in_a_container, enter, leave),
      cmocka_unit_test_setup_teardown(version_1_on_the_host, enter, leave),
      cmocka_unit_test(threads_are_within_both),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
