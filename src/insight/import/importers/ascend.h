/* The parts of an msprof profile (Ascend) that its importer joins: tables and traces. */
#ifndef HN_INSIGHT_IMPORT_ASCEND_H
#define HN_INSIGHT_IMPORT_ASCEND_H

#include "insight/import/common/runlog.h"
#include "insight/import/import.h"
#include "insight/import/common/timeline.h"

/* The pipes of an AI core whose busy time msprof gives: name of the counter, the columns that end so, what
 * the pipe does. MTE1 moves from L1 to the operand buffers, MTE2 into the core, MTE3 and FixPipe out of it.
 */
#define HN_ASCEND_PIPES(X)                                                                                   \
  X(CUBE, "cube_busy", "mac_ratio", COMPUTE)                                                                 \
  X(VECTOR, "vector_busy", "vec_ratio", COMPUTE)                                                             \
  X(MTE1, "mte1_busy", "mte1_ratio", MEMORY)                                                                 \
  X(MTE2, "mte2_busy", "mte2_ratio", MEMORY)                                                                 \
  X(MTE3, "mte3_busy", "mte3_ratio", MEMORY)                                                                 \
  X(FIXPIPE, "fixpipe_busy", "fixpipe_ratio", MEMORY)                                                        \
  X(SCALAR, "scalar_busy", "scalar_ratio", NEITHER)
enum {
#define X(id, counter, column, unit) HN_ASCEND_##id,
  HN_ASCEND_PIPES(X)
#undef X
      HN_ASCEND_PIPE_COUNT
};

/* Shares of a time: sum of share * microseconds, and the microseconds for which it is known. */
typedef struct hn_ascend_share {
  double sum, us;
} hn_ascend_share;

/* What op_summary, kernel_details and task_time say, row by row, before the runs are known. */
typedef struct hn_ascend_op {
  hone_step_fact step;
  const char *signature; /* tells operators of one name apart: name, type and shapes */
  const char *name;
  int32_t number; /* in the facts' table; -1: not there yet */
  hn_ascend_share pipe[HN_ASCEND_PIPE_COUNT], cube_use, bound;
} hn_ascend_op;

typedef struct hn_ascend_row {
  int64_t start, length; /* ns; start INT64_MIN: not stamped */
  uint32_t op;
  uint32_t lane;
  int64_t run; /* Step Id or Infer ID; -1: none */
  hone_span_kind kind;
} hn_ascend_row;

/* A row of a table of totals (op_statistic, api_statistic). */
typedef struct hn_ascend_total {
  const char *name, *type, *level; /* level: of an API */
  hone_step_stats stats;
} hn_ascend_total;

typedef struct hn_ascend_fusion {
  const char *op, *originals;
  double bytes, weight_bytes;
} hn_ascend_fusion;

typedef struct hn_ascend {
  hn_import *in;
  HN_VEC(hn_ascend_op *) ops;
  hn_map by_signature;               /* -> index + 1 */
  HN_VEC(hn_ascend_row) rows, tasks; /* of operators; of task_time */
  HN_VEC(hn_ascend_total) types, apis;
  HN_VEC(hn_ascend_fusion) fusions;
  hn_map fusion_of;      /* operator's name -> hn_ascend_fusion index + 1 */
  HN_VEC(int64_t) lanes; /* device << 32 | stream */
  hn_timeline *trace;
  hone_facts_meta meta;
  bool has_ops, has_tasks, has_types, has_apis, has_fusions;
} hn_ascend;

/* Reads one of the CSV files; its header says which. */
hone_status hn_ascend_table(hn_ascend *a, hn_source *source, hone_error *error);
/* Is this the header of one of them? */
bool hn_ascend_is_table(const hn_sniff *sniff);
/* Reads msprof_*.json or trace_view.json. */
hone_status hn_ascend_trace(hn_ascend *a, hn_source *source, hone_error *error);

#endif
