/* Reductions over any set of axes. */
#include "model/ops/reduce/reduce.h"
#include "model/ops/common/axes.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"
#include "model/ops/reduce/best.h"

/* Which dimensions are reduced. */
static hone_status mark(const hone_node *node, hn_list *axes, int32_t rank, bool *on, hone_error *error) {
  hone_status status = hn_list_axes(node, axes, rank, error);
  if (status) return status;
  bool all = axes->n == 0 && !hone_node_int(node, "noop_with_empty_axes", 0);
  for (int32_t i = 0; i < rank; i++) on[i] = all;
  for (int32_t i = 0; i < axes->n; i++) on[axes->at[i]] = true;
  return HONE_OK;
}

hone_status hn_reduce_infer(const hone_infer *io, const hn_reduction *r, hone_error *error) {
  const hone_tensor_desc *x = io->input[0];
  hn_list axes;
  bool on[HONE_MAX_RANK], keep = hone_node_int(io->node, "keepdims", 1) != 0;
  hone_status status = hn_list_infer(io, "axes", r->moved, 1, &axes, error);
  if (status) return status;
  hone_tensor_desc y = {.dtype = x->dtype, .rank = -1};
  if (x->rank >= 0 && axes.known) {
    status = mark(io->node, &axes, x->rank, on, error);
    if (status) return status;
    y.rank = 0;
    for (int32_t i = 0; i < x->rank; i++)
      if (!on[i])
        y.dim[y.rank++] = x->dim[i];
      else if (keep)
        y.dim[y.rank++] = 1;
  } else if (x->rank >= 0 && keep) {
    y.rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) y.dim[i] = HONE_DIM_UNKNOWN;
  }
  hn_infer_set(io, 0, y.dtype, y.rank, y.dim);
  return HONE_OK;
}

void hn_reduce_cost(const hone_infer *io, hone_cost *cost) {
  hn_cost_flops(cost, hn_known_count(io->input[0]));
}

typedef struct plan {
  int32_t kept, gone; /* dimensions */
  int64_t keep_dim[HONE_MAX_RANK], keep_step[HONE_MAX_RANK];
  int64_t gone_dim[HONE_MAX_RANK], gone_step[HONE_MAX_RANK], packed_step[HONE_MAX_RANK];
  int64_t n;  /* elements of one run */
  bool dense; /* runs lie in memory as they are */
} plan;

static plan plan_make(const hone_tensor_desc *x, const bool *on) {
  plan p = {0};
  int64_t step[HONE_MAX_RANK];
  hn_strides(x->dim, x->rank, step);
  for (int32_t i = 0; i < x->rank; i++) {
    if (on[i])
      p.gone_dim[p.gone] = x->dim[i], p.gone_step[p.gone++] = step[i];
    else
      p.keep_dim[p.kept] = x->dim[i], p.keep_step[p.kept++] = step[i];
  }
  p.n = hn_product(p.gone_dim, 0, p.gone);
  hn_strides(p.gone_dim, p.gone, p.packed_step);
  p.dense = true;
  for (int32_t i = 0; i < p.gone; i++)
    if (p.gone_dim[i] != 1 && p.gone_step[i] != p.packed_step[i]) p.dense = false;
  return p;
}

static void apply(const hn_reduction *r, const void *run, void *wide, int64_t n, hone_tensor *y, int64_t at) {
  hone_dtype t = y->desc.dtype;
  if (t == HONE_DTYPE_F64)
    ((double *)y->data)[at] = r->f64(run, n);
  else if (t == HONE_DTYPE_F32)
    ((float *)y->data)[at] = r->f32(run, n);
  else if (t == HONE_DTYPE_U64)
    ((uint64_t *)y->data)[at] = r->u64(run, n);
  else if (t == HONE_DTYPE_I64)
    ((int64_t *)y->data)[at] = r->i64(run, n);
  else if (hone_dtype_is_float(t)) {
    hn_read_f32(wide, run, t, 0, n);
    float v = r->f32(wide, n);
    hn_write_f32(y->data, t, at, &v, 1);
  } else {
    hn_read_i64(wide, run, t, 0, n);
    int64_t v = r->i64(wide, n);
    hn_write_i64(y->data, t, at, &v, 1);
  }
}

hone_status hn_reduce_run(hone_call *call, const hn_reduction *r, hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  hn_list axes;
  bool on[HONE_MAX_RANK];
  hone_status status = hn_list_call(call, "axes", r->moved, 1, &axes, error);
  if (!status) status = mark(call->node, &axes, x->desc.rank, on, error);
  if (status) return status;
  int64_t count = hn_count(y), index[HONE_MAX_RANK] = {0}, at = 0, left = 0;
  plan p = plan_make(&x->desc, on);
  if (p.n == 0) {
    double empty = y->desc.dtype == HONE_DTYPE_BOOL ? r->empty > 0 : r->empty;
    for (int64_t i = 0; i < count; i++) hn_write_f64(y->data, y->desc.dtype, i, &empty, 1);
    return HONE_OK;
  }
  if (count == 0) return HONE_OK;
  if (r->best && hn_reduce_best_takes(x->desc.dtype)) return hn_reduce_best(call, on, r->best > 0, error);
  size_t size = hone_dtype_size(x->desc.dtype);
  void *packed = p.dense ? NULL : hn_scratch(call, p.n, size, error);
  void *wide = hn_scratch(call, size < 8 ? p.n : 1, 8, error);
  if (!wide || (!packed && !p.dense)) return HONE_ERROR_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    if ((left -= p.n) < 0) {
      left = HN_STOP_EVERY;
      status = hn_call_check(call, error);
      if (status) return status;
    }
    const void *run = hn_at(x, at);
    if (!p.dense) {
      hn_move(packed, p.packed_step, run, p.gone_step, p.gone_dim, p.gone, size);
      run = packed;
    }
    apply(r, run, wide, p.n, y, i);
    for (int32_t d = p.kept - 1; d >= 0; d--) {
      at += p.keep_step[d];
      if (++index[d] < p.keep_dim[d]) break;
      at -= p.keep_step[d] * p.keep_dim[d];
      index[d] = 0;
    }
  }
  return HONE_OK;
}
