/* Whole runs of elements between tensors of any number type and double or float, and checked scratch memory:
 * most references of this folder load a row or plane, compute in double, and store it. */
#ifndef HN_MODEL_OPS_BULK_H
#define HN_MODEL_OPS_BULK_H

#include "base/dims.h"
#include "base/integers.h"
#include "model/ops/common/op.h"

/* dst[0..n) = elements at..at+n of t. */
void hn_load_f64(double *dst, const hone_tensor *t, int64_t at, int64_t n);
void hn_load_f32(float *dst, const hone_tensor *t, int64_t at, int64_t n);
/* Elements at..at+n of t = src, rounded as in hn_write_f64. */
void hn_store_f64(hone_tensor *t, int64_t at, const double *src, int64_t n);

/* Scratch for n elements of `size` bytes; NULL with *error filled (HONE_ERROR_MEMORY) when n * size is too
 * large or the budget is spent. n == 0 gives a valid pointer. */
void *hn_scratch(hone_call *call, int64_t n, size_t size, hone_error *error);
/* The whole tensor as double or float in scratch; the tensor's own memory when it has that dtype already. */
const double *hn_all_f64(hone_call *call, const hone_tensor *t, hone_error *error);
const float *hn_all_f32(hone_call *call, const hone_tensor *t, hone_error *error);

/* HONE_ERROR_INPUT unless inputs i and j have the same dtype (unknown ones and left-out inputs pass). */
hone_status hn_infer_same_dtype(const hone_infer *io, uint32_t i, uint32_t j, hone_error *error);
/* HONE_ERROR_INPUT unless the dtype of input i (when known) is in the HONE_TYPES mask. */
hone_status hn_infer_dtype_in(const hone_infer *io, uint32_t i, uint32_t types, hone_error *error);
/* HONE_ERROR_INPUT unless input i (when there and known) is a vector of `length` elements (< 0: any length).
 */
hone_status hn_infer_vector(const hone_infer *io, uint32_t i, int64_t length, hone_error *error);
/* Sets flops = 2 macs, or flops alone; bytes are left to hone. Unknown counts (< 0) give zero. */
void hn_cost_macs(hone_cost *cost, double macs);
void hn_cost_flops(hone_cost *cost, double flops);
/* Elements of a descriptor as a double; 0 when unknown. */
double hn_known_count(const hone_tensor_desc *desc);

#endif
