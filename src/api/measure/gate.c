/* The processes of a gate. */
#include "api/measure/watch.h"
#include "base/error.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_OUTPUT = 64 << 20 };

typedef struct output {
  char *text;
  size_t n, room;
} output;

/* False: out of memory, or more than a report can be. */
static bool keep(output *o, const char *bytes, size_t n) {
  if (o->n + n + 1 > o->room) {
    size_t room = (o->n + n + 1) * 2;
    char *more = room <= MOST_OUTPUT ? hn_realloc(o->text, room) : NULL;
    if (!more) return false;
    o->text = more;
    o->room = room;
  }
  memcpy(o->text + o->n, bytes, n);
  o->n += n;
  o->text[o->n] = 0;
  return true;
}

/* What the process said on standard error: the last line, for people. */
static void last_line(FILE *err, char *buf, size_t size) {
  char line[400], last[400] = "";
  rewind(err);
  while (fgets(line, sizeof line, err))
    if (line[strspn(line, " \r\n")]) snprintf(last, sizeof last, "%.*s", (int)strcspn(line, "\r\n"), line);
  snprintf(buf, size, "%.*s", (int)size - 1, last);
}

static hone_status fail(hone_error *error, hone_status status, const hone_gate_side *side, const char *what) {
  hn_fail(error, status, "%s", what);
  hn_error_where(error, "%.200s", side->label);
  return status;
}

/* What hone says of itself, the gate says of the whole: no GPU here is no bad model. */
static hone_status status_of(int exit_code) {
  switch (exit_code) {
  case 2: return HONE_ERROR_USAGE;
  case 4: return HONE_ERROR_MISSING;
  case 6: return HONE_ERROR_MEMORY; /* not BUDGET: that is the time of the gate itself */
  default: return HONE_ERROR_INPUT;
  }
}

static void child(const char *command, int out, int err) {
  setpgid(0, 0); /* so that everything it starts can be ended with it */
  signal(SIGPIPE, SIG_DFL);
  int none = open("/dev/null", O_RDONLY | O_CLOEXEC); /* nobody is there to answer */
  dup2(none, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

/* What is there of the output, if anything; *open is false at its end. */
static hone_status read_some(int fd, output *o, bool *open, const hone_gate_side *side, hone_error *error) {
  char bytes[65536];
  ssize_t n = read(fd, bytes, sizeof bytes);
  if (n == 0) *open = false;
  if (n < 0 && errno != EINTR) return fail(error, HONE_ERROR_IO, side, "cannot read what the command prints");
  if (n > 0 && !keep(o, bytes, (size_t)n))
    return fail(error, HONE_ERROR_MEMORY, side, "the command prints too much");
  return HONE_OK;
}

/* A descriptor that poll() wakes for when the process ends; -1 where the kernel has none. */
static int watch(pid_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  (void)pid;
  return -1;
#endif
}

/* How the processes of one call run. */
typedef struct gate {
  hone_gate_run *g;
  const hone_watch *watch;
  double end_ms; /* 0: none */
  const char *what;
  uint32_t done, total; /* for the watch */
} gate;

/* Reads until the process has ended: not until its output is closed, which something that it left running in
 * the background may keep open for ever. HONE_ERROR_BUDGET past the deadline. */
static hone_status listen_to(const gate *gate, int fd, pid_t pid, output *o, const hone_gate_side *side,
                             int *state, hone_error *error) {
  hone_status status = HONE_OK;
  bool open = true, ended = false;
  int end = watch(pid);
  while (status == HONE_OK && !ended) {
    struct pollfd p[2] = {{.fd = open ? fd : -1, .events = POLLIN}, {.fd = end, .events = POLLIN}};
    poll(p, 2, end >= 0 ? 200 : 5);
    if (!hn_watch_tell(gate->watch, gate->what, gate->done, gate->total)) status = hn_watch_stopped(error);
    if (status == HONE_OK && gate->end_ms > 0 && hn_watch_ms() > gate->end_ms)
      status = fail(error, HONE_ERROR_BUDGET, side, "time is up");
    if (status == HONE_OK && p[0].revents) status = read_some(fd, o, &open, side, error);
    ended = waitpid(pid, state, WNOHANG) == pid;
  }
  if (end >= 0) close(end);
  kill(-pid, SIGKILL); /* nothing that it started runs on beside the next one */
  for (struct pollfd p = {.fd = fd, .events = POLLIN}; status == HONE_OK && open && poll(&p, 1, 0) > 0;)
    status = read_some(fd, o, &open, side, error);
  while (!ended && waitpid(pid, state, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/* The process to its end; what it printed into o. */
static hone_status execute(const gate *gate, const hone_gate_side *side, output *o, hone_error *error) {
  int ends[2], state = 0;
  FILE *err = tmpfile();
  if (!err || pipe2(ends, O_CLOEXEC) != 0) {
    if (err) fclose(err);
    return fail(error, HONE_ERROR_IO, side, "cannot start a process: no pipe or temporary file");
  }
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) child(side->command, ends[1], fileno(err));
  close(ends[1]);
  if (pid > 0) setpgid(pid, pid); /* here, too: whoever comes first */
  hone_status status = pid > 0 ? listen_to(gate, ends[0], pid, o, side, &state, error)
                               : fail(error, HONE_ERROR_IO, side, "cannot start a process");
  close(ends[0]);
  if (status == HONE_OK && state != 0) {
    char said[256];
    last_line(err, said, sizeof said);
    static const char prefix[] = "hone: error: ";
    const bool of_hone = strncmp(said, prefix, sizeof prefix - 1) == 0;
    const char *words = of_hone ? said + sizeof prefix - 1 : said;
    status = of_hone && WIFEXITED(state) ? status_of(WEXITSTATUS(state)) : HONE_ERROR_INPUT;
    hn_fail(error, status, "the command ended with %s %d%s%s", WIFSIGNALED(state) ? "signal" : "exit code",
            WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state), *words ? ": " : "", words);
    hn_error_where(error, "%.200s", side->label);
    hn_error_hint(error, "it was: %.280s", side->command);
  }
  fclose(err);
  return status;
}

/* Runs the command once. ms: the latency of its report (wall false) or the time of the process. has_report:
 * whether it printed one. */
static hone_status run_once(const gate *gate, const hone_gate_side *side, bool wall, double *ms,
                            bool *has_report, hone_error *error) {
  output o = {0};
  hone_records r = {0};
  hone_error no_report = {0};
  const double start = hn_watch_ms();
  const hone_status status = execute(gate, side, &o, error);
  *ms = hn_watch_ms() - start;
  *has_report = status == HONE_OK && o.n && hone_record_parse(o.text, o.n, &r, &no_report) == HONE_OK;
  if (*has_report && !wall) *ms = r.items[0].median_latency_ms;
  hone_records_free(&r);
  hn_free(o.text);
  if (status != HONE_OK || wall || *has_report) return status;
  gate->g->silent = true;
  return fail(error, HONE_ERROR_INPUT, side, "the command printed no report with a latency");
}

/* One unmeasured process of each command: fills caches, and shows what they print. */
static hone_status warm_up(const gate *gate, bool both, hone_error *error) {
  hone_gate_run *g = gate->g;
  double ms;
  bool old_report = true, new_report = false;
  hone_status status = both ? run_once(gate, &g->old, true, &ms, &old_report, error) : HONE_OK;
  if (status == HONE_OK) status = run_once(gate, &g->now, true, &ms, &new_report, error);
  if (status == HONE_OK && both && !g->given) g->wall = !old_report || !new_report;
  return status;
}

static gate begin(hone_gate_run *g, const char *what, uint32_t total, double max_seconds,
                  const hone_watch *watch) {
  g->timeout = g->silent = false;
  return (gate){.g = g,
                .watch = watch,
                .end_ms = max_seconds > 0 ? hn_watch_ms() + max_seconds * 1e3 : 0,
                .what = what,
                .total = total};
}

/* Time that is up ends measuring, and is no error of its own. */
static hone_status after_deadline(hone_gate_run *g, hone_status status, hone_error *error) {
  if (status != HONE_ERROR_BUDGET) return status;
  if (error) *error = (hone_error){0};
  g->timeout = true;
  return HONE_OK;
}

hone_status hone_gate_run_pairs(hone_gate_run *g, uint32_t most, double max_seconds, const hone_watch *watch,
                                hone_error *error) {
  if (!g || !most || most > HONE_GATE_MOST)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_gate_run_pairs needs two commands and 1 to %d pairs",
                   HONE_GATE_MOST);
  const double start = hn_watch_ms();
  gate gate = begin(g, "gate: pairs", most, max_seconds, watch);
  const hone_gate_options o = {.threshold = g->threshold, .max_pairs = most};
  hone_status status = hone_gate_pairs(NULL, NULL, 0, &o, &g->result, error);
  bool report;
  uint32_t n = 0;
  if (status == HONE_OK) status = warm_up(&gate, true, error);
  while (status == HONE_OK && n < most && !g->result.decided) {
    hone_gate_side *first = n % 2 ? &g->now : &g->old, *second = n % 2 ? &g->old : &g->now;
    gate.done = n;
    status = run_once(&gate, first, g->wall, &first->ms[n], &report, error);
    if (status == HONE_OK) status = run_once(&gate, second, g->wall, &second->ms[n], &report, error);
    if (status == HONE_OK && ++n == g->result.look)
      status = hone_gate_pairs(g->old.ms, g->now.ms, n, &o, &g->result, error);
  }
  status = after_deadline(g, status, error);
  if (status == HONE_OK && !g->result.decided)
    status = hone_gate_pairs(g->old.ms, g->now.ms, n, &o, &g->result, error);
  g->old.n = g->now.n = n;
  g->seconds = (hn_watch_ms() - start) / 1e3;
  return status;
}

hone_status hone_gate_run_new(hone_gate_run *g, uint32_t n, double max_seconds, const hone_watch *watch,
                              hone_error *error) {
  if (!g || !n || n > HONE_GATE_MOST || g->old.n > HONE_GATE_MOST)
    return hn_fail(error, HONE_ERROR_USAGE, "hone_gate_run_new needs a command and 1 to %d processes",
                   HONE_GATE_MOST);
  const double start = hn_watch_ms();
  gate gate = begin(g, "gate: processes", n, max_seconds, watch);
  const hone_gate_options o = {.threshold = g->threshold};
  bool report;
  hone_status status = warm_up(&gate, false, error);
  g->now.n = 0;
  while (status == HONE_OK && g->now.n < n) {
    gate.done = g->now.n;
    status = run_once(&gate, &g->now, false, &g->now.ms[g->now.n], &report, error);
    if (status == HONE_OK) g->now.n++;
  }
  status = after_deadline(g, status, error);
  if (status == HONE_OK && !g->now.n)
    status = fail(error, HONE_ERROR_BUDGET, &g->now, "the time was over before one process had ended");
  if (status == HONE_OK)
    status = hone_gate_sets(g->old.ms, g->old.n, g->now.ms, g->now.n, &o, &g->result, error);
  g->seconds = (hn_watch_ms() - start) / 1e3;
  return status;
}
