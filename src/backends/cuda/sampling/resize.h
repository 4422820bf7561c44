/* Resize and Upsample with constant scales or sizes: any mode, any dimensions (sampling/resize.cu). */
#ifndef HN_CUDA_SAMPLING_RESIZE_H
#define HN_CUDA_SAMPLING_RESIZE_H

#include "backends/tactic.h"

bool hn_cuda_resize_accepts(const hone_step *s, const hone_machine *m, hone_reason *why);
double hn_cuda_resize_cost(const hone_step *s, const hone_machine *m);
hone_status hn_cuda_resize_need(const hone_step *s, const hone_machine *m, hone_tactic_need *need,
                                hone_error *error);
hone_status hn_cuda_resize_prepack(const hone_step *s, const hone_machine *m, void *blob, hone_error *error);
hone_status hn_cuda_resize_run(const hone_step_run *r, hone_error *error);

#define hn_cuda_resize_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC(cuda, NAME, ANCHOR, 1, .accepts = hn_cuda_resize_accepts, .cost = hn_cuda_resize_cost,           \
            .need = hn_cuda_resize_need, .prepack = hn_cuda_resize_prepack, .run = hn_cuda_resize_run)

#endif
