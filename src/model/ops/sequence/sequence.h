/* What the operators on sequences and optionals share. */
#ifndef HN_MODEL_OPS_SEQUENCE_H
#define HN_MODEL_OPS_SEQUENCE_H

#include "model/ir/items.h"
#include "model/ops/common/op.h"

/* Input i must be a sequence (HONE_ERROR_INPUT). A type that inference does not know yet passes. */
hone_status hn_infer_sequence(const hone_infer *io, uint32_t i, hone_error *error);
/* Output 0 becomes one of that type: a sequence, optional, or a number. */
void hn_infer_whole(const hone_infer *io, hone_dtype dtype);
/* Input i, if it is there, must be one i32 or i64 (HONE_ERROR_INPUT). */
hone_status hn_infer_position(const hone_infer *io, uint32_t i, hone_error *error);

/* The place that input i names, counted from the end where negative; `otherwise` when it is left out.
 * HONE_ERROR_INPUT outside [-n, most]. */
hone_status hn_position(hone_call *call, uint32_t i, size_t n, size_t most, size_t otherwise, size_t *at,
                        hone_error *error);
/* Input i as a sequence; NULL with the error set when it is none. */
const hone_items *hn_sequence(hone_call *call, uint32_t i, hone_error *error);
/* Room for n items until the run ends; NULL with the error set. */
const hone_tensor **hn_items_room(hone_call *call, size_t n, hone_error *error);
/* A copy that lives until the run ends; NULL with the error set. */
const hone_tensor *hn_items_keep(hone_call *call, const hone_tensor *t, hone_error *error);
/* Output 0 gets these items. */
void hn_items_give(hone_call *call, size_t n, const hone_tensor *const *item);
/* Output 0 becomes a copy of t: what is in a sequence or optional is shared. */
hone_status hn_items_take(hone_call *call, const hone_tensor *t, hone_error *error);

#endif
