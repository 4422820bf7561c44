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

typedef struct hn_attention {
  hn_isa isa;
  int64_t rows, keys, depth, depth_v; /* Q: rows x depth, K: keys x depth, V: keys x depth_v */
  int32_t n_batch;
  int64_t batch[HONE_MAX_RANK]; /* sizes; distances in floats: */
  int64_t q_batch[HONE_MAX_RANK], k_batch[HONE_MAX_RANK], v_batch[HONE_MAX_RANK], y_batch[HONE_MAX_RANK];
  int64_t q_row, k_row, k_col, v_row, y_row; /* columns of Q, V and the result are neighbours */
  float scale;
  bool nan_to_zero; /* weights of a row that are no numbers, as where it sees no key, are 0 instead */
  uint32_t n_masks;
  hn_attention_mask mask[HN_ATTENTION_MASKS];
  /* Row r sees the keys from r + place - window to r + place only, f32 arithmetic alone; where a side is
   * open: the first or the last one. */
  bool ends, begins;
  int64_t place, window;
  int32_t parts; /* 0: f32 arithmetic; else that of the gemm_bf16 kernels: 1 or 2 bf16 parts of a number */
  /* Lies in bf16, with one part alone; the result then takes keys of one block. */
  bool narrow_q, narrow_k, narrow_v, narrow_y;
  /* filled by hn_attention_plan: */
  bool direct;        /* nothing is packed */
  bool in_lanes;      /* a query a lane (attention_lanes.c) */
  double lane_cycles; /* a batch takes then */
  int64_t batches;
  int64_t tile_rows;  /* rows of a gemm tile: even shares of the rows */
  int64_t part_rows;  /* rows whose scores are in scratch together */
  int64_t chunk_rows; /* rows of a task */
  int64_t chunks, block, score_ld;
  int64_t v_at, q_at, score_at, weight_at, c_at, top_at, sum_at,
      thread_floats; /* places in a thread's scratch */
} hn_attention;

void hn_attention_plan(hn_attention *p, uint32_t threads, size_t l1, size_t l2);

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
  const void *mask[HN_ATTENTION_MASKS];
} hn_attention_task;
/* Element i of an operand of either type. */
static inline void *hn_attention_place(const void *p, int64_t i, bool narrow) {
  return (char *)(uintptr_t)p + i * (narrow ? 2 : 4);
}
hn_attention_task hn_attention_task_at(const hn_attention_job *j, int64_t index);
/* Masks of one row from one key on. */
void hn_attention_mask_rows(const hn_attention *p, const hn_attention_task *t, int64_t row, int64_t key,
                            hn_mask_row *out);
/* A row whose weights became 0: zero times each value, which is no number where the value is none. */
void hn_attention_clear_row(const hn_attention *p, const hn_attention_task *t, int64_t row);
/* Rows of a task, from part_rows on, and the number of tasks of a batch. */
void hn_attention_divide(hn_attention *p, uint32_t threads);

/* Whether a query a lane is the faster way, and if so all that is to be filled for it. */
bool hn_attention_lanes_plan(hn_attention *p, uint32_t threads);
void hn_attention_lanes_task(void *job, int64_t index, uint32_t thread);
void hn_attention_bf16_plan(hn_attention *p, uint32_t threads);
void hn_attention_bf16_task(void *job, int64_t index, uint32_t thread);

#endif
