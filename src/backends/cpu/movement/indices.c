#include "backends/cpu/movement/indices.h"

#include "base/error.h"
#include "model/ops/common/index.h"

bool hn_indices_accept(const hone_step *s, bool *wide, hone_reason *why) {
  const hone_tensor_desc *i = &s->input[1].desc;
  if (!hone_desc_known(i)) return hn_refuse(why, "dimensions of the indices are not known");
  if (!hn_step_plain(i)) return hn_refuse(why, "the indices are not row-major");
  *wide = i->dtype == HONE_DTYPE_I64;
  return *wide || i->dtype == HONE_DTYPE_I32 ? true
                                             : hn_refuse(why, "indices are %s", hone_dtype_name(i->dtype));
}

hone_status hn_indices_check(const hone_step *s, const void *indices, bool wide, int64_t n, int64_t dim,
                             hone_error *error) {
  hone_status status = HONE_OK;
  for (int64_t i = 0, at; i < n && !status; i++) {
    const int64_t v = wide ? ((const int64_t *)indices)[i] : ((const int32_t *)indices)[i];
    status = hn_index(s->node, v, dim, &at, error);
  }
  return status;
}

hone_status hn_indices_check_tuples(const hone_step *s, const int64_t *tuples, int64_t n, int64_t length,
                                    const int64_t *dim, hone_error *error) {
  hone_status status = HONE_OK;
  for (int64_t i = 0; i < n * length && !status; i++)
    status = hn_indices_check(s, tuples + i, true, 1, dim[i % length], error);
  return status;
}
