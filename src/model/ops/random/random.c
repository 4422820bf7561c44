/* Operators that draw numbers. */
#include "model/ops/random/random.h"
#include "model/ops/common/convert.h"

#include <stdatomic.h>

enum { BLOCK = 256 };

hn_rng hn_random_start(const hone_node *node) {
  static _Atomic uint64_t calls; /* makes calls without a seed differ from each other */
  hn_rng rng = {hn_f32_bits(hone_node_float(node, "seed", 0))};
  if (!hone_node_has(node, "seed")) rng.state = atomic_fetch_add(&calls, 1) * 0x2545f4914f6cdd1du + 1;
  hn_rng_u64(&rng);
  return rng;
}

/* Standard normal, by Box and Muller's transform. */
static double normal(hn_rng *rng) {
  double u = 1 - hn_rng_unit(rng), v = hn_rng_unit(rng); /* u in (0, 1] */
  return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

hone_status hn_random_infer(const hone_infer *io, hone_dtype otherwise, uint32_t types, int32_t rank,
                            const int64_t *dim, hone_error *error) {
  int64_t t = hone_node_int(io->node, "dtype", otherwise);
  if (t < 0 || t >= HONE_DTYPE_COUNT || (t && !(types & HONE_TYPES(t))))
    return hn_op_refuse(io->node, error, "dtype number %lld", (long long)t);
  hn_infer_set(io, 0, (hone_dtype)t, rank, dim);
  return HONE_OK;
}

hone_status hn_random_infer_shape(const hone_infer *io, hone_error *error) {
  size_t n;
  int64_t dim[HONE_MAX_RANK];
  const int64_t *shape = hone_node_ints(io->node, "shape", &n);
  if (n > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "rank %zu", n);
  for (size_t i = 0; i < n; i++) {
    if (shape[i] < 0) return hn_op_bad(io->node, error, "dimension %zu is %lld", i, (long long)shape[i]);
    dim[i] = shape[i];
  }
  return hn_random_infer(io, HONE_DTYPE_F32, HN_TYPES_FLOAT, (int32_t)n, dim, error);
}

hone_status hn_random_infer_like(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  return hn_random_infer(io, x->dtype, HN_TYPES_FLOAT, x->rank, x->dim, error);
}

static hone_status fill(hone_call *call, double offset, double scale, double (*draw)(hn_rng *),
                        hone_error *error) {
  hone_tensor *y = call->output[0];
  hn_rng rng = hn_random_start(call->node);
  for (int64_t i = 0, n = hn_count(y); i < n; i += BLOCK) {
    hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    double block[BLOCK];
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    for (int64_t k = 0; k < m; k++) block[k] = offset + scale * draw(&rng);
    hn_write_f64(y->data, y->desc.dtype, i, block, m);
  }
  return HONE_OK;
}

hone_status hn_random_fill_uniform(hone_call *call, hone_error *error) {
  double low = hone_node_float(call->node, "low", 0), high = hone_node_float(call->node, "high", 1);
  return fill(call, low, high - low, hn_rng_unit, error);
}

hone_status hn_random_fill_normal(hone_call *call, hone_error *error) {
  return fill(call, hone_node_float(call->node, "mean", 0), hone_node_float(call->node, "scale", 1), normal,
              error);
}
