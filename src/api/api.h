/* What the files of the public API share. */
#ifndef HN_API_API_H
#define HN_API_API_H

#include "optimize/passes/optimize.h"
#include "optimize/step/step.h"

#include <hone/session.h>
#include <hone/system.h>

/* The passes' report as the public structure; *to is zeroed before. */
hone_status hn_export_rewrites(const hn_pass_report *from, hone_rewrites *to, hone_error *error);

/* Appends the fusions that lowering nearly made. */
hone_status hn_export_misses(const hn_plan *plan, hone_rewrites *to, hone_error *error);

/* As hone_plan_create. ports: NULL, or which inputs and outputs lie channels-last; store: NULL, or where
 * packed weights are left and looked for (of this very model). */
hone_status hn_api_plan_create(hone_engine *engine, hone_model *model, const hone_plan_options *options,
                               const hn_ports *ports, hn_packed_store *store, hone_plan **out,
                               hone_error *error);

/* Plans of one model that may become plans for other shapes: lines.h. Where `lines` is given, `store` is,
 * too.
 */
struct hn_lines;
hone_status hn_api_plan_of_lines(hone_engine *engine, hone_model *model, const hone_plan_options *options,
                                 struct hn_lines *lines, hn_packed_store *store, hone_plan **out,
                                 hone_error *error);
/* A plan that makes the decisions of another one, for other shapes; HONE_ERROR_UNSUPPORTED where they do not
 * fit. */
hone_status hn_api_plan_like(const hone_plan *other, const hone_plan_options *options, hn_packed_store *store,
                             hone_plan **out, hone_error *error);
/* Of a plan: the one inside, to be changed; its own descriptors of inputs [inputs]; what lines.c keeps of it.
 */
hn_plan *hn_api_plan_inside(hone_plan *plan);
hone_bound_shape *hn_api_plan_bound(hone_plan *plan);
struct hn_lined **hn_api_plan_lined(hone_plan *plan);
hn_model *hn_api_plan_source(const hone_plan *plan);

/* Where `weights` keeps what plans pack (NULL for none), and the model that they are made of: with constants
 * that are only moved folded once for all of them, if they fold any. HONE_ERROR_USAGE for those of another
 * model. */
hone_status hn_api_weights(const hone_weights *weights, const hone_engine *engine, hone_model *model,
                           bool folds, hn_model **prepared, hn_packed_store **store, struct hn_lines **lines,
                           hone_error *error);

/* The plan inside, and its engine's tuned tactics with the file that they are kept in ("": none). */
const hn_plan *hn_api_plan(const hone_plan *plan);
hone_engine *hn_api_engine(const hone_plan *plan);
const hn_backend *hn_api_backend(const hone_engine *engine, hn_device **device);
struct hn_context;
const struct hn_context *hn_api_context(const hone_context *context);
struct hn_context *hn_api_context_inside(hone_context *context);
/* A context whose activations and workspace lie in a block of the caller's: hn_context_create_in. */
hone_status hn_api_context_in(hone_plan *plan, void *block, hone_context **out, hone_error *error);
hn_tuned *hn_api_tuned(const hone_plan *plan, const char **path);

/* A context for one thread at a time: HONE_ERROR_USAGE while another call is at work in it, or for NULL. What
 * it leaves with is what the call came to. */
hone_status hn_api_enter(hone_context *context, struct hn_context **inside, hone_error *error);
hone_status hn_api_leave(hone_context *context, hone_status status);

/* bind.c: the tensor that a run reads as input i, which may be bound (given NULL); NULL: none was given. */
const hone_tensor *hn_bound_input(struct hn_context *context, uint32_t i, const hone_tensor *given);
/* Whether the plan's steps reach input i where it says that it lies. */
hone_status hn_bound_reached(const hn_plan *plan, uint32_t i, const hone_tensor *in, hone_error *error);
/* HONE_ERROR_USAGE when input i, as a run reads it, lies in memory that is bound to an output. */
hone_status hn_bound_apart(const hn_plan *plan, struct hn_context *context, uint32_t i, const hone_tensor *in,
                           hone_error *error);

/* step_counts.c: counters of the processor for some of n steps (steps NULL: all). NULL when out of memory. */
typedef struct hn_step_counts hn_step_counts;
hn_step_counts *hn_step_counts_open(const hone_counting *counting, uint32_t n, const uint32_t *steps,
                                    uint32_t n_steps);
void hn_step_counts_edge(void *counts, uint32_t step, bool after); /* a hn_step_edge */
/* Means of an execution as counters of the steps, and what could not be read. */
void hn_step_counts_write(const hn_step_counts *counts, hone_facts *facts);
void hn_step_counts_close(hn_step_counts *counts); /* NULL is fine */

#endif
