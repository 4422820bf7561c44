/* The graph optimizer: ONNX graph in, ONNX graph out. Every hit and every near miss is data. */
#ifndef HN_OPTIMIZE_PASSES_OPTIMIZE_H
#define HN_OPTIMIZE_PASSES_OPTIMIZE_H

#include "base/registry.h"
#include "model/ir/eval.h"
#include "model/ir/graph.h"

typedef struct hn_optimize_options {
  int level;           /* 0 none, 1 basic, 2 aggressive, 3 may change numerics beyond the dtype's bound */
  const char *passes;  /* comma-separated globs of pass names, "-glob" switches off; NULL or "": all of the
                          level. A pass  that is named without globs runs whatever the level is */
  bool verify_each;    /* after every pass that changed something: same answers on random inputs */
  bool defer;          /* scaled weights may stay unmade (ir/bytes.h): for a model that is lowered at once */
  bool widen;          /* operators of f16 and bf16 compute in f32: for a model that is lowered at once */
  bool check_each;     /* check the graph's invariants after every pass (always on in debug builds) */
  double fold_seconds; /* budgets of constant folding; 0: 20 s, 1 GiB together, 256 MiB a tensor */
  uint64_t fold_bytes;
  uint64_t fold_tensor_bytes;
  const _Atomic bool *cancel; /* NULL: none */
  uint64_t verify_seed;
} hn_optimize_options;

/* What a pass did, or nearly did, at one place. */
typedef struct hn_pass_record {
  const char *pass;   /* its name: static */
  int32_t level;      /* of the pass */
  bool hit;           /* false: a near miss */
  const char *nodes;  /* names of the nodes concerned, "a, b" */
  const char *reason; /* hit: what was done; near miss: why it was refused */
  uint32_t n_origin;
  const uint32_t *origin;             /* source nodes concerned */
  uint32_t nodes_before, nodes_after; /* nodes of the model around this hit; equal for near misses */
  double bytes_saved;   /* memory traffic of what passes between the nodes, as separate operators move it */
  int32_t enable_level; /* near miss: the level that would do it all the same; -1: none does */
} hn_pass_record;

typedef struct hn_pass_total {
  const char *pass;
  int32_t level;
  uint64_t hits;
  double seconds;
} hn_pass_total;

/* A zeroed report is ready. Strings live in its arena. */
typedef struct hn_pass_report {
  hn_arena arena;
  HN_VEC(hn_pass_record) records;
  HN_VEC(hn_pass_total) totals; /* passes that were run, in order */
  uint32_t nodes_before, nodes_after, rounds;
  uint32_t verified; /* comparisons that were made */
  bool fixed_point;  /* false: stopped at the bound on rounds */
} hn_pass_report;

/* Rewrites the model in place. It must be resolved and inferred; afterwards it is again. report may be NULL.
 * A model with symbolic dimensions stays as dynamic as it was. HONE_ERROR_INTERNAL: a pass broke the graph or
 * changed its answers. */
hone_status hn_optimize(hn_model *model, const hn_optimize_options *options, hn_pass_report *report,
                        hone_error *error);

void hn_pass_report_free(hn_pass_report *report);
/* Hits and near misses as lines of text, and as a JSON object {"nodes_before",...,"records":[...]}. False:
 * out of memory. */
bool hn_pass_report_text(const hn_pass_report *report, hn_str *out);
bool hn_pass_report_json(const hn_pass_report *report, hn_str *out);

/* Of struct hn_pass (passes/common/pass.h), by name, in the order in which they run. Begins with passes.def.
 */
extern hn_registry hn_passes;

#endif
