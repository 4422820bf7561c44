/* What a pass file contains and what it may use. A pass is one file passes/<family>/<name>.c that defines
 *   const struct hn_pass hn_pass_<name> = {...};
 * plus a line PASS(<name>) in passes.def. Order in the list is the order of execution within a round. */
#ifndef HN_OPTIMIZE_PASSES_PASS_H
#define HN_OPTIMIZE_PASSES_PASS_H

#include "base/error.h"
#include "model/ir/eval.h"
#include "model/operators.h"
#include "optimize/match/match.h"
#include "optimize/match/read.h"
#include "optimize/passes/common/options.h"
#include "optimize/passes/common/report.h"

#include <stdio.h>
#include <string.h>

typedef enum hn_pass_result {
  HN_PASS_NONE = 0, /* does not apply here */
  HN_PASS_HIT,      /* the graph was changed; ctx->why says what was done */
  HN_PASS_MISS,     /* nearly applied; ctx->why says why not */
  HN_PASS_FAIL      /* out of memory, cancelled...: ctx->status and the error say */
} hn_pass_result;

typedef struct hn_pass hn_pass;

typedef struct hn_pass_context {
  hn_model *model;
  hn_graph *graph; /* the one being rewritten */
  const hn_optimize_options *options;
  const hn_pass *pass;
  hn_arena *scratch; /* cleared after each pass */
  hone_reason why;
  int32_t enable_level; /* of the near miss being made; -1: none */
  hone_status status;
  hone_error *error;
  hn_pass_report *report;
  hn_budget fold;  /* deadline and cancelling of constant folding */
  uint64_t folded; /* bytes that it made so far */
  bool changed;    /* whole-graph passes set it through hn_pass_record_hit */
  hn_value *given; /* the last value that an edit gave its readers */
} hn_pass_context;

/* Exactly one of match, visit and run is set. None may change anything before it is sure to succeed (memory
 * apart). */
struct hn_pass {
  const char *name;
  int level;
  const char *about;           /* the equation in one line */
  const char *const *patterns; /* NULL-ended; tried in order at every node */
  hn_pass_result (*match)(hn_pass_context *ctx, const hone_match *match);
  hn_pass_result (*visit)(hn_pass_context *ctx, hone_node *node);
  const char *const *roots; /* of visit: the types of the nodes that it says anything of, of any domain,
                               NULL-ended; NULL: any. It is not asked of others */
  hn_pass_result (*run)(hn_pass_context *ctx);
};

#define HN_PASS(pass) const struct hn_pass hn_pass_##pass
#define HN_PATTERNS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HN_ROOTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- saying what happened */
/* ctx->why, and the result. */
hn_pass_result hn_pass_hit(hn_pass_context *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
hn_pass_result hn_pass_miss(hn_pass_context *ctx, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A near miss that a higher level takes. */
hn_pass_result hn_pass_miss_below(hn_pass_context *ctx, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
hn_pass_result hn_pass_memory(hn_pass_context *ctx);
/* For passes over whole graphs: records one hit or near miss at some nodes. Call before editing them. */
void hn_pass_record_add(hn_pass_context *ctx, bool hit, hone_node *const *nodes, uint32_t n,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same of a text that lives as long as the report; the pass is not said to have changed anything. */
void hn_pass_record_text(hn_pass_context *ctx, bool hit, hone_node *const *nodes, uint32_t n,
                         const char *reason);

/* ---- reading (more: match/read.h) */
bool hn_has_op(const hn_pass_context *ctx, const char *op_type); /* at the model's opset */

/* ---- building and editing. NULL or false: out of memory, and ctx->status says so. */
/* A constant of this graph named like `stem`. Data is copied. */
hn_value *hn_make_constant(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const void *data);
/* The same with data that the caller writes: *data is not initialised. */
hn_value *hn_make_room(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc, void **data);
/* One whose f32 numbers are not made yet; `deferred` lives as long as the model. */
hn_value *hn_make_deferred(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const hn_deferred *deferred);
/* A constant of 16 bits in f32: a large one deferred. */
hn_value *hn_make_widened(hn_pass_context *ctx, const hn_value *constant);
hn_value *hn_make_ints(hn_pass_context *ctx, const char *stem, const int64_t *v, int64_t n);
/* A float constant (f32 or f64) from doubles, rounded once. */
hn_value *hn_make_floats(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                         const double *v);
/* A node of ONNX's own domain before `before`, with one new output that has the descriptor `like` (NULL:
 * unknown). */
hone_node *hn_make_node(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                        uint32_t n_in, const hone_tensor_desc *like);
/* The same, inherited from `before`; where the model's opset has no such operator, as the newest one has it:
 * for graphs that are lowered at once, and operators whose meaning does not hang on the opset. */
hn_value *hn_make_newest(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                         uint32_t n_in, const hone_tensor_desc *like);
/* The Transpose of v into the order that `order` gives for its rank, inherited from n. */
hn_value *hn_make_turned(hn_pass_context *ctx, hone_node *n, hn_value *v, void (*order)(int32_t, int64_t *));
bool hn_inherit(hn_pass_context *ctx, hone_node *node, const hone_node *from);
bool hn_set_input(hn_pass_context *ctx, hone_node *node, uint32_t i,
                  hn_value *v); /* fills a gap with left-out inputs */
/* Whether every reader of `old` can read `with` instead. */
bool hn_can_replace(const hn_value *old, const hn_value *with);
/* Does it; hn_can_replace must hold. */
bool hn_replace(hn_pass_context *ctx, hn_value *old, hn_value *with);
/* Removes the node when none of its outputs is needed, then its producers likewise as far as `depth` levels
 * up. */
void hn_remove_unread(hone_node *node, int depth);
/* Still part of its graph? */
static inline bool hn_is_linked(const hone_node *n) { return n->prev || n->next || n->graph->first == n; }

#endif
