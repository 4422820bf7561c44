/* Inference of If, Loop and Scan from the outputs of their bodies, which were inferred before. */
#ifndef HN_MODEL_OPS_BODIES_H
#define HN_MODEL_OPS_BODIES_H

#include "model/ops/common/op.h"

/* Number of outputs of the body in attribute `attr`; -1 when there is no such body. */
int64_t hn_body_outputs(const hone_node *node, const char *attr);
/* False: the body's shapes contradict each other; whoever takes it meets the error when it runs. */
bool hn_body_fits(const hone_node *node, const char *attr);
/* Descriptor of output i of the body; NULL where there is none. */
const hone_tensor_desc *hn_body_output(const hone_node *node, const char *attr, uint32_t i);
/* What is certain of a value that is either a or b: equal sizes stay, others become unknown. HONE_ERROR_INPUT
 * when both dtypes are known and differ. */
hone_status hn_desc_either(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                           hone_tensor_desc *out, hone_error *error);
/* Output i of the node becomes `each` stacked along a new dimension (negative axes count from the result's
 * end). */
hone_status hn_infer_stacked(const hone_infer *io, uint32_t i, const hone_tensor_desc *each, int64_t axis,
                             int64_t length, hone_error *error);

#endif
