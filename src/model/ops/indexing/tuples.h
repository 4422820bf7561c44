/* Indices whose last dimension is a tuple that names a slice: GatherND and ScatterND. */
#ifndef HN_MODEL_OPS_TUPLES_H
#define HN_MODEL_OPS_TUPLES_H

#include "model/ops/common/op.h"

/* The length of the tuples of input 1, checked against input 0 after its first `batch` dimensions; -1: not
 * known. */
hone_status hn_tuples_infer(const hone_infer *io, int64_t batch, int64_t *length, hone_error *error);
/* Calls visit for every tuple with the element offset and the size of its slice in input 0. */
typedef hone_status (*hn_tuple_visit)(hone_call *call, void *context, int64_t place, int64_t at,
                                      int64_t slice, hone_error *error);
hone_status hn_tuples_run(hone_call *call, int64_t batch, hn_tuple_visit visit, void *context,
                          hone_error *error);

#endif
