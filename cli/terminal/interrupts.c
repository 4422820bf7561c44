/* Ctrl-C and SIGTERM: the first ends what runs in good order, a second one ends hone. */
#include "cli/terminal/interrupts.h"

#include <hone/hone.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* What is sent twice at once is meant once: timeout(1) signals its child and then its group. */
#define TWICE_SECONDS 0.4

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t held;
static void (*wipe_line)(void);
static hone_context *_Atomic cancellable;
static _Atomic double first_at;

/* Only calls that a signal handler may make. */
static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void end(void) {
  hone_writer_abandon_all();
  if (wipe_line) wipe_line();
  const ssize_t told =
      write(STDERR_FILENO, "hone: " CLI_INTERRUPTED "\n", sizeof "hone: " CLI_INTERRUPTED "\n" - 1);
  (void)told; /* nobody listens: nothing to be done about it */
  _exit(CLI_EXIT_INTERRUPTED);
}

static void on_interrupt(int signal) {
  (void)signal;
  if (!interrupted)
    first_at = seconds();
  else if (seconds() - first_at > TWICE_SECONDS) /* whoever waits has had enough of it */
    end();
  interrupted = 1;
  hone_context *context = atomic_load(&cancellable);
  if (context)
    hone_context_cancel(context);
  else if (!held) /* nothing is open and nothing listens */
    end();
}

void cli_signals(void (*wipe)(void)) {
  wipe_line = wipe;
  struct sigaction action = {.sa_handler = on_interrupt};
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of the write, not a death */
  signal(SIGXFSZ, SIG_IGN); /* and so is a limit of a file's size (ulimit -f) */
}

bool cli_interrupted(void) { return interrupted != 0; }

void cli_cancellable(hone_context *context) { atomic_store(&cancellable, context); }
void cli_hold(bool on) { held = held + (on ? 1 : -1); }
