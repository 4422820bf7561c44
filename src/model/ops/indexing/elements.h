/* Indices that name one element each, along one axis: GatherElements and ScatterElements. */
#ifndef HN_MODEL_OPS_ELEMENTS_H
#define HN_MODEL_OPS_ELEMENTS_H

#include "model/ops/common/op.h"

/* Checks input 1 (indices) against input 0: the same rank, and no larger than it except along the axis. */
hone_status hn_elements_infer(const hone_infer *io, uint32_t index, hone_error *error);
/* Calls visit for every index: its own place, and the element of input 0 that it names. */
typedef hone_status (*hn_element_visit)(hone_call *call, void *context, int64_t place, int64_t at,
                                        hone_error *error);
hone_status hn_elements_run(hone_call *call, hn_element_visit visit, void *context, hone_error *error);

#endif
