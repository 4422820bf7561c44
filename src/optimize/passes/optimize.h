/* The graph optimizer: ONNX graph in, ONNX graph out. Every hit and every near miss is data. */
#ifndef HN_OPTIMIZE_PASSES_OPTIMIZE_H
#define HN_OPTIMIZE_PASSES_OPTIMIZE_H

#include "base/registry.h"
#include "model/ir/eval.h"
#include "model/ir/graph.h"
#include "optimize/passes/common/options.h"
#include "optimize/passes/common/report.h"

/* Rewrites the model in place. It must be resolved and inferred; afterwards it is again. report may be NULL.
 * A model with symbolic dimensions stays as dynamic as it was. HONE_ERROR_INTERNAL: a pass broke the graph or
 * changed its answers. */
hone_status hn_optimize(hn_model *model, const hn_optimize_options *options, hn_pass_report *report,
                        hone_error *error);

/* Is every name of options->passes one of a pass or of `others`? */
hone_status hn_passes_check(const hn_optimize_options *options, hone_error *error);

/* Of struct hn_pass (passes/common/pass.h), by name, in the order in which they run. Begins with passes.def.
 */
extern hn_registry hn_passes;

/* Fused patterns (hone_pattern_desc), for who adds some. */
hn_registry *hn_pattern_registry(void);

#endif
