#include "improve/dump.h"

#include "base/error.h"
#include "improve/values.h"

#include <string.h>

typedef struct watcher {
  const hone_dump *dump;
  const hn_plan *plan;
  const char *side;
  bool *seen; /* by name */
  hone_error *error;
  hone_status status;
} watcher;

static void step_done(void *arg, const hn_step *s, hone_tensor *const *out) {
  watcher *w = arg;
  for (uint32_t i = 0; i < s->desc.n_outputs; i++) {
    const hn_value *v = hn_value_of_step(w->plan, s, i);
    for (uint32_t k = 0; v && out[i] && out[i]->data && k < w->dump->n && w->status == HONE_OK; k++) {
      const char *name = w->dump->names[k];
      const bool of_node = v->producer && strcmp(v->producer->name, name) == 0;
      if (!of_node && strcmp(v->name, name) != 0) continue;
      hone_tensor *rows = hn_rows_of(out[i]);
      w->seen[k] = true;
      w->status =
          rows ? w->dump->put(w->dump->arg, k, of_node ? v->producer_index : 0, w->side, rows, w->error)
               : hn_fail_memory(w->error, 0, "a dump");
      hn_rows_free(rows);
    }
  }
}

static hone_status dump_side(hn_side *side, const char *name, const hn_feed *feeds, uint32_t n,
                             const hone_dump *dump, bool *seen, hone_error *error) {
  watcher w = {dump, side->plan, name, seen, error, HONE_OK};
  hn_context_watch(side->context, step_done, &w, false);
  const hone_status status = hn_side_run(side, feeds, n, error);
  hn_context_watch(side->context, NULL, NULL, false);
  return status == HONE_OK ? w.status : status;
}

hone_status hn_dump_sides(hn_side *reference, hn_side *test, const hn_feed *feeds, uint32_t n,
                          const hone_dump *dump, hone_error *error) {
  if (test->plan->slices > 1) {
    hn_fail(error, HONE_ERROR_UNSUPPORTED,
            "the saved plan takes the batch in %u slices: no value between its steps is there as a whole",
            test->plan->slices);
    hn_error_hint(error, "save one with --slices 1");
    return HONE_ERROR_UNSUPPORTED;
  }
  bool *seen = hn_calloc(dump->n + 1u, sizeof *seen);
  if (!seen) return hn_fail_memory(error, dump->n, "a dump");
  hone_status status = dump_side(reference, "reference", feeds, n, dump, seen, error);
  for (uint32_t k = 0; status == HONE_OK && k < dump->n; k++)
    if (!seen[k]) {
      status = hn_fail(error, HONE_ERROR_USAGE, "no node makes a value of the name '%s'", dump->names[k]);
      hn_error_expected(error, "the name of a node, or of a value that a node makes");
    }
  if (status == HONE_OK) status = dump_side(test, "optimized", feeds, n, dump, seen, error);
  hn_free(seen);
  return status;
}
