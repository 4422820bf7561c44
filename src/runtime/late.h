/* Late steps: what a device does with shapes that only the run knows. Inside of runtime only.
 *
 * When such a step is due, its operands' dimensions and the values of its small inputs on the host are known:
 * its outputs' shapes are inferred, a tactic is chosen by the cost models, and it is launched, on
 * accelerators uncaptured, on the queue. What was chosen is kept until another shape comes; packed weights
 * stay then where they say nothing of shapes. On accelerators outputs lie in blocks that are kept from run to
 * run, so that equal runs allocate nothing; where no tactic takes the step the host does it, with copies, and
 * that is counted. On the CPU outputs are the run's as those of references are, and the reference does what
 * no tactic takes and what is too small for a choice to pay. */
#ifndef HN_RUNTIME_LATE_H
#define HN_RUNTIME_LATE_H

#include "runtime/late_state.h"

hone_status hn_late_open(const hn_plan *plan, hn_remote *remote, hn_lent *lent, hn_late *late,
                         hone_error *error);
void hn_late_close(hn_late *late);

/* Device memory for what a run makes; NULL: there is none left. Work that the queue was given before may
 * still use a block that is given back: what gets it next must come behind that, on lane 0. */
void *hn_late_take(hn_late *late, size_t bytes);
void hn_late_give(hn_late *late, void *at);

/* What late step k was in the last run, and the tactic that did it (NULL: a view, the host, or never run). */
const hone_step *hn_late_step(const hn_late *late, uint32_t k, const hone_tactic_desc **tactic);

/* Does step k: fills the descriptors of its outputs and, but for views and outputs with a place in the arena,
 * gives them memory. in: addresses on the device; tin: descriptors, and the data of inputs on the host.
 * *done false, on the CPU: it is left to the reference. */
hone_status hn_late_run(hn_late *late, uint32_t k, const void *const *in, const hone_tensor *const *tin,
                        hone_tensor *const *tout, hn_arena *keep, hn_budget *budget, bool *done,
                        hone_error *error);

/* Steps whose elements tell their dimensions leave these to be waited for, so that the host waits once for
 * many. settle: waits, and puts them into the descriptors of the outputs. wants_counts: does the step read
 * one of these outputs? Whoever reads their descriptors settles first. forget_counts: at the beginning of a
 * run, what one that failed has left. */
hone_status hn_late_settle(hn_late *late, hone_error *error);
bool hn_late_wants_counts(const hn_late *late, const hn_step *step);
void hn_late_forget_counts(hn_late *late);

/* On the CPU: a node of a body of If, Loop or Scan, as a hn_eval_quick whose `self` is the hn_late. What is
 * bound is kept from trip to trip and run to run. */
hone_status hn_late_body(void *self, const hone_node *node, const hone_tensor *const *in,
                         hone_tensor *const *out, hn_budget *budget, bool *done, hone_error *error);

#endif
