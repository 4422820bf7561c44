/* Operators that give the same elements another shape. */
#include "model/ops/shape/view.h"

hone_status hn_view_run(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  if (hn_count(x) != hn_count(y))
    return hn_op_bad(call->node, error, "%lld elements do not fill the new shape of %lld",
                     (long long)hn_count(x), (long long)hn_count(y));
  hn_copy_elements(y->data, x->data, hn_count(x), x->desc.dtype);
  return HONE_OK;
}
