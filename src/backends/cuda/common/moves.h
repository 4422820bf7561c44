/* Steps that are lists of copies between boxes (optimize/lower/boxes.h): as few launches as there are groups
 * of 12 boxes, and one for each that transposes. Channel padding of outputs becomes zeros. */
#ifndef HN_CUDA_COMMON_MOVES_H
#define HN_CUDA_COMMON_MOVES_H

#include "backends/cuda/cuda.h"
#include "optimize/lower/boxes.h"

bool hn_cuda_moves_accepts(hn_boxes_build build, const hone_step *s, hone_reason *why);
double hn_cuda_moves_cost(hn_boxes_build build, const hone_step *s, const hone_machine *m);
hone_status hn_cuda_moves_run(hn_boxes_build build, const hone_step_run *run, hone_error *error);

/* Copies the whole of a tensor to another of equal bytes (both dense or of one layout): for tactics that
 * change parts of a copy. */
hone_status hn_cuda_moves_whole(hn_cuda_queue *q, void *to, const void *from, int64_t bytes,
                                hone_error *error);

/* Tactics that need nothing but their arguments. */
hone_status hn_cuda_need_nothing(const hone_step *s, const hone_machine *m, hone_tactic_need *n,
                                 hone_error *error);

/* Defines the tactic `nm` for the anchor `op` from the function that reads its boxes. */
#define HN_CUDA_MOVES_TACTIC(nm, op, build)                                                                  \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    (void)m;                                                                                                 \
    return hn_cuda_moves_accepts(build, s, why);                                                             \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_cuda_moves_cost(build, s, m); }  \
  static hone_status run(const hone_step_run *r, hone_error *error) {                                        \
    return hn_cuda_moves_run(build, r, error);                                                               \
  }                                                                                                          \
  const struct hone_tactic_desc hn_cuda_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                     \
                                                       .name = #nm,                                          \
                                                       .device = "cuda",                                     \
                                                       .anchor = op,                                         \
                                                       .version = 1,                                         \
                                                       .accepts = accepts,                                   \
                                                       .cost = cost,                                         \
                                                       .need = hn_cuda_need_nothing,                         \
                                                       .run = run}

#endif
