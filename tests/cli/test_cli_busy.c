/* A machine that others use. */
#include "cli/command.h"

#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Peaks measured beside busy processes are called what they are, and not kept. */
static void test_busy_device(void **state) {
  (void)state;
  pid_t others[2];
  for (int i = 0; i < 2; i++) {
    others[i] = fork();
    if (others[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* an assertion that fails leaves nobody behind */
      for (;;) continue;
    }
  }
  /* What other tests measured while the machine was quiet is not there. */
  char other[128];
  snprintf(other, sizeof other, "%s/no-cache", folder);
  setenv("XDG_CACHE_HOME", other, 1);
  unsetenv("HONE_ROOF_SECONDS"); /* whole windows are needed to tell how busy it was */
  unsetenv("HONE_ROOF_QUICK");
  process p = RUN("device", "--threads", "1", "--again", "--json");
  setenv("HONE_ROOF_SECONDS", "1", 1);
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) { /* else two busy ones are no tenth */
    char command[300];
    snprintf(command, sizeof command, "! grep -q '| 1 threads' '%s'/hone/roofs-*.txt 2>/dev/null", other);
    assert_int_equal(system(command), 0);
  }
  /* Ctrl-C ends the measuring of peaks that follows a profile's runs, too. */
  snprintf(other, sizeof other, "%s/no-peaks", folder);
  setenv("XDG_CACHE_HOME", other, 1);
  process stopped = INTERRUPT(500, "profile", tiny, "--shape", "N=1", "-n", "1", "--threads", "1");
  setenv("XDG_CACHE_HOME", folder, 1);
  setenv("HONE_ROOF_QUICK", "1", 1);
  assert_int_equal(stopped.code, 130);
  process_free(&stopped);
  process waited = RUN("bench", tiny, "--shape", "N=1", "-n", "3", "--quiet-wait", "1.2");
  assert_int_equal(waited.code, 0);
  assert_non_null(strstr(waited.err, "others "));
  stopped = INTERRUPT(1500, "bench", tiny, "--shape", "N=1", "-n", "3", "--quiet-wait", "600");
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) {
    assert_non_null(strstr(waited.err, "going on beside them"));
    assert_int_equal(stopped.code, 130);
  }
  process_free(&waited);
  process_free(&stopped);
  for (int i = 0; i < 2; i++) {
    kill(others[i], SIGKILL);
    waitpid(others[i], NULL, 0);
  }
  assert_int_equal(p.code, 0);
  json_t *doc = process_json(&p);
  if (sysconf(_SC_NPROCESSORS_ONLN) <= 8) {
    assert_true(json_is_false(json_object_get(doc, "quiet")));
    /* They take processors, or let us wait for one. */
    assert_true(json_real_value(json_object_get(doc, "others_share")) > 0.1 ||
                json_real_value(json_object_get(doc, "delay_share")) > 0.1);
    assert_non_null(strstr(p.err, "others were busy in all windows"));
  }
  json_decref(doc);
  process_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_busy_device)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
