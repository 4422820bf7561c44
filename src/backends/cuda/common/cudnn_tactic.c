/* The tactics of cudnn_step.h: cuDNN's answer about a step is kept with the device, its plan is built when
 * the step is prepared. */
#include "backends/cuda/common/cudnn_step.h"
#include "backends/cuda/common/library_step.h"
#include "backends/cuda/dl_cudnn.h"
#include "backends/cuda/libraries.h"
#include "base/error.h"
#include "base/mem.h"

#if HN_HAVE_CUDNN

/* What cuDNN said about a description: the graph, or why there is none. */
typedef struct answer {
  hn_cudnn_graph *graph;
  hone_error error;
} answer;

static void answer_free(void *object) {
  answer *a = object;
  hn_cudnn_graph_close(a->graph);
  hn_free(a);
}

static hone_status ask(hn_cuda_queue *q, const hn_cudnn_spec *spec, const answer **out, hone_error *error) {
  char key[HN_CUDNN_KEY];
  hn_cudnn_key(spec, key, sizeof key);
  if ((*out = hn_cuda_find(q, key))) return HONE_OK;
  void *handle;
  hone_status status = hn_cuda_cudnn_take(q, &handle, error);
  if (status) return status;
  answer *a = hn_calloc(1, sizeof *a);
  if (a) {
    hn_cudnn_graph_open(spec, handle, NULL, &a->graph, &a->error);
    *out = hn_cuda_keep(q, key, a, answer_free);
  }
  hn_cuda_cudnn_put(q, handle);
  return *out ? HONE_OK : hn_fail_memory(error, sizeof *a, "a cuDNN graph");
}

bool hn_cudnn_accepts(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                      hone_reason *why) {
  hn_cudnn_step c;
  hone_error error = {.status = HONE_OK};
  const answer *a = NULL;
  if (!(m->libraries & HONE_LIB_CUDNN)) return hn_refuse(why, "cuDNN is not on this machine");
  if (!config->kind->of(s, &c, why)) return false;
  hn_cuda_queue *q = hn_cuda_queue_for(m, why);
  if (!q) return false;
  bool good = false;
  if (ask(q, &c.spec, &a, &error))
    hn_refuse(why, "%.150s", error.what);
  else if (!a->graph)
    hn_refuse(why, "%.150s", a->error.what);
  else if (config->candidate >= hn_cudnn_graph_candidates(a->graph))
    hn_refuse(why, "cuDNN has %u engines for it", hn_cudnn_graph_candidates(a->graph));
  else
    good = true;
  hn_cuda_queue_leave(q);
  return good;
}

hone_status hn_cudnn_run(const hone_step_run *r, const hn_cudnn_config *config, hone_error *error) {
  hn_cudnn_step c;
  hone_reason why = {""};
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const answer *a = NULL;
  void *data[HN_CUDNN_TENSORS] = {NULL}, *handle;
  if (!config->kind->of(r->step, &c, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuDNN: %s", why.text);
  hone_status status = ask(q, &c.spec, &a, error);
  if (status) return status;
  if (!a->graph) {
    if (error) *error = a->error;
    return a->error.status;
  }
  for (uint32_t i = 0; i < c.spec.n_tensors; i++) {
    const hn_cudnn_source *f = &c.source[i];
    const void *at = f->place == HN_CUDNN_IN    ? r->in[f->input]
                     : f->place == HN_CUDNN_OUT ? r->out[0]
                                                : (const unsigned char *)r->blob + f->at;
    data[i] = (void *)(uintptr_t)at;
  }
  if ((status = hn_cuda_cudnn_take(q, &handle, error))) return status;
  status = hn_cudnn_graph_prepare(a->graph, handle, config->candidate, error);
  if (!status && !hn_cuda_dry(q))
    status = hn_cudnn_graph_run(a->graph, config->candidate, handle, data, r->workspace, error);
  hn_cuda_cudnn_put(q, handle);
  return status;
}

#else

bool hn_cudnn_accepts(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                      hone_reason *why) {
  (void)s, (void)m, (void)config;
  return hn_refuse(why, "hone was built without cuDNN's headers");
}

hone_status hn_cudnn_run(const hone_step_run *r, const hn_cudnn_config *config, hone_error *error) {
  (void)r, (void)config;
  return hn_fail(error, HONE_ERROR_INTERNAL, "hone was built without cuDNN's headers");
}

#endif

/* Later candidates are for measurements: the heuristics' first is taken where there are none. */
double hn_cudnn_cost(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config) {
  return config->kind->seconds(s, m) * (1 + 0.02 * config->candidate);
}

hone_status hn_cudnn_need(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                          hone_tactic_need *n, hone_error *error) {
  hn_cudnn_step c;
  hone_reason why = {""};
  (void)m;
  if (!config->kind->of(s, &c, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuDNN: %s", why.text);
  n->blob_bytes = c.blob_bytes;
  n->workspace_bytes = hn_library_workspace(s);
  n->packed = c.packed;
  return HONE_OK;
}

hone_status hn_cudnn_prepack(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                             void *blob, hone_error *error) {
  hn_cudnn_step c;
  hone_reason why = {""};
  (void)m;
  if (!config->kind->of(s, &c, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuDNN: %s", why.text);
  hn_cudnn_pack(s, config->kind, &c, blob);
  return HONE_OK;
}
