/* Operators by their definition: row-major tensors of any number types, a few launches of kernels that share
 * one struct of numbers (device/direct.cuh). For operators that are rare or irregular, where reach matters
 * more than the last of the bandwidth. */
#ifndef HN_CUDA_COMMON_DIRECT_H
#define HN_CUDA_COMMON_DIRECT_H

#include <hone/plugin.h>

#include "backends/cuda/common/step.h"
#include "backends/cuda/device/direct_args.h"

enum { HN_DIRECT_LAUNCHES = 4 };

typedef struct hn_cuda_direct_launch {
  const char *entry;
  int64_t count;    /* of threads, or of blocks */
  uint32_t threads; /* of a block; 0: single threads in blocks of 128 */
  uint32_t times;   /* how often in a row; 0: once */
} hn_cuda_direct_launch;

typedef struct hn_cuda_direct {
  hn_direct_args args; /* p and f; addresses come with the run */
  const char *text;    /* stem of the device text */
  char defines[512];   /* what the text wants beside the types */
  hn_cuda_direct_launch launch[HN_DIRECT_LAUNCHES];
  uint32_t launches;
  uint32_t zeroed;        /* bit i: output i begins as zeros */
  size_t workspace, blob; /* bytes */
  bool counted;           /* the workspace begins with dimensions for the host (device/counted_args.h) */
  double seconds;         /* beside bytes and launches: what the arithmetic takes */
} hn_cuda_direct;

/* Describes a step: texts, numbers and launches. Types and dimensions are known, tensors row-major. */
typedef bool (*hn_cuda_direct_plan)(const hone_step *s, hn_cuda_direct *plan, hone_reason *why);

bool hn_cuda_direct_accepts(hn_cuda_direct_plan plan, const hone_step *s, hone_reason *why);
double hn_cuda_direct_cost(hn_cuda_direct_plan plan, const hone_step *s, const hone_machine *m);
hone_status hn_cuda_direct_need(hn_cuda_direct_plan plan, const hone_step *s, hone_tactic_need *n,
                                hone_error *error);
hone_status hn_cuda_direct_run(hn_cuda_direct_plan plan, const hone_step_run *r, hone_error *error);

/* Appends a launch: a thread (threads 0) or a block of `threads` for each of `count` things. */
void hn_cuda_direct_add(hn_cuda_direct *p, const char *entry, int64_t count, uint32_t threads);
/* Appends "#define name value" to the prefix. */
void hn_cuda_direct_define(hn_cuda_direct *p, const char *name, int64_t value);
/* Fetches the value of a constant integer input; false where the input is there and not constant. */
bool hn_cuda_constant_int(const hone_step *s, uint32_t input, int64_t otherwise, int64_t *value,
                          hone_reason *why);

#define HN_CUDA_DIRECT_PACKED(nm, op, plan, pack)                                                            \
  static bool accepts(const hone_step *s, const hone_machine *m, hone_reason *why) {                         \
    (void)m;                                                                                                 \
    return hn_cuda_direct_accepts(plan, s, why);                                                             \
  }                                                                                                          \
  static double cost(const hone_step *s, const hone_machine *m) { return hn_cuda_direct_cost(plan, s, m); }  \
  static hone_status need(const hone_step *s, const hone_machine *m, hone_tactic_need *n, hone_error *e) {   \
    (void)m;                                                                                                 \
    return hn_cuda_direct_need(plan, s, n, e);                                                               \
  }                                                                                                          \
  static hone_status run(const hone_step_run *r, hone_error *e) { return hn_cuda_direct_run(plan, r, e); }   \
  const struct hone_tactic_desc hn_cuda_tactic_##nm = {HONE_DESC_HEAD(hone_tactic_desc),                     \
                                                       .name = #nm,                                          \
                                                       .device = "cuda",                                     \
                                                       .anchor = op,                                         \
                                                       .version = 1,                                         \
                                                       .accepts = accepts,                                   \
                                                       .cost = cost,                                         \
                                                       .need = need,                                         \
                                                       .prepack = pack,                                      \
                                                       .run = run}
#define HN_CUDA_DIRECT(nm, op, plan) HN_CUDA_DIRECT_PACKED(nm, op, plan, NULL)

#endif
