/* The processes of a gate. */
#include "cli/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
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
    char *more = room <= MOST_OUTPUT ? realloc(o->text, room) : NULL;
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

static hone_status fail(hone_error *error, hone_status status, const gate_side *side, const char *what) {
  *error = (hone_error){.status = status};
  snprintf(error->what, sizeof error->what, "%s", what);
  snprintf(error->where, sizeof error->where, "%.200s", side->label);
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
static hone_status read_some(int fd, output *o, bool *open, const gate_side *side, hone_error *error) {
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

/* Reads until the process has ended: not until its output is closed, which something that it left running in
 * the background may keep open for ever. HONE_ERROR_BUDGET past the deadline. */
static hone_status listen_to(int fd, pid_t pid, double deadline_ms, output *o, const gate_side *side,
                             int *state, hone_error *error) {
  hone_status status = HONE_OK;
  bool open = true, ended = false;
  int end = watch(pid);
  while (status == HONE_OK && !ended) {
    struct pollfd p[2] = {{.fd = open ? fd : -1, .events = POLLIN}, {.fd = end, .events = POLLIN}};
    poll(p, 2, end >= 0 ? 200 : 5);
    if (cli_interrupted()) status = fail(error, HONE_ERROR_CANCELLED, side, "");
    if (status == HONE_OK && deadline_ms > 0 && cli_now_ms() > deadline_ms)
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
static hone_status execute(const gate_side *side, double deadline_ms, output *o, hone_error *error) {
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
  hone_status status = pid > 0 ? listen_to(ends[0], pid, deadline_ms, o, side, &state, error)
                               : fail(error, HONE_ERROR_IO, side, "cannot start a process");
  close(ends[0]);
  if (status == HONE_OK && state != 0) {
    char said[256];
    last_line(err, said, sizeof said);
    static const char prefix[] = "hone: error: ";
    const bool of_hone = strncmp(said, prefix, sizeof prefix - 1) == 0;
    const char *words = of_hone ? said + sizeof prefix - 1 : said;
    status =
        fail(error, of_hone && WIFEXITED(state) ? status_of(WEXITSTATUS(state)) : HONE_ERROR_INPUT, side, "");
    snprintf(error->what, sizeof error->what, "the command ended with %s %d%s%s",
             WIFSIGNALED(state) ? "signal" : "exit code",
             WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state), *words ? ": " : "", words);
    snprintf(error->hint, sizeof error->hint, "it was: %.280s", side->command);
  }
  fclose(err);
  return status;
}

hone_status gate_run_once(gate_side *side, bool wall, double deadline_ms, double *ms, bool *has_report,
                          hone_error *error) {
  output o = {0};
  hone_records r = {0};
  hone_error no_report = {0};
  double start = cli_now_ms();
  hone_status status = execute(side, deadline_ms, &o, error);
  *ms = cli_now_ms() - start;
  *has_report = status == HONE_OK && o.n && hone_record_parse(o.text, o.n, &r, &no_report) == HONE_OK;
  if (*has_report && !wall) *ms = r.items[0].median_latency_ms;
  hone_records_free(&r);
  free(o.text);
  if (status == HONE_OK && !wall && !*has_report) {
    status = fail(error, HONE_ERROR_INPUT, side, "the command printed no report with a latency");
    snprintf(error->hint, sizeof error->hint,
             "let it print what hone bench --json prints, or take --metric wall");
  }
  return status;
}

/* One unmeasured process of each command: fills caches, and shows what they print. */
static hone_status warm_up(gate_run *g, double deadline_ms, bool both, hone_error *error) {
  double ms;
  bool old_report = true, new_report = false;
  hone_status status = both ? gate_run_once(&g->old, true, deadline_ms, &ms, &old_report, error) : HONE_OK;
  if (status == HONE_OK) status = gate_run_once(&g->new, true, deadline_ms, &ms, &new_report, error);
  if (status == HONE_OK && both && !g->given) g->wall = !old_report || !new_report;
  return status;
}

static double deadline(double max_seconds) { return max_seconds > 0 ? cli_now_ms() + max_seconds * 1e3 : 0; }

/* Time that is up ends measuring, and is no error of its own. */
static hone_status after_deadline(gate_run *g, hone_status status) {
  if (status != HONE_ERROR_BUDGET) return status;
  g->timeout = true;
  return HONE_OK;
}

hone_status gate_run_pairs(gate_run *g, uint32_t most, double max_seconds, hone_error *error) {
  double start = cli_now_ms(), end = deadline(max_seconds);
  hone_gate_options o = {.threshold = g->threshold, .max_pairs = most};
  hone_status status = hone_gate_pairs(NULL, NULL, 0, &o, &g->result, error);
  bool report;
  uint32_t n = 0;
  cli_hold(true);
  if (status == HONE_OK) status = warm_up(g, end, true, error);
  while (status == HONE_OK && n < most && !g->result.decided) {
    gate_side *first = n % 2 ? &g->new : &g->old, *second = n % 2 ? &g->old : &g->new;
    cli_progress("gate: pairs", n, most);
    status = gate_run_once(first, g->wall, end, &first->ms[n], &report, error);
    if (status == HONE_OK) status = gate_run_once(second, g->wall, end, &second->ms[n], &report, error);
    if (status == HONE_OK && ++n == g->result.look)
      status = hone_gate_pairs(g->old.ms, g->new.ms, n, &o, &g->result, error);
  }
  status = after_deadline(g, status);
  if (status == HONE_OK && !g->result.decided)
    status = hone_gate_pairs(g->old.ms, g->new.ms, n, &o, &g->result, error);
  cli_progress_end();
  cli_hold(false);
  g->old.n = g->new.n = n;
  g->seconds = (cli_now_ms() - start) / 1e3;
  return status;
}

hone_status gate_run_new(gate_run *g, uint32_t n, double max_seconds, hone_error *error) {
  double start = cli_now_ms(), end = deadline(max_seconds);
  hone_gate_options o = {.threshold = g->threshold};
  bool report;
  cli_hold(true);
  hone_status status = warm_up(g, end, false, error);
  while (status == HONE_OK && g->new.n < n) {
    cli_progress("gate: processes", g->new.n, n);
    status = gate_run_once(&g->new, false, end, &g->new.ms[g->new.n], &report, error);
    if (status == HONE_OK) g->new.n++;
  }
  status = after_deadline(g, status);
  cli_progress_end();
  cli_hold(false);
  if (status == HONE_OK && !g->new.n) {
    status = fail(error, HONE_ERROR_BUDGET, &g->new, "--max-seconds was over before one process had ended");
  }
  if (status == HONE_OK)
    status = hone_gate_sets(g->old.ms, g->old.n, g->new.ms, g->new.n, &o, &g->result, error);
  if (status == HONE_OK && g->doubt[0]) g->result.verdict = HONE_GATE_NONE;
  g->seconds = (cli_now_ms() - start) / 1e3;
  return status;
}
