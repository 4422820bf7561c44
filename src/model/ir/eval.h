/* Evaluates nodes and graphs by the operators' scalar references, one node after the other: the meaning of a
 * model. Used for constant folding, for bodies of control flow, as the fallback of steps and as the
 * independent side of verify. */
#ifndef HN_MODEL_IR_EVAL_H
#define HN_MODEL_IR_EVAL_H

#include "model/ir/graph.h"

#include <stdatomic.h>

struct hn_budget;

/* A faster way than the reference for a node of a body: in and out as in hn_eval_node. *done false: it is
 * left to the reference. */
typedef hone_status (*hn_eval_quick)(void *self, const hone_node *node, const hone_tensor *const *in,
                                     hone_tensor *const *out, struct hn_budget *budget, bool *done,
                                     hone_error *error);

/* Limits of a run; shared by everything that runs on its behalf. Zero means no limit. */
typedef struct hn_budget {
  uint64_t deadline_ns; /* hn_now_ns() value */
  uint64_t max_bytes;   /* alive at once, of what this budget's owner allocates */
  uint64_t max_nodes;   /* executed */
  const _Atomic bool *cancel;
  uint64_t bytes, nodes; /* spent so far */
  /* Where tensors' memory comes from; NULL: hn_aligned and hn_free. 64-byte aligned. */
  void *(*take)(void *memory, size_t bytes);
  void (*give)(void *memory, void *at);
  void *memory;
  /* Memory of others for output i of a node: *at NULL where they have none, or where it is given once
   * already. NULL: nobody has. lent: is this such memory, which is not given back? */
  hone_status (*lend)(void *lender, uint32_t i, const hone_tensor_desc *desc, void **at, hone_error *error);
  bool (*lent)(void *lender, const void *at);
  void *lender;
  hn_eval_quick quick; /* NULL: there is none */
  void *quick_self;
} hn_budget;

/* HONE_OK, HONE_ERROR_CANCELLED or HONE_ERROR_BUDGET (with the reason). */
hone_status hn_budget_check(hn_budget *budget, hone_error *error);

/* Memory that the budget counts; hn_budget_release takes a tensor's data from it. budget may be NULL. */
hone_status hn_budget_alloc(hn_budget *budget, int64_t bytes, void **out, hone_error *error);
void hn_budget_release(hn_budget *budget, hone_tensor *tensor);

/* Does the operator of a node take such an input i? HONE_ERROR_UNSUPPORTED with the type. */
hone_status hn_op_takes(const hone_node *node, const hone_tensor_desc *desc, uint32_t i, hone_error *error);

/* Runs one node that is not control flow. Inputs and outputs as in hone_call; outputs' desc is filled and
 * data allocated as the budget says (free with hn_budget_release, without one hn_free; string bytes go to
 * *keep). in[i] NULL: left out; out[i] NULL:
 * not wanted. */
hone_status hn_eval_node(const hone_node *node, const hone_tensor *const *in, hone_tensor *const *out,
                         hn_arena *keep, hn_budget *budget, hone_error *error);

/* Where a graph's evaluation finds the values of the graphs around it. */
typedef struct hn_scope {
  const struct hn_scope *outer;
  const hone_tensor *(*find)(void *self, const hn_value *value); /* NULL: not here */
  void *self;
} hn_scope;

/* Called after each node with its outputs; for traces and comparisons. Return false to stop
 * (HONE_ERROR_CANCELLED). */
typedef bool (*hn_eval_watch)(void *arg, const hone_node *node, const hone_tensor *const *out);

/* Runs a whole graph, control flow included. inputs[i] belongs to graph->inputs[i] (NULL: its constant is
 * used); outputs[i] is filled, data by malloc (hn_free), string bytes in *keep. */
hone_status hn_eval_graph(const hn_graph *graph, const hone_tensor *const *inputs, hone_tensor *outputs,
                          hn_scope *outer, hn_arena *keep, hn_budget *budget, hn_eval_watch watch,
                          void *watch_arg, hone_error *error);

/* Runs an If, Loop, Scan, SequenceMap or GreedySearch node: in and out as in hn_eval_node. */
hone_status hn_eval_control(const hone_node *node, const hone_tensor *const *in, hone_tensor *const *out,
                            hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error);
/* ---- eval_map.c */
hone_status hn_eval_map(const hone_node *node, const hone_tensor *const *in, hone_tensor *const *out,
                        hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error);
/* ---- eval_search.c */
hone_status hn_eval_search(const hone_node *node, const hone_tensor *const *in, hone_tensor *const *out,
                           hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error);
/* ---- eval_beams.c */
hone_status hn_eval_beams(const hone_node *node, const hone_tensor *const *in, hone_tensor *const *out,
                          hn_scope *scope, hn_arena *keep, hn_budget *budget, hone_error *error);

#endif
