/* Affine quantisation (quant.h). */
#include "model/ops/quantized/quant.h"

/* Dimensions that are not known may turn out to be 1. */
static bool may_be_one(const hone_tensor_desc *d) {
  for (int32_t i = 0; i < d->rank; i++)
    if (d->dim[i] >= 0 && d->dim[i] != 1) return false;
  return true;
}

static hone_status same_shape(const hone_node *node, const hone_tensor_desc *scale,
                              const hone_tensor_desc *zero, hone_error *error) {
  if (!zero || zero->rank < 0 || scale->rank < 0) return HONE_OK;
  bool single = may_be_one(scale) && may_be_one(zero);
  bool same = scale->rank == zero->rank;
  for (int32_t i = 0; same && i < scale->rank; i++)
    same = scale->dim[i] < 0 || zero->dim[i] < 0 || scale->dim[i] == zero->dim[i];
  return same || single ? HONE_OK : hn_op_bad(node, error, "scale and zero point have different shapes");
}

hone_status hn_quant_map_init(hn_quant_map *map, const hone_node *node, const hone_tensor_desc *x,
                              const hone_tensor_desc *scale, const hone_tensor_desc *zero,
                              hone_error *error) {
  int64_t block = hone_node_int(node, "block_size", 0), n = hone_desc_count(x);
  int32_t axis = 0;
  hone_status s = same_shape(node, scale, zero, error);
  if (s) return s;
  *map = (hn_quant_map){.kind = HN_PER_TENSOR, .outer = 1, .axis = 1, .inner = n, .block = 1, .blocks = 1};
  if (block < 0) return hn_op_bad(node, error, "block_size is %lld", (long long)block);
  /* One value is a scale for all, whatever the axis; an unknown number of them may turn out to be one. */
  if (x->rank < 0 || hone_desc_count(scale) < 0 || hone_desc_count(scale) == 1) return HONE_OK;
  if (block == 0 && scale->rank != 1) return hn_op_bad(node, error, "scale has rank %d", (int)scale->rank);
  if (block > 0 && scale->rank != x->rank)
    return hn_op_bad(node, error, "scale has rank %d, a blocked one needs rank %d", (int)scale->rank,
                     (int)x->rank);
  if ((s = hn_axis(hone_node_int(node, "axis", 1), x->rank, &axis, error))) return s;
  map->kind = block ? HN_BLOCKED : HN_PER_AXIS;
  for (int32_t i = 0; i < scale->rank; i++) {
    int32_t xi = block ? i : axis;
    int64_t want = x->dim[xi];
    if (block && i == axis && want > 0) want = (want - 1) / block + 1;
    if (want >= 0 && scale->dim[i] >= 0 && scale->dim[i] != want)
      return hn_op_bad(node, error, "scale has %lld elements in dimension %d, expected %lld",
                       (long long)scale->dim[i], (int)i, (long long)want);
  }
  if (n < 0) return HONE_OK;
  map->outer = hn_dims(x, 0, axis);
  map->axis = x->dim[axis];
  map->inner = hn_dims(x, axis + 1, x->rank);
  if (block) {
    map->block = block;
    map->blocks = scale->dim[axis];
  }
  return HONE_OK;
}

bool hn_quant_range(hone_dtype dtype, double *lo, double *hi) {
  const bool narrow = hn_narrow_bits(dtype) && !hn_narrow_is_float(dtype);
  const int bits = narrow ? hn_narrow_bits(dtype) : 8 * (int)hone_dtype_size(dtype);
  if (bits > 32) return false;
  if (hone_dtype_is_signed_int(dtype) || dtype == HONE_DTYPE_I4 || dtype == HONE_DTYPE_I2) {
    *lo = -ldexp(1, bits - 1);
    *hi = ldexp(1, bits - 1) - 1;
    return true;
  }
  *lo = 0;
  *hi = ldexp(1, bits) - 1;
  return narrow || hone_dtype_is_unsigned_int(dtype);
}
