#include "backends/cuda/libraries/library_answer.h"

#include "backends/cuda/driver/libraries.h"
#include "base/error.h"
#include "base/mem.h"

static void answer_free(void *object) {
  hn_library_answer *a = object;
  if (a->plan) a->close(a->plan);
  hn_free(a);
}

hone_status hn_library_answer_of(const hn_library *library, hn_cuda_queue *q, const char *key,
                                 const void *spec, const hn_library_answer **out, hone_error *error) {
  if (!(*out = hn_cuda_find(q, key))) {
    hn_library_answer *a = hn_calloc(1, sizeof *a);
    if (!a) return hn_fail_memory(error, sizeof *a, "a library's answer");
    a->close = library->close;
    const hone_status asked = library->ask(q, spec, a, error);
    if (asked) {
      answer_free(a);
      return asked;
    }
    if (!(*out = hn_cuda_keep(q, key, a, answer_free)))
      return hn_fail_memory(error, sizeof *a, "a library's answer");
  }
  if ((*out)->plan) return HONE_OK;
  if (error) *error = (*out)->error;
  return (*out)->error.status;
}

bool hn_library_accepts(const hn_library *library, const hone_machine *m, const char *key, const void *spec,
                        uint32_t candidate, hone_reason *why) {
  const hn_library_answer *a = NULL;
  hone_error error = {.status = HONE_OK};
  hn_cuda_queue *q = hn_cuda_queue_for(m, why);
  if (!q) return false;
  bool good = false;
  if (hn_library_answer_of(library, q, key, spec, &a, &error))
    hn_refuse(why, "%.150s", error.what);
  else if (candidate >= a->candidates)
    hn_refuse(why, "%s has %u %s for it", library->name, a->candidates, library->candidates);
  else
    good = true;
  hn_cuda_queue_leave(q);
  return good;
}
