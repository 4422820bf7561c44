/* Operators by their definition: row-major tensors of any number types, a few launches of kernels that share
 * one struct of numbers (device/direct.cuh). For operators that are rare or irregular, where reach matters
 * more than the last of the bandwidth. */
#ifndef HN_CUDA_STEP_DIRECT_H
#define HN_CUDA_STEP_DIRECT_H

#include "backends/cuda/device/direct_args.h"
#include "backends/cuda/step/step.h"
#include "backends/tactic.h"

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
  double unread;          /* bytes of tables that a run does not read */
  double seconds;         /* beside bytes and launches: what the arithmetic takes */
} hn_cuda_direct;

/* Describes a step: texts, numbers and launches. Types and dimensions are known, tensors row-major. */
typedef bool (*hn_cuda_direct_plan)(const hone_step *s, hn_cuda_direct *plan, hone_reason *why);

typedef struct hn_cuda_direct_config {
  hn_cuda_direct_plan plan;
} hn_cuda_direct_config;

HN_FAMILY_SIZED(hn_cuda_direct);

/* Appends a launch: a thread (threads 0) or a block of `threads` for each of `count` things. */
void hn_cuda_direct_add(hn_cuda_direct *p, const char *entry, int64_t count, uint32_t threads);
/* Appends "#define name value" to the prefix. */
void hn_cuda_direct_define(hn_cuda_direct *p, const char *name, int64_t value);
/* Fetches the value of a constant integer input; false where the input is there and not constant. */
bool hn_cuda_constant_int(const hone_step *s, uint32_t input, int64_t otherwise, int64_t *value,
                          hone_reason *why);

/* A tactic whose plan is all that it has: hn_cuda_direct_tactic(lrn, "LRN", plan). */
#define hn_cuda_direct_tactic(NAME, ANCHOR, ...)                                                             \
  HN_TACTIC_SIZED(cuda, NAME, ANCHOR, 1, hn_cuda_direct, __VA_ARGS__)
/* The same with a blob that PACK fills. */
#define HN_CUDA_DIRECT_PACKED(NAME, ANCHOR, PLAN, PACK)                                                      \
  HN_TACTIC_CONFIGURED(NAME, hn_cuda_direct, PLAN)                                                           \
  HN_TACTIC_NEED(NAME, hn_cuda_direct)                                                                       \
  HN_TACTIC(cuda, NAME, ANCHOR, 1, .accepts = NAME##_accepts, .cost = NAME##_cost, .need = NAME##_need,      \
            .prepack = PACK, .run = NAME##_run)

#endif
