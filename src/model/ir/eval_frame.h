/* What eval.c and eval_control.c have in common: the evaluation of a graph, once or as often as there are
 * trips. */
#ifndef HN_MODEL_IR_EVAL_FRAME_H
#define HN_MODEL_IR_EVAL_FRAME_H

#include "model/ir/eval.h"

typedef struct hn_frame_slot {
  hone_tensor t;
  uint32_t reads, uses; /* reads in this graph, and those that are left; UINT32_MAX: kept to the end */
  bool present, owned;
} hn_frame_slot;

/* Values of a graph while it is evaluated. It knows its own address: not to be moved. */
typedef struct hn_frame {
  const hn_graph *graph;
  hn_frame_slot *slot; /* by value index */
  hn_scope scope;
} hn_frame;

/* A frame serves as many evaluations of its graph, one after the other, as there are trips. To be closed,
 * also where this fails. */
hone_status hn_frame_open(hn_frame *f, const hn_graph *graph, hn_scope *outer, hone_error *error);
void hn_frame_close(hn_frame *f);

/* Runs the frame's graph as hn_eval_graph does. given: NULL, or which inputs are the frame's from now on,
 * however this ends. */
hone_status hn_eval_frame(hn_frame *f, const hone_tensor *const *inputs, const bool *given,
                          hone_tensor *outputs, hn_arena *keep, hn_budget *budget, hn_eval_watch watch,
                          void *watch_arg, hone_error *error);

hone_status hn_copy_tensor(const hone_tensor *from, hone_tensor *to, hn_budget *budget, hone_error *error);

#endif
