/* Bulk conversions and checks (bulk.h). */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"

void hn_load_f64(double *dst, const hone_tensor *t, int64_t at, int64_t n) {
  hn_read_f64(dst, t->data, t->desc.dtype, at, n);
}
void hn_load_f32(float *dst, const hone_tensor *t, int64_t at, int64_t n) {
  hn_read_f32(dst, t->data, t->desc.dtype, at, n);
}
void hn_store_f64(hone_tensor *t, int64_t at, const double *src, int64_t n) {
  hn_write_f64(t->data, t->desc.dtype, at, src, n);
}

void *hn_scratch(hone_call *call, int64_t n, size_t size, hone_error *error) {
  size_t bytes = 0;
  void *p = NULL;
  if (n >= 0 && !__builtin_mul_overflow((size_t)(n ? n : 1), size, &bytes)) p = call->scratch(call, bytes);
  if (!p) hn_fail_memory(error, bytes, hone_node_op(call->node));
  return p;
}

const double *hn_all_f64(hone_call *call, const hone_tensor *t, hone_error *error) {
  if (t->desc.dtype == HONE_DTYPE_F64 && (t->data || hn_count(t))) return t->data;
  int64_t n = hn_count(t);
  double *p = hn_scratch(call, n, sizeof *p, error);
  if (p) hn_load_f64(p, t, 0, n);
  return p;
}

const float *hn_all_f32(hone_call *call, const hone_tensor *t, hone_error *error) {
  if (t->desc.dtype == HONE_DTYPE_F32 && (t->data || hn_count(t))) return t->data;
  int64_t n = hn_count(t);
  float *p = hn_scratch(call, n, sizeof *p, error);
  if (p) hn_load_f32(p, t, 0, n);
  return p;
}

hone_status hn_infer_same_dtype(const hone_infer *io, uint32_t i, uint32_t j, hone_error *error) {
  if (!hn_has_input(io, i) || !hn_has_input(io, j)) return HONE_OK;
  hone_dtype a = io->input[i]->dtype, b = io->input[j]->dtype;
  if (a == b || a == HONE_DTYPE_NONE || b == HONE_DTYPE_NONE) return HONE_OK;
  return hn_op_bad(io->node, error, "input %u is %s, input %u is %s", i, hone_dtype_name(a), j,
                   hone_dtype_name(b));
}

hone_status hn_infer_dtype_in(const hone_infer *io, uint32_t i, uint32_t types, hone_error *error) {
  if (!hn_has_input(io, i)) return HONE_OK;
  hone_dtype d = io->input[i]->dtype;
  if (d == HONE_DTYPE_NONE || (types & HONE_TYPES(d))) return HONE_OK;
  return hn_op_bad(io->node, error, "input %u has dtype %s", i, hone_dtype_name(d));
}

hone_status hn_infer_vector(const hone_infer *io, uint32_t i, int64_t length, hone_error *error) {
  if (!hn_has_input(io, i) || io->input[i]->rank < 0) return HONE_OK;
  const hone_tensor_desc *d = io->input[i];
  if (d->rank != 1) return hn_op_bad(io->node, error, "input %u has rank %d, expected 1", i, d->rank);
  if (length >= 0 && d->dim[0] >= 0 && d->dim[0] != length)
    return hn_op_bad(io->node, error, "input %u has %lld elements, expected %lld", i, (long long)d->dim[0],
                     (long long)length);
  return HONE_OK;
}

void hn_cost_macs(hone_cost *cost, double macs) {
  cost->macs = macs > 0 ? macs : 0;
  cost->flops = 2 * cost->macs;
  cost->bytes = -1;
}

void hn_cost_flops(hone_cost *cost, double flops) {
  cost->macs = 0;
  cost->flops = flops > 0 ? flops : 0;
  cost->bytes = -1;
}

double hn_known_count(const hone_tensor_desc *desc) {
  int64_t n = hone_desc_count(desc);
  return n > 0 ? (double)n : 0;
}
