/* Shapes that only the run knows. Inside of optimize/lower only.
 *
 * On accelerators shape work is arithmetic on short lists of numbers that say what shapes are (what Shape
 * gives; what becomes the sizes of a Reshape): the host does it, where these numbers are wanted, and no
 * tensor of the device is copied for it. A late step is one whose shapes, or whose small inputs on the host,
 * are known in the run alone: the device, also the CPU, does it with the tactic that is chosen then. */
#ifndef HN_OPTIMIZE_LOWER_LATE_H
#define HN_OPTIMIZE_LOWER_LATE_H

#include "optimize/lower/emit.h"

/* Does the unit read nothing but dimensions? */
bool hn_shape_only(const hn_unit *u);
/* Is the unit, one node, shape work? Its operands' makers were emitted before. */
bool hn_shape_work(hn_lowering *l, const hn_unit *u);
/* Is all of a pointwise group shape work? */
bool hn_shape_group(const hn_lowering *l, const hn_unit *u);

/* As hn_lower_function. */
bool hn_late_function(const hn_plan *plan, const hone_node *n, hn_arena *arena, hone_pw_program *program);
/* Is the unit to be a late step? Asked when no tactic took it. */
bool hn_late(hn_lowering *l, const hn_unit *u);
hone_status hn_late_emit(hn_lowering *l, const hn_unit *u, hn_draft *d, hn_refusals *why, hone_error *error);

#endif
