/* cuDNN's answer about a graph, kept with the device, and the graph put on a queue. */
#ifndef HN_CUDA_LIBRARIES_CUDNN_ANSWER_H
#define HN_CUDA_LIBRARIES_CUDNN_ANSWER_H

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/libraries/cudnn_graph.h"

/* Whether cuDNN proposes more than `candidate` engines for it; false with the reason. */
bool hn_cudnn_answers(const hn_cudnn_spec *spec, const hone_machine *m, uint32_t candidate, hone_reason *why);

/* data: one address for each tensor. On a dry queue: builds the plan, and launches nothing. */
hone_status hn_cudnn_launch(hn_cuda_queue *q, const hn_cudnn_spec *spec, uint32_t candidate,
                            void *const *data, void *workspace, hone_error *error);

#endif
