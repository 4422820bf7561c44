#include "backends/cuda/libraries/lt_answer.h"

#include "backends/cuda/driver/dl_cublaslt.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/libraries/library_answer.h"
#include "base/error.h"

#if HN_HAVE_CUBLASLT

static hone_status ask(hn_cuda_queue *q, const void *spec, hn_library_answer *answer, hone_error *error) {
  void *handle;
  hn_lt_plan *plan = NULL;
  hone_status status = hn_cuda_cublaslt(q, &handle, error);
  if (status) return status;
  if (!hn_lt_plan_open(spec, handle, &plan, &answer->error))
    answer->plan = plan, answer->candidates = hn_lt_plan_candidates(plan);
  return HONE_OK;
}

static const hn_library cublaslt = {"cuBLASLt", "algorithms", ask, hn_lt_plan_close};

bool hn_lt_answers(const hn_lt_spec *spec, const hone_machine *m, uint32_t candidate, hone_reason *why) {
  char key[HN_LT_KEY];
  hn_lt_key(spec, key, sizeof key);
  return hn_library_accepts(&cublaslt, m, key, spec, candidate, why);
}

hone_status hn_lt_launch(hn_cuda_queue *q, const hn_lt_spec *spec, uint32_t candidate, const hn_lt_place *at,
                         hone_error *error) {
  const hn_library_answer *a;
  char key[HN_LT_KEY];
  void *handle;
  hn_lt_key(spec, key, sizeof key);
  hone_status status = hn_library_answer_of(&cublaslt, q, key, spec, &a, error);
  if (status) return status;
  if (candidate >= a->candidates)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuBLASLt has no algorithm %u for this product", candidate);
  if (hn_cuda_dry(q)) return HONE_OK;
  if ((status = hn_cuda_cublaslt(q, &handle, error))) return status;
  return hn_lt_plan_run(a->plan, candidate, handle, at, hn_cuda_stream(q), error);
}

#else

bool hn_lt_answers(const hn_lt_spec *spec, const hone_machine *m, uint32_t candidate, hone_reason *why) {
  (void)spec, (void)m, (void)candidate;
  return hn_refuse(why, "hone was built without cuBLASLt's headers");
}

hone_status hn_lt_launch(hn_cuda_queue *q, const hn_lt_spec *spec, uint32_t candidate, const hn_lt_place *at,
                         hone_error *error) {
  (void)q, (void)spec, (void)candidate, (void)at;
  return hn_fail(error, HONE_ERROR_INTERNAL, "hone was built without cuBLASLt's headers");
}

#endif
