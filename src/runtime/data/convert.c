/* Between dtypes without losing values. */
#include "model/ir/graph.h"
#include "runtime/data/data.h"

#include "model/ops/common/op.h"

#include <math.h>

/* Element i as `to`'s dtype; false when its value is lost. Rounding between floating-point types is no loss,
 * overflow is. */
static bool convert_one(const hone_tensor *from, const hone_tensor *to, int64_t i, bool both_float) {
  bool wide = hone_dtype_is_signed_int(from->desc.dtype) && hone_dtype_is_signed_int(to->desc.dtype);
  if (wide) {
    int64_t v = hn_get_i64(from, i);
    hn_set_i64(to, i, v);
    return hn_get_i64(to, i) == v;
  }
  double v = hn_get_f64(from, i);
  hn_set_f64(to, i, v);
  double back = hn_get_f64(to, i);
  return back == v || (isnan(v) && isnan(back)) || (both_float && isfinite(v) == isfinite(back));
}

hone_status hn_tensor_convert(const hone_tensor *from, hone_dtype dtype, hn_arena *arena, hone_tensor *out,
                              hone_error *error) {
  if (from->desc.dtype == dtype) {
    *out = *from;
    return HONE_OK;
  }
  hone_tensor_desc d = hone_desc(dtype, from->desc.rank, from->desc.dim);
  int64_t count = hone_desc_count(&d), bytes = hone_desc_bytes(&d);
  bool strings = hn_dtype_points(dtype) || hn_dtype_points(from->desc.dtype);
  if (!strings) {
    void *data = hn_arena_aligned(arena, bytes > 0 ? (size_t)bytes : 1, HN_MEM_ALIGN);
    if (!data) return hn_fail_memory(error, (uint64_t)bytes, "a converted array");
    *out = (hone_tensor){d, data};
  }
  bool both_float = hone_dtype_is_float(from->desc.dtype) && hone_dtype_is_float(dtype);
  for (int64_t i = 0; i < count || strings; i++)
    if (strings || !convert_one(from, out, i, both_float)) {
      hn_fail(error, HONE_ERROR_INPUT, "values of dtype %s do not fit into the input's dtype",
              hone_dtype_name(from->desc.dtype));
      hn_error_expected(error, "%s", hone_dtype_name(dtype));
      if (!strings) hn_error_got(error, "%.9g at element %lld", hn_get_f64(from, i), (long long)i);
      return HONE_ERROR_INPUT;
    }
  return HONE_OK;
}
