/* softmax(scale Q K^T + masks) V over any number of batch dimensions, read and written where the tensors lie.
 *
 * A task is some rows of Q of one batch. Keys and values come in blocks: K^T and V of a block are packed for
 * the gemm kernel, then for some rows at a time the scores are made, turned into weights and multiplied with
 * V, all in scratch that stays in L1 and L2. With more than one block the result is kept unnormalised and
 * rescaled whenever a row's maximum grows (online softmax), so memory does not grow with the length of the
 * sequence. Exact up to rounding. Few rows are not worth the packing: they take keys and values from where
 * they lie. */
#ifndef HN_CPU_ATTENTION_ATTENTION_DRIVER_H
#define HN_CPU_ATTENTION_ATTENTION_DRIVER_H

#include <hone/plugin.h>

#include "backends/cpu/product/conv_driver.h"
#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/transpose/transpose.h"

typedef struct hn_attention_mask {
  hn_mask_kind kind;
  float value;
  uint32_t input;                         /* which of exec's pointers */
  int64_t batch[HONE_MAX_RANK], row, col; /* distances in elements; col 0 or 1 */
} hn_attention_mask;

enum { HN_ATTENTION_HEADS = 16 }; /* that are mixed, at most */

typedef struct hn_attention {
  hn_isa isa;
  int64_t rows, keys, depth, depth_v; /* Q: rows x depth, K: keys x depth, V: keys x depth_v */
  int32_t n_batch;
  int64_t batch[HONE_MAX_RANK]; /* sizes; distances in floats: */
  int64_t q_batch[HONE_MAX_RANK], k_batch[HONE_MAX_RANK], v_batch[HONE_MAX_RANK], y_batch[HONE_MAX_RANK];
  int64_t q_row, k_row, k_col, v_row, y_row; /* columns of Q, V and the result are neighbours */
  float scale;
  float cap;        /* not 0: scores are cap tanh(scale q k) before masks (heads are not mixed) */
  bool nan_to_zero; /* weights of a row that are no numbers, as where it sees no key, are 0 instead */
  uint32_t n_masks;
  hn_attention_mask mask[HN_ATTENTION_MASKS];
  /* Row r sees the keys from r + place - window to r + place only, f32 arithmetic alone; where a side is
   * open: the first or the last one. */
  bool ends, begins;
  int64_t place, window;
  /* Heads are mixed (attention_mixed.c), f32 arithmetic alone; 0: each goes by itself. Batch b is head b
   * modulo `heads`. masks_before of the masks come before the first mix. */
  int64_t heads;
  bool mix_before, mix_behind;
  uint32_t masks_before;
  float factor[2][HN_ATTENTION_HEADS * HN_ATTENTION_HEADS],
      sum[2][HN_ATTENTION_HEADS]; /* of the mix before and behind: [out][in], and what is added */
  /* A number beside the scores of each row, which takes a part of its weights and gives nothing (f32
   * arithmetic alone); sink NULL: zeros. Distances in elements. */
  bool sinks;
  const float *sink;
  int64_t sink_batch[HONE_MAX_RANK], sink_row;
  int32_t parts; /* 0: f32 arithmetic; else that of the gemm_bf16 kernels: 1 or 2 bf16 parts of a number */
  /* Lies in bf16, with one part alone; the result then takes keys of one block. */
  bool narrow_q, narrow_k, narrow_v, narrow_y;
  /* filled by hn_attention_plan: */
  bool direct;        /* nothing is packed */
  bool is_short;      /* few keys: rows of weights in registers, values where they lie */
  bool in_lanes;      /* a query a lane (attention_lanes.c) */
  double lane_cycles; /* a batch takes then, or with few keys; 0: the driver's cost holds */
  int64_t batches;
  int64_t tile_rows;  /* rows of a gemm tile: even shares of the rows */
  int64_t part_rows;  /* rows whose scores are in scratch together */
  int64_t chunk_rows; /* rows of a task */
  int64_t chunks, block, score_ld;
  bool looks;       /* the run asks masks which keys a part's rows see (attention_sight.c) */
  int64_t sight_at; /* place of these in a thread's scratch */
  int64_t v_at, q_at, score_at, weight_at, c_at, top_at, sum_at,
      thread_floats; /* places in a thread's scratch */
} hn_attention;

/* False: heads that are mixed do not fit. */
bool hn_attention_plan(hn_attention *p, uint32_t threads, size_t l1, size_t l2);

/* Whether the machine's kernels have p->parts. */
bool hn_attention_has(const hn_attention *p);

/* Floats of scratch that all threads need. */
size_t hn_attention_workspace(const hn_attention *p, uint32_t threads);

/* mask: what mask[i].input counts. */
void hn_attention_exec(const hn_attention *p, const void *q, const void *k, const void *v,
                       const void *const *mask, void *y, float *workspace, hn_parallel_fn parallel,
                       void *pool);

/* The two arithmetics, behind hn_attention_plan and hn_attention_exec. */
typedef struct hn_attention_job {
  const hn_attention *p;
  const hn_gemm_ops *gemm;
  const hn_attention_ops *ops;
  const struct hn_transpose_ops *transpose;
  const hn_bf16_ops *bf16;
  const hn_attention_bf16_ops *bf16_ops;
  hn_act_fn tanh;
  const void *q, *k, *v;
  const void *mask[HN_ATTENTION_MASKS];
  void *y;
  float *workspace;
} hn_attention_job;

/* The rows of one task, and its places in the operands. */
typedef struct hn_attention_task {
  int64_t first, end;
  const void *q, *k, *v; /* of row 0, key 0 */
  void *y;
  const float *sink; /* of row 0; NULL: zeros */
  const void *mask[HN_ATTENTION_MASKS];
} hn_attention_task;
/* Element i of an operand of either type. */
static inline void *hn_attention_place(const void *p, int64_t i, bool narrow) {
  return (char *)(uintptr_t)p + i * (narrow ? 2 : 4);
}
/* Where batch b's operands begin. */
hn_attention_task hn_attention_batch_at(const hn_attention_job *j, int64_t batch);
hn_attention_task hn_attention_task_at(const hn_attention_job *j, int64_t index);
/* Masks of one row from one key on. */
void hn_attention_mask_rows(const hn_attention *p, const hn_attention_task *t, int64_t row, int64_t key,
                            hn_mask_row *out);
/* n products become tanh(scale x): what is left of them is to be scaled by the cap. */
static inline void hn_attention_bend(const hn_attention_job *j, float *x, int64_t n) {
  j->ops->scale(x, (size_t)n, j->p->scale);
  j->tanh(x, (size_t)n, NULL);
}
/* What scores are scaled by on their way to the weights. */
static inline float hn_attention_scale(const hn_attention *p) { return p->cap != 0 ? p->cap : p->scale; }
/* A row whose weights became 0: zero times each value, which is no number where the value is none. */
void hn_attention_clear_row(const hn_attention *p, const hn_attention_task *t, int64_t row);
/* The keys that a part of a task's rows sees: of all others its weights are 0. */
typedef struct hn_attention_sight {
  int32_t from, end;
} hn_attention_sight;
/* Whether masks are worth looking at, and the place for what they say from float `at` on; returns its end. */
int64_t hn_attention_sight_plan(hn_attention *p, int64_t at);
/* Fills a sight for each part of the task. */
void hn_attention_look(const hn_attention_job *j, const hn_attention_task *t, hn_attention_sight *sight);
/* The keys that a row sees by its place alone: [*from, *end). */
void hn_attention_places(const hn_attention *p, int64_t row, int64_t *from, int64_t *end);
/* Rows of a task, from part_rows on, and the number of tasks of a batch. */
void hn_attention_divide(hn_attention *p, uint32_t threads);

/* Whether a query a lane is the faster way, and if so all that is to be filled for it. */
bool hn_attention_lanes_plan(hn_attention *p, uint32_t threads);
void hn_attention_lanes_task(void *job, int64_t index, uint32_t thread);
/* Heads that are mixed: false where their scores do not fit into L2 together. */
bool hn_attention_mixed_plan(hn_attention *p, uint32_t threads, size_t l2);
void hn_attention_mixed_task(void *job, int64_t index, uint32_t thread);
/* Steps of the f32 arithmetic: K^T of n keys as the gemm kernel's B; C = A x packed B (+ C), rows x n, in
 * tiles, where B was packed with b_k rows, of which k from `from` on count. */
void hn_attention_pack_keys(const hn_attention_job *j, const float *k, int64_t n, float *dst);
void hn_attention_product(const hn_attention_job *j, const float *a, ptrdiff_t lda, const float *b,
                          int64_t b_k, int64_t from, float *c, ptrdiff_t ldc, int64_t rows, int64_t n,
                          int64_t k, bool accumulate);
void hn_attention_bf16_plan(hn_attention *p, uint32_t threads);
void hn_attention_bf16_task(void *job, int64_t index, uint32_t thread);

#endif
