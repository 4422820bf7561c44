/* The tactics of cudnn_step.h: cuDNN's answer about a step is kept with the device, its plan is built when
 * the step is prepared. */
#include "backends/cuda/driver/dl_cudnn.h"
#include "base/dims.h"
#include "optimize/step/anchor.h"
#include "backends/cuda/driver/context.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/libraries/cudnn_step.h"
#include "backends/cuda/libraries/library_answer.h"
#include "backends/cuda/libraries/library_step.h"
#include "base/error.h"

#include <string.h>

#if HN_HAVE_CUDNN

static hone_status ask(hn_cuda_queue *q, const void *spec, hn_library_answer *answer, hone_error *error) {
  void *handle;
  hn_cudnn_graph *graph = NULL;
  hone_status status = hn_cuda_cudnn_take(q, &handle, error);
  if (status) return status;
  if (!hn_cudnn_graph_open(spec, handle, NULL, &graph, &answer->error))
    answer->plan = graph, answer->candidates = hn_cudnn_graph_candidates(graph);
  hn_cuda_cudnn_put(q, handle);
  return HONE_OK;
}

static const hn_library cudnn = {"cuDNN", "engines", ask, hn_cudnn_graph_close};

/* Rows (or columns) of whole 16-byte words in all three matrices of a product. */
static bool whole_rows(const hn_cudnn_spec *s) {
  for (int i = 0; s->matmul && i < HN_CUDNN_EXTRA; i++) {
    const hn_cudnn_tensor *t = &s->tensor[i];
    const int64_t step = t->stride[1] > t->stride[2] ? t->stride[1] : t->stride[2];
    if (step * (int64_t)hone_dtype_size(t->dtype) % 16 != 0) return false;
  }
  return true;
}

bool hn_cudnn_accepts(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                      hone_reason *why) {
  hn_cudnn_step c;
  char key[HN_CUDNN_KEY];
  if (!(m->libraries & HONE_LIB_CUDNN)) return hn_refuse(why, "cuDNN is not on this machine");
  if (!config->kind->of(s, &c, why)) return false;
  /* Version 9.14 on an H100: the third engine proposed for f32 [37,65] x [65,48] and Relu left zeros. */
  if (config->candidate && !whole_rows(&c.spec))
    return hn_refuse(why, "cuDNN's later engines are not trusted with rows of broken 16-byte words");
  hn_cudnn_key(&c.spec, key, sizeof key);
  return hn_library_accepts(&cudnn, m, key, &c.spec, config->candidate, why);
}

hone_status hn_cudnn_run(const hone_step_run *r, const hn_cudnn_config *config, hone_error *error) {
  hn_cudnn_step c;
  hone_reason why = {""};
  hn_cuda_queue *q = hn_cuda_queue_of(r);
  const hn_library_answer *a;
  char key[HN_CUDNN_KEY];
  void *data[HN_CUDNN_TENSORS] = {NULL}, *handle;
  if (!config->kind->of(r->step, &c, &why)) return hn_fail(error, HONE_ERROR_INTERNAL, "cuDNN: %s", why.text);
  hn_cudnn_key(&c.spec, key, sizeof key);
  hone_status status = hn_library_answer_of(&cudnn, q, key, &c.spec, &a, error);
  if (status) return status;
  for (uint32_t i = 0; i < c.spec.n_tensors; i++) {
    const hn_cudnn_source *f = &c.source[i];
    const void *at = f->place == HN_CUDNN_IN    ? r->in[f->input]
                     : f->place == HN_CUDNN_OUT ? r->out[0]
                                                : (const unsigned char *)r->blob + f->at;
    data[i] = (void *)(uintptr_t)at;
  }
  if ((status = hn_cuda_cudnn_take(q, &handle, error))) return status;
  status = hn_cudnn_graph_prepare(a->plan, hn_cuda_device(q), handle, config->candidate, error);
  if (!status) status = hn_cuda_in_order(q, r->workspace, error);
  if (!status && !hn_cuda_dry(q))
    status = hn_cudnn_graph_run(a->plan, config->candidate, handle, data, r->workspace, error);
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

/* Later candidates are for measurements: where there are none, the heuristics' first is taken, or one that
 * was found to be faster on such a device. */
double hn_cudnn_cost(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config) {
  return config->kind->seconds(s, m, config->candidate) * (1 + 0.02 * config->candidate);
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

/* Whether the engine is a Winograd convolution, which multiplies less often than the formula, is cuDNN's
 * choice, and may be so wherever a kernel is wider than a pixel (cudnn_graph.c lets f32 ones alone pass). */
void hn_cudnn_work(const hone_step *s, const hone_machine *m, const hn_cudnn_config *config,
                   hone_work *work) {
  (void)m, (void)config;
  if (s->input[0].desc.dtype != HONE_DTYPE_F32 || s->math < HONE_MATH_F32) return;
  const hone_tensor_desc *w = &s->input[1].desc;
  const bool conv = hn_anchor_of_step(s).product == HONE_PRODUCT_CONV;
  if (conv && hn_dims(w, 2, w->rank) > 1)
    work->arithmetic = HONE_ARITHMETIC_UNKNOWN;
  else if (s->math >= HONE_MATH_TF32)
    work->arithmetic = HONE_ARITHMETIC_TF32;
}
