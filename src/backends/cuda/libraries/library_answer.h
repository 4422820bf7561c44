/* What one of NVIDIA's libraries answers about a description of a step: asked once, kept with the device. */
#ifndef HN_CUDA_LIBRARIES_LIBRARY_ANSWER_H
#define HN_CUDA_LIBRARIES_LIBRARY_ANSWER_H

#include "backends/cuda/driver/cuda.h"

typedef struct hn_library_answer {
  void *plan;          /* what the library made of the description; NULL: nothing, because of `error` */
  uint32_t candidates; /* engines or algorithms that it proposes */
  hone_error error;
  void (*close)(void *plan);
} hn_library_answer;

/* Asks the library: fills the answer, plan and candidates or its error. Fails when there was nobody to ask.
 */
typedef hone_status hn_library_ask(hn_cuda_queue *q, const void *spec, hn_library_answer *answer,
                                   hone_error *error);

typedef struct hn_library {
  const char *name, *candidates; /* "cuDNN", "engines" */
  hn_library_ask *ask;
  void (*close)(void *plan);
} hn_library;

/* The answer about `spec`, whose key (all that the answer depends on) is given; fails when there is no plan.
 */
hone_status hn_library_answer_of(const hn_library *library, hn_cuda_queue *q, const char *key,
                                 const void *spec, const hn_library_answer **out, hone_error *error);
/* Whether the library proposes more than `candidate` for it. */
bool hn_library_accepts(const hn_library *library, const hone_machine *m, const char *key, const void *spec,
                        uint32_t candidate, hone_reason *why);

#endif
