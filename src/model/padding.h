/* May a dimension be made longer without a change to the rest?
 *
 * The proof compares two models that are the same but for the size of one dimension of their inputs: `small`
 * with the size that is wanted, `large` with a longer one. It follows the dimension from value to value. A
 * value is the same in both, or has the dimension as one axis, and then the large model's first elements
 * along it are the small model's, bit for bit as the operators' definitions compute them, whatever the others
 * are. An operator that no rule knows, or that lets elements along the axis meet, ends the proof.
 *
 * It is a proof for this pair of sizes: shapes are compared as they are in both, and numbers made of sizes
 * are computed for both. */
#ifndef HN_MODEL_PADDING_H
#define HN_MODEL_PADDING_H

#include "model/padding_rules.h"

/* small and large are clones of one model, inferred. What becomes of input i (graph->inputs order) is in[i],
 * of output i out[i]; both may be NULL. *proved, or else why says which node stands against it, and how.
 * Errors: HONE_ERROR_MEMORY alone. */
hone_status hn_prove_padding(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                             hn_pad *in, hn_pad *out, bool *proved, hone_reason *why, hone_error *error);

/* The same for parts: may the dimension be cut into equal parts of `wanted`, each computed by itself (by
 * `small`), instead of all of it (by `large`; size is a multiple)? Then all parts along the axis are what the
 * small model gives for them, and not the first alone. */
hone_status hn_prove_parts(const hn_model *small, const hn_model *large, int64_t wanted, int64_t size,
                           hn_pad *in, hn_pad *out, bool *proved, hone_reason *why, hone_error *error);

#endif
