#include "api/measure/watch.h"

#include "base/error.h"
#include "base/os.h"

double hn_watch_ms(void) { return (double)hn_now_ns() * 1e-6; }

bool hn_watch_tell(const hone_watch *w, const char *what, uint32_t done, uint32_t total) {
  return !w || !w->progress || w->progress(w->arg, what, done, total);
}

hone_status hn_watch_stopped(hone_error *error) {
  return hn_fail(error, HONE_ERROR_CANCELLED, "the caller stopped it");
}

hone_status hn_watch_run(const hone_watch *w, hone_context *context, const hone_tensor *const *in,
                         double max_seconds, hone_error *error) {
  const hone_run_options o = {.max_seconds = max_seconds};
  if (w && w->running && !w->running(w->arg, context)) return hn_watch_stopped(error);
  return hone_context_run(context, in, &o, error);
}

void hn_watch_idle(const hone_watch *w) {
  if (w && w->running) w->running(w->arg, NULL);
}
