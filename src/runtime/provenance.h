/* Where recorded figures come from: the machine and the options of a run, and what became of the network's
 * nodes. */
#ifndef HN_RUNTIME_PROVENANCE_H
#define HN_RUNTIME_PROVENANCE_H

#include "optimize/step/step.h"

#include <hone/facts.h>
#include <hone/model.h>

/* Metadata of the plan's device, versions, precision, threads and clocks, with what its sensors say. trace:
 * NULL where the device keeps no records of its own. */
void hn_provenance_run(hone_facts *facts, const hn_plan *plan, uint32_t runs, const hn_tracing *tracing,
                       hn_trace *trace);

/* The source nodes, the step that does each, and the fate of those that none does. */
void hn_provenance_nodes(hone_facts *facts, const hn_plan *plan);

/* What the passes did, and what they did not do, for reports and for the rules that look for unfused
 * patterns. After the nodes. */
void hn_provenance_rewrites(hone_facts *facts, const hn_plan *plan, const hone_rewrites *rewrites);

#endif
