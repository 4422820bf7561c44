/* What a pass file contains and what it may use. A pass is one file passes/<name>.c that defines
 *   const struct hn_pass hn_pass_<name> = {...};
 * plus a line PASS(<name>) in passes.def. Order in the list is the order of execution within a round. */
#ifndef HN_OPTIMIZE_PASSES_PASS_H
#define HN_OPTIMIZE_PASSES_PASS_H

#include "base/error.h"
#include "model/ir/bytes.h"
#include "model/ops/common/op.h"
#include "optimize/passes/common/match.h"
#include "optimize/passes/optimize.h"

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
  hn_pass_result (*run)(hn_pass_context *ctx);
};

#define HN_PASS(pass) const struct hn_pass hn_pass_##pass
#define HN_PATTERNS(...) ((const char *const[]){__VA_ARGS__, NULL})

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

/* ---- reading */
static inline bool hn_is_op(const hone_node *n, const char *op) {
  return n && strcmp(n->op_type, op) == 0 && (!*n->domain || strcmp(n->domain, "ai.onnx") == 0);
}
/* Input i, or NULL. */
static inline hn_value *hn_in(const hone_node *n, uint32_t i) { return i < n->n_in ? n->in[i] : NULL; }
/* The value's bytes when it is a constant that nobody can override; else NULL. */
static inline const hone_tensor *hn_known(const hn_value *v) {
  return v && v->constant && !v->is_input && hn_value_make_bytes(v) ? v->constant : NULL;
}
/* The same when its descriptor is enough: the bytes of a deferred constant stay unmade (data is NULL). */
static inline const hone_tensor *hn_known_desc(const hn_value *v) {
  return v && v->constant && !v->is_input ? v->constant : NULL;
}
/* f32 or f64: what folding computes with. */
static inline bool hn_foldable_float(hone_dtype d) { return d == HONE_DTYPE_F32 || d == HONE_DTYPE_F64; }
static inline bool hn_all_finite(const hone_tensor *t) {
  for (int64_t i = 0, n = hn_count(t); i < n; i++)
    if (!isfinite(hn_get_f64(t, i))) return false;
  return true;
}
/* Integers of a known value of rank 0 or 1 into out[max]; their number, or -1. */
int64_t hn_known_ints(const hn_value *v, int64_t *out, int64_t max);
/* Ints from an attribute, or from input `input` (newer opsets): their number, -1 when not known; 0 with
 * *absent set when neither is there. */
int64_t hn_node_ints_or_input(const hone_node *n, const char *attr, uint32_t input, int64_t *out, int64_t max,
                              bool *absent);
/* Same known rank, and every dimension the same number or the same symbol. */
bool hn_same_shape(const hone_tensor_desc *a, const hone_tensor_desc *b);
/* True when broadcasting `c` against the value `v` leaves v's shape as it is, whatever its unknown dimensions
 * are. */
bool hn_broadcasts_into(const hone_tensor_desc *c, const hone_tensor_desc *v);
/* A constant that varies along dimension `axis` of a tensor of rank `rank` at most: its values there, as
 * doubles in out[n] (a scalar is repeated). False when it varies along another dimension or is not known. */
bool hn_channel_values(const hn_value *c, int32_t rank, int32_t axis, int64_t n, double *out);
bool hn_has_op(const hn_pass_context *ctx, const char *op_type); /* at the model's opset */
bool hn_known_finite(const hn_value *v);

/* ---- building and editing. NULL or false: out of memory, and ctx->status says so. */
/* A constant of this graph named like `stem`. Data is copied. */
hn_value *hn_make_constant(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const void *data);
/* The same with data that the caller writes: *data is not initialised. */
hn_value *hn_make_room(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc, void **data);
/* One whose f32 numbers are not made yet; `deferred` lives as long as the model. */
hn_value *hn_make_deferred(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                           const hn_deferred *deferred);
hn_value *hn_make_ints(hn_pass_context *ctx, const char *stem, const int64_t *v, int64_t n);
/* A float constant (f32 or f64) from doubles, rounded once. */
hn_value *hn_make_floats(hn_pass_context *ctx, const char *stem, const hone_tensor_desc *desc,
                         const double *v);
/* A node of ONNX's own domain before `before`, with one new output that has the descriptor `like` (NULL:
 * unknown). */
hone_node *hn_make_node(hn_pass_context *ctx, hone_node *before, const char *op, hn_value *const *in,
                        uint32_t n_in, const hone_tensor_desc *like);
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
