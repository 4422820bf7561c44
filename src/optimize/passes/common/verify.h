/* Numeric equality of a model before and after a pass, by the scalar references. */
#ifndef HN_OPTIMIZE_PASSES_VERIFY_H
#define HN_OPTIMIZE_PASSES_VERIFY_H

#include "model/ir/eval.h"

typedef struct hn_verifier hn_verifier;

/* Makes random inputs for the model (symbolic dimensions get small sizes) and runs it. An input that the
 * model itself refuses is an error. */
hone_status hn_verifier_create(hn_model *model, uint64_t seed, const _Atomic bool *cancel, hn_verifier **out,
                               hone_error *error);
void hn_verifier_destroy(hn_verifier *v);
/* Runs the rewritten model on the same inputs: floats within 1e-4 of the output's range (2e-2 where the model
 * has values of f16 or bf16), NaN and infinities in the same places, everything else equal.
 * HONE_ERROR_INTERNAL names the output and the difference. */
hone_status hn_verifier_compare(hn_verifier *v, hn_model *model, hone_error *error);

#endif
