/* Lowering: from the graph to steps. */
#ifndef HN_OPTIMIZE_LOWER_LOWER_H
#define HN_OPTIMIZE_LOWER_LOWER_H

#include "optimize/step/step.h"

/* Fills the slots and steps of a plan whose model and options are set, tactics included. */
hone_status hn_lower(hn_plan *plan, hone_error *error);

/* Is the node one function of its inputs that no tactic of its own computes? Its program, in the arena, where
 * `program` is not NULL. */
bool hn_lower_function(const hn_plan *plan, const hone_node *n, hn_arena *arena, hone_pw_program *program);

#endif
