#include "runtime/plugins/trial.h"

#include "base/error.h"
#include "base/os.h"
#include "runtime/plugins/units.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Plugins call hone's functions of plugin.h: those of this very library, also where it was loaded for its
 * loader alone (Python does that). */
static void show_symbols(void) {
  Dl_info in;
  if (dladdr((void *)(uintptr_t)hone_version, &in) && in.dli_fname)
    (void)dlopen(in.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL); /* kept: one reference more */
}

static bool good_name(const char *name) {
  static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
  const size_t n = name ? strnlen(name, 61) : 0;
  return n > 0 && n <= 60 && strspn(name, good) == n;
}

static hone_status look_at(const hone_plugin *p, hone_error *error) {
  if (!p) {
    hn_fail(error, HONE_ERROR_UNSUPPORTED, "the plugin does not work with ABI %u", HONE_PLUGIN_ABI);
    hn_error_hint(error, "get a newer plugin, or an older hone");
    return HONE_ERROR_UNSUPPORTED;
  }
  hone_status status = hn_check_desc("plugin", p->name, p->struct_size, p->abi, HN_PLUGIN_SIZE, error);
  if (status != HONE_OK) return status;
  if (!good_name(p->name))
    return hn_fail(error, HONE_ERROR_INPUT, "the plugin's name is not of letters, digits, '-' and '_'");
  if (!p->version || !p->about)
    return hn_fail(error, HONE_ERROR_INPUT, "plugin %.60s has no version or no about", p->name);
  if ((p->n_ops && !p->op) || (p->n_tactics && !p->tactic) || (p->n_patterns && !p->pattern))
    return hn_fail(error, HONE_ERROR_INPUT, "plugin %.60s counts units that it does not list", p->name);
  return hn_units_check(p, error);
}

hone_status hn_plugin_open(const char *path, void **library, const hone_plugin **plugin, hone_error *error) {
  *plugin = NULL;
  show_symbols();
  *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*library) {
    const char *why = dlerror(), *cut = why ? strstr(why, ": ") : NULL; /* behind the path */
    hn_fail(error, HONE_ERROR_INPUT, "it cannot be loaded: %.260s", cut ? cut + 2 : why ? why : "no reason");
    hn_error_hint(error,
                  "a function that is missing was written for a newer hone, or a library was not linked");
    return HONE_ERROR_INPUT;
  }
  const hone_plugin *(*entry)(uint32_t);
  void *symbol = dlsym(*library, "hone_plugin_entry");
  memcpy(&entry, &symbol, sizeof entry);
  hone_status status = HONE_OK;
  if (!symbol) {
    status = hn_fail(error, HONE_ERROR_INPUT, "it has no function hone_plugin_entry");
    hn_error_hint(error, "this is no plugin of hone, or the function is hidden (hone/plugin.h declares it)");
  } else {
    *plugin = entry(HONE_PLUGIN_ABI);
    status = look_at(*plugin, error);
  }
  if (status == HONE_OK) return HONE_OK;
  dlclose(*library);
  *library = NULL;
  return status;
}

/* ---- the child */

static void child(const char *path, int to, double max_seconds) {
  const struct rlimit no_core = {0, 0};
  hone_error e = {0};
  void *library;
  const hone_plugin *plugin;
  (void)setrlimit(RLIMIT_CORE, &no_core);
  /* Nobody waits for a child whose parent was killed. */
  alarm((unsigned)max_seconds + 2);
  for (int s = 1; s < 32; s++) (void)signal(s, SIG_DFL);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere >= 0)
    for (int fd = 0; fd < 3; fd++) (void)dup2(nowhere, fd);
  e.status = hn_plugin_open(path, &library, &plugin, &e);
  const ssize_t n = write(to, &e, sizeof e);
  _exit(n == (ssize_t)sizeof e ? 0 : 1);
}

/* What the child says, in *said; false when it did not say all of it in time. */
static bool listen_to(int from, double max_seconds, hone_error *said, bool *late) {
  const uint64_t end = hn_now_ns() + (uint64_t)(max_seconds * 1e9);
  size_t n = 0;
  *late = false;
  while (n < sizeof *said) {
    const uint64_t now = hn_now_ns();
    struct pollfd p = {.fd = from, .events = POLLIN};
    const int r = now >= end ? 0 : poll(&p, 1, (int)((end - now) / 1000000) + 1);
    if (r < 0 && errno == EINTR) continue;
    if (r <= 0) {
      *late = r == 0;
      return false;
    }
    const ssize_t k = read(from, (char *)said + n, sizeof *said - n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    n += (size_t)k;
  }
  return true;
}

hone_status hn_plugin_try(const char *path, double max_seconds, hone_error *error) {
  int ends[2], state = 0;
  hone_error said = {0};
  if (max_seconds <= 0) max_seconds = 10;
  if (pipe2(ends, O_CLOEXEC) != 0) return hn_fail(error, HONE_ERROR_IO, "no pipe to the plugin's trial");
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) child(path, ends[1], max_seconds);
  close(ends[1]);
  bool late = false;
  const bool whole = pid > 0 && listen_to(ends[0], max_seconds, &said, &late);
  close(ends[0]);
  if (pid < 0) return hn_fail(error, HONE_ERROR_IO, "no process for the plugin's trial");
  if (late) (void)kill(pid, SIGKILL);
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  if (whole) {
    if (error && said.status != HONE_OK) *error = said;
    return said.status;
  }
  if (late)
    hn_fail(error, HONE_ERROR_INPUT, "it did not come back within %g s when it was loaded", max_seconds);
  else if (WIFSIGNALED(state))
    hn_fail(error, HONE_ERROR_INPUT, "it crashed when it was loaded: signal %d (%s)", WTERMSIG(state),
            strsignal(WTERMSIG(state)));
  else
    hn_fail(error, HONE_ERROR_INPUT, "it ended the process when it was loaded (exit code %d)",
            WEXITSTATUS(state));
  hn_error_hint(error, "its constructors and hone_plugin_entry run then, nothing else");
  return HONE_ERROR_INPUT;
}
