/* The tactics of lt_step.h: the algorithms for a product are kept with the device. */
#include "backends/cuda/common/epilogue.h"
#include "backends/cuda/common/library_step.h"
#include "backends/cuda/common/lt_step.h"
#include "backends/cuda/common/step.h"
#include "backends/cuda/dl_cublaslt.h"
#include "backends/cuda/libraries.h"
#include "base/error.h"
#include "base/mem.h"

#if HN_HAVE_CUBLASLT

/* What cuBLASLt said about a product: its algorithms, or why there are none. */
typedef struct answer {
  hn_lt_plan *plan;
  hone_error error;
} answer;

static void answer_free(void *object) {
  answer *a = object;
  hn_lt_plan_close(a->plan);
  hn_free(a);
}

static hone_status ask(hn_cuda_queue *q, const hn_lt_spec *spec, const answer **out, void **handle,
                       hone_error *error) {
  char key[HN_LT_KEY];
  hn_lt_key(spec, key, sizeof key);
  hone_status status = hn_cuda_cublaslt(q, handle, error);
  if (status || (*out = hn_cuda_find(q, key))) return status;
  answer *a = hn_calloc(1, sizeof *a);
  if (a) {
    hn_lt_plan_open(spec, *handle, &a->plan, &a->error);
    *out = hn_cuda_keep(q, key, a, answer_free);
  }
  return *out ? HONE_OK : hn_fail_memory(error, sizeof *a, "a cuBLASLt plan");
}

bool hn_lt_accepts(const hone_step *s, const hone_machine *m, const hn_lt_config *config, hone_reason *why) {
  hn_lt_step l;
  hone_error error = {.status = HONE_OK};
  const answer *a = NULL;
  void *handle;
  if (!(m->libraries & HONE_LIB_CUBLASLT)) return hn_refuse(why, "cuBLASLt is not on this machine");
  if (!config->describe(s, &l, why)) return false;
  hn_cuda_queue *q = hn_cuda_queue_for(m, why);
  if (!q) return false;
  bool good = false;
  if (ask(q, &l.spec, &a, &handle, &error))
    hn_refuse(why, "%.150s", error.what);
  else if (!a->plan)
    hn_refuse(why, "%.150s", a->error.what);
  else if (config->candidate >= hn_lt_plan_candidates(a->plan))
    hn_refuse(why, "cuBLASLt has %u algorithms for it", hn_lt_plan_candidates(a->plan));
  else
    good = true;
  hn_cuda_queue_leave(q);
  return good;
}

static const void *place(const hone_step_run *r, const hn_lt_source *x) {
  if (!x->there) return NULL;
  return x->in_blob ? (const unsigned char *)r->blob + x->at : r->in[x->input];
}

hone_status hn_lt_run(const hone_step_run *r, const hn_lt_config *config, hone_error *error) {
  hn_lt_step l;
  hone_reason why = {""};
  const answer *a = NULL;
  void *handle;
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  if (!config->describe(r->step, &l, &why))
    return hn_fail(error, HONE_ERROR_INTERNAL, "cuBLASLt: %s", why.text);
  hone_status status = ask(q, &l.spec, &a, &handle, error);
  if (status) return status;
  if (!a->plan) {
    if (error) *error = a->error;
    return a->error.status;
  }
  if (config->candidate >= hn_lt_plan_candidates(a->plan))
    return hn_fail(error, HONE_ERROR_UNSUPPORTED, "cuBLASLt has no algorithm %u for this product",
                   config->candidate);
  if (hn_cuda_dry(q)) return HONE_OK;
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
