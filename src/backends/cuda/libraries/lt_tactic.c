/* The tactics of lt_step.h: the algorithms for a product are kept with the device. */
#include "backends/cuda/driver/dl_cublaslt.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/libraries/library_answer.h"
#include "backends/cuda/libraries/library_step.h"
#include "backends/cuda/libraries/lt_step.h"
#include "backends/cuda/step/epilogue.h"
#include "backends/cuda/step/step.h"
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

bool hn_lt_accepts(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_reason *why) {
  hn_lt_step l;
  char key[HN_LT_KEY];
  if (!(m->libraries & HONE_LIB_CUBLASLT)) return hn_refuse(why, "cuBLASLt is not on this machine");
  if (!config->describe(s, &l, why)) return false;
  hn_lt_key(&l.spec, key, sizeof key);
  return hn_library_accepts(&cublaslt, m, key, &l.spec, config->candidate, why);
}

static const void *place(const hone_step_run *r, const hn_lt_source *x) {
  if (!x->there) return NULL;
  return x->in_blob ? (const unsigned char *)r->blob + x->at : r->in[x->input];
}

hone_status hn_lt_run(const hone_step_run *r, const hn_lt_config *config, hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  const hn_library_answer *a;
  char key[HN_LT_KEY];
  void *handle;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  if (!config->describe(r->step, &l, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  hn_lt_key(&l.spec, key, sizeof key);
  hone_status status = hn_library_answer_of(&cublaslt, q, key, &l.spec, &a, error);
  if (status) return status;
  if (config->candidate >= a->candidates)
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuBLASLt has no algorithm %u for this product",
                   config->candidate);
  if (hn_cuda_dry(q)) return HONE_OK;
  if ((status = hn_cuda_cublaslt(q, &handle, error))) return status;
  return hn_lt_plan_run(a->plan, config->candidate, handle, place(r, &l.a), place(r, &l.b), place(r, &l.c),
                        place(r, &l.bias), r->out[0], r->workspace, hn_cuda_stream(q), error);
}

#else

bool hn_lt_accepts(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_reason *why) {
  (void)s, (void)m, (void)config;
  return hn_refuse(why, "hone was built without cuBLASLt's headers");
}

hone_status hn_lt_run(const hone_step_run *r, const hn_lt_config *config, hone_error *error) {
  (void)r, (void)config;
  return hn_fail(error, HONE_ERROR_INTERNAL, "hone was built without cuBLASLt's headers");
}

#endif

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_lt_cost(const hone_step *s, const hone_machine *m, const hn_lt_config *config) {
  hn_lt_step l;
  if (!config->describe(s, &l, NULL)) return 1e9;
  const hn_lt_spec *p = &l.spec;
  const double bytes = hn_cuda_bytes(s) + hn_cuda_epilogue_bytes(s);
  return hn_library_seconds(m, p->dtype, p->math, (double)p->m * (double)p->batches, (double)p->n,
                            (double)p->k, bytes, 0.62) *
         (1 + 0.02 * config->candidate);
}

hone_status hn_lt_need(const hone_step *s, const hone_machine *m, const hn_lt_config *config,
                       hone_tactic_need *n, hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  (void)m;
  if (!config->describe(s, &l, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  n->blob_bytes = l.blob_bytes;
  n->workspace_bytes = hn_library_workspace(s);
  n->packed = l.packed;
  return HONE_OK;
}

hone_status hn_lt_prepack(const hone_step *s, const hone_machine *m, const hn_lt_config *config, void *blob,
                          hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  (void)m;
  if (!config->describe(s, &l, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  hn_lt_pack(s, &l, blob);
  return HONE_OK;
}

void hn_lt_work(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_work *work) {
  (void)m, (void)config;
  if (s->input[0].desc.dtype == HONE_DTYPE_F32 && s->math >= HONE_MATH_TF32)
    work->arithmetic = HONE_ARITHMETIC_TF32;
}
