#include "backends/cuda/libraries/cudnn_answer.h"

#include "backends/cuda/driver/dl_cudnn.h"
#include "backends/cuda/driver/libraries.h"
#include "backends/cuda/libraries/library_answer.h"
#include "base/error.h"

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

bool hn_cudnn_answers(const hn_cudnn_spec *spec, const hone_machine *m, uint32_t candidate,
                      hone_reason *why) {
  char key[HN_CUDNN_KEY];
  hn_cudnn_key(spec, key, sizeof key);
  return hn_library_accepts(&cudnn, m, key, spec, candidate, why);
}

hone_status hn_cudnn_launch(hn_cuda_queue *q, const hn_cudnn_spec *spec, uint32_t candidate,
                            void *const *data, void *workspace, hone_error *error) {
  const hn_library_answer *a;
  char key[HN_CUDNN_KEY];
  void *handle;
  hn_cudnn_key(spec, key, sizeof key);
  hone_status status = hn_library_answer_of(&cudnn, q, key, spec, &a, error);
  if (status || (status = hn_cuda_cudnn_take(q, &handle, error))) return status;
  status = hn_cudnn_graph_prepare(a->plan, handle, candidate, error);
  if (!status && !hn_cuda_dry(q))
    status = hn_cudnn_graph_run(a->plan, candidate, handle, data, workspace, error);
  hn_cuda_cudnn_put(q, handle);
  return status;
}

#else

bool hn_cudnn_answers(const hn_cudnn_spec *spec, const hone_machine *m, uint32_t candidate,
                      hone_reason *why) {
  (void)spec, (void)m, (void)candidate;
  return hn_refuse(why, "hone was built without cuDNN's headers");
}

hone_status hn_cudnn_launch(hn_cuda_queue *q, const hn_cudnn_spec *spec, uint32_t candidate,
                            void *const *data, void *workspace, hone_error *error) {
  (void)q, (void)spec, (void)candidate, (void)data, (void)workspace;
  return hn_fail(error, HONE_ERROR_INTERNAL, "hone was built without cuDNN's headers");
}

#endif
