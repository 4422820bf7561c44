/* Does a sample keep its answer, whatever else is in its batch? */
#ifndef HN_IMPROVE_BATCH_PROOF_H
#define HN_IMPROVE_BATCH_PROOF_H

#include "model/ir/graph.h"

/* Runs `fixed`, whose batch is the file's, on two different batches of random samples, and `open`, the same
 * model with an open batch, on both of them together. HONE_ERROR_UNSUPPORTED where an output differs by more
 * than another order of arithmetic explains: a node works across the samples. */
hone_status hn_prove_batch(hn_model *fixed, hn_model *open, hone_error *error);

#endif
