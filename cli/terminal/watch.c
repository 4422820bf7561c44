/* What watches the library's long work: a line on a terminal, and Ctrl-C. */
#include "cli/terminal/watch.h"
#include "cli/terminal/interrupts.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>

static bool progress(void *arg, const char *what, uint32_t done, uint32_t total) {
  static const char *bar;
  (void)arg;
  if (total || what == bar) cli_progress(what, done, total); /* what never knew keeps its caller's line */
  bar = total ? what : NULL;
  return !cli_interrupted();
}

static bool running(void *arg, hone_context *context) {
  (void)arg;
  cli_cancellable(context);
  return !cli_interrupted();
}

const hone_watch *cli_watch(void) {
  static const hone_watch watch = {.progress = progress, .running = running};
  return &watch;
}
