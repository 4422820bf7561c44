/* cuBLASLt's answer about a product, kept with the device, and the product put on a queue. */
#ifndef HN_CUDA_LIBRARIES_LT_ANSWER_H
#define HN_CUDA_LIBRARIES_LT_ANSWER_H

#include "backends/cuda/driver/cuda.h"
#include "backends/cuda/libraries/lt_matmul.h"

/* Whether cuBLASLt proposes more than `candidate` algorithms for it; false with the reason. */
bool hn_lt_answers(const hn_lt_spec *spec, const hone_machine *m, uint32_t candidate, hone_reason *why);

/* On a dry queue: asks, and launches nothing. */
hone_status hn_lt_launch(hn_cuda_queue *q, const hn_lt_spec *spec, uint32_t candidate, const hn_lt_place *at,
                         hone_error *error);

#endif
