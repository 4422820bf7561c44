/* See ward.h. */
#include "cli/op/ward.h"

#include "cli/op/buffer.h"
#include "cli/terminal/clock.h"
#include "cli/terminal/interrupts.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { MOST_DEATHS = 3, PROBING = 1u << 31 };

/* ------------------------------------------------------------------ in the child */

static op_board *own; /* for the handler */

static const char *does_what(const void *context) {
#ifdef __x86_64__
  const ucontext_t *u = context;
  return u->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
  (void)context;
  return "touches";
#endif
}

/* Says which tensor it was; then the signal ends the process. */
static void on_fault(int number, siginfo_t *info, void *context) {
  (void)number;
  if (op_buffer_fault(info->si_addr, does_what(context), own->fault, sizeof own->fault)) return;
  const char *hint =
      info->si_code == SI_KERNEL ? "by an instruction that wants more alignment than there is?" : "";
  memcpy(own->fault, hint, strlen(hint) + 1);
}

static void watch_faults(op_board *board) {
  static char stack[1 << 16];
  own = board;
  const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
  (void)sigaltstack(&other, NULL);
  struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
  sigaction(SIGSEGV, &a, NULL);
  sigaction(SIGBUS, &a, NULL);
  const struct rlimit none = {0, 0}; /* no core files */
  (void)setrlimit(RLIMIT_CORE, &none);
}

static hone_engine *open_device(const char *device, const char *tactic, hone_error *error) {
  hone_engine *engine = NULL;
  const hone_engine_options o = {.device = device, .tactics = tactic, .tuning = "off"};
  return hone_engine_create(&o, &engine, error) == HONE_OK ? engine : NULL;
}

static void child(const op_job *of, uint32_t first, uint32_t last, op_board *board) {
  op_known known;
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)dup2(2, 1); /* what the plugin prints is no part of the report */
  watch_faults(board);
  board->next = PROBING;
  op_job there = *of;
  const op_job *job = &there;
  hone_error e = {0};
  if (of->device) {
    there.engine = open_device(of->device, of->tactic->name, &e);
    if (!there.engine) _exit(1);
    there.machine = hone_engine_machine(there.engine);
  }
  const op_row kept = board->row;
  op_trial_probe(job, &known, board);
  if (first) board->row = kept; /* it was noted the first time */
  for (uint32_t at = first; at < last; at++) {
    board->next = at;
    board->text[0] = 0;
    if (!op_trial_case(job, &known, at, board) && !known.n) break;
  }
  board->next = last;
  _exit(0);
}

/* ------------------------------------------------------------------ in the parent */

hone_status op_ward_device(const char *device, hone_error *error) {
  hone_error *said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "a process for the test cannot be started"};
  if (said == MAP_FAILED) return error->status;
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) _exit(open_device(device, NULL, said) ? 0 : 1);
  if (pid > 0 && waitpid(pid, &status, 0) == pid) {
    snprintf(error->what, sizeof error->what, "device %.40s ended the process that asked for it", device);
    error->status = HONE_ERROR_MISSING;
    if (WIFEXITED(status)) *error = *said;
    if (WIFEXITED(status) && !WEXITSTATUS(status)) error->status = HONE_OK;
  }
  (void)munmap(said, sizeof *said);
  return error->status;
}

typedef enum ending { ENDED, CRASHED, HUNG, CANCELLED } ending;

/* Waits for it, as long as something happens. */
static ending await(pid_t pid, const op_board *board, double max_seconds, int *status) {
  uint64_t beats = board->beats;
  double since = cli_now_ms();
  for (;;) {
    const pid_t got = waitpid(pid, status, WNOHANG);
    if (got == pid || got < 0)
      return got < 0 || !WIFEXITED(*status) || WEXITSTATUS(*status) ? CRASHED : ENDED;
    const double now = cli_now_ms();
    if (board->beats != beats) {
      beats = board->beats;
      since = now;
    }
    const bool hung = now - since > max_seconds * 1e3, cancelled = cli_interrupted();
    if (hung || cancelled) {
      (void)kill(pid, SIGKILL);
      (void)waitpid(pid, status, 0);
      return cancelled ? CANCELLED : HUNG;
    }
    const struct timespec pause = {0, 1000000};
    (void)nanosleep(&pause, NULL);
  }
}

static void note(op_board *b, uint32_t at, ending how, int status, double max_seconds) {
  char what[120];
  if (how == HUNG)
    snprintf(what, sizeof what, "it did not come back within %g seconds", max_seconds);
  else if (WIFSIGNALED(status))
    snprintf(what, sizeof what, "it crashed (%s)", strsignal(WTERMSIG(status)));
  else
    snprintf(what, sizeof what, "it ended the process");
  op_row_failed(&b->row, at, b->elements, b->text, "%s: %s%s%s", b->stage, what, *b->fault ? ": " : "",
                b->fault);
  b->fault[0] = 0;
}

hone_status op_ward_run(const op_job *job, uint32_t first, uint32_t last, double max_seconds, op_row *row,
                        hone_error *error) {
  hone_status result = HONE_OK;
  op_board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  *row = (op_row){0};
  if (b == MAP_FAILED) {
    *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "there is no memory for the test"};
    return HONE_ERROR_MEMORY;
  }
  int deaths = 0;
  for (uint32_t at = first; at < last && result == HONE_OK && deaths < MOST_DEATHS;) {
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) child(job, at, last, b);
    if (pid < 0) {
      *error = (hone_error){.status = HONE_ERROR_MEMORY, .what = "a process for the test cannot be started"};
      result = HONE_ERROR_MEMORY;
      break;
    }
    ending how = await(pid, b, max_seconds, &status);
    if (how == ENDED && b->next == last) break;
    if (how == ENDED) how = CRASHED;
    if (how == CANCELLED) {
      *error = (hone_error){.status = result = HONE_ERROR_CANCELLED, .what = "the test was cancelled"};
      break;
    }
    const bool probing = b->next == PROBING;
    b->row.cases += !probing;
    note(b, probing ? at : b->next, how, status, max_seconds);
    deaths += how == HUNG ? MOST_DEATHS : 1;
    at = b->next + 1;
    if (probing) break;
  }
  *row = b->row;
  (void)munmap(b, sizeof *b);
  return result;
}
