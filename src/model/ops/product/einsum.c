/* Einsum: sums of products of elements whose indices carry the same letters. Letters are followed as
 * dimensions: an operand has a step for each of them, and the result is a walk over the result's letters with
 * a sum over the others. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/convert.h"
#include "model/ops/product/equation.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_einsum e;
  hone_dtype dtype = HONE_DTYPE_NONE;
  bool known = true;
  for (uint32_t i = 0; i < io->n_inputs; i++) {
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is missing", i);
    if (io->input[i]->dtype && dtype && io->input[i]->dtype != dtype)
      return hn_op_bad(io->node, error, "inputs differ in dtype");
    if (io->input[i]->dtype) dtype = io->input[i]->dtype;
    known &= io->input[i]->rank >= 0;
  }
  hone_tensor_desc y = {.rank = -1};
  if (known) {
    hone_status status = hn_einsum_parse(io->node, io->input, io->n_inputs, &e, error);
    if (status) return status;
    y.rank = e.out.n;
    for (int32_t k = 0; k < e.out.n; k++) y.dim[k] = e.dim[e.out.label[k]];
  }
  hn_infer_set(io, 0, dtype, y.rank, y.dim);
  return HONE_OK;
}

static void cost(const hone_infer *io, hone_cost *c) {
  hn_einsum e;
  hn_cost_macs(c, 0);
  for (uint32_t i = 0; i < io->n_inputs; i++)
    if (!io->input[i] || !hone_desc_known(io->input[i])) return;
  if (hn_einsum_parse(io->node, io->input, io->n_inputs, &e, NULL)) return;
  double n = 1;
  for (int32_t i = 0; i < HN_EINSUM_LABELS; i++)
    if (e.dim[i] >= 0) n *= (double)e.dim[i];
  if (io->n_inputs > 1)
    hn_cost_macs(c, n * (io->n_inputs - 1));
  else
    hn_cost_flops(c, n);
}

/* Sum over the summed loops from the operands' offsets `at`. The innermost loop is a plain dot product where
 * it can be. */
static double sum_f64(const hn_einsum_nest *t, const double *const *x, const int64_t *start) {
  int64_t index[HN_EINSUM_LOOPS] = {0}, at[HN_EINSUM_OPERANDS];
  int32_t first = t->rank - t->summed, last = t->rank - 1;
  int64_t inner = t->summed ? t->dim[last] : 1;
  /* Of one operand -0 stays -0, as in a Transpose or ReduceSum; sums of products begin with 0. */
  double sum = t->n == 1 && inner ? -0.0 : 0;
  memcpy(at, start, t->n * sizeof *at);
  for (;;) {
    if (t->n == 2 && t->summed) {
      const double *a = x[0] + at[0], *b = x[1] + at[1];
      const int64_t sa = t->step[0][last], sb = t->step[1][last];
      for (int64_t i = 0; i < inner; i++) sum += a[i * sa] * b[i * sb];
    } else {
      for (int64_t i = 0; i < inner; i++) {
        double p = 1;
        for (uint32_t k = 0; k < t->n; k++) p *= x[k][at[k] + i * (t->summed ? t->step[k][last] : 0)];
        sum += p;
      }
    }
    int32_t d = last - 1;
    for (; d >= first; d--) {
      for (uint32_t k = 0; k < t->n; k++) at[k] += t->step[k][d];
      if (++index[d] < t->dim[d]) break;
      for (uint32_t k = 0; k < t->n; k++) at[k] -= t->step[k][d] * t->dim[d];
      index[d] = 0;
    }
    if (d < first) return sum;
  }
}

static int64_t sum_i64(const hn_einsum_nest *t, const int64_t *const *x, const int64_t *start) {
  int64_t index[HN_EINSUM_LOOPS] = {0}, at[HN_EINSUM_OPERANDS];
  int32_t first = t->rank - t->summed;
  uint64_t sum = 0;
  memcpy(at, start, t->n * sizeof *at);
  for (;;) {
    uint64_t p = 1;
    for (uint32_t k = 0; k < t->n; k++) p *= (uint64_t)x[k][at[k]];
    sum += p;
    int32_t d = t->rank - 1;
    for (; d >= first; d--) {
      for (uint32_t k = 0; k < t->n; k++) at[k] += t->step[k][d];
      if (++index[d] < t->dim[d]) break;
      for (uint32_t k = 0; k < t->n; k++) at[k] -= t->step[k][d] * t->dim[d];
      index[d] = 0;
    }
    if (d < first) return (int64_t)sum;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor_desc *desc[HN_EINSUM_OPERANDS];
  const void *x[HN_EINSUM_OPERANDS];
  hone_tensor *y = call->output[0];
  hn_einsum e;
  hn_einsum_nest t;
  if (call->n_inputs > HN_EINSUM_OPERANDS)
    return hn_op_refuse(call->node, error, "%u operands", call->n_inputs);
  for (uint32_t i = 0; i < call->n_inputs; i++) desc[i] = &call->input[i]->desc;
  hone_status status = hn_einsum_parse(call->node, desc, call->n_inputs, &e, error);
  if (!status) status = hn_einsum_loops(call->node, desc, &e, &t, error);
  if (status) return status;
  bool real = hone_dtype_is_float(y->desc.dtype), empty = false;
  for (uint32_t i = 0; i < t.n; i++) {
    int64_t n = hn_count(call->input[i]);
    if (real)
      x[i] = hn_all_f64(call, call->input[i], error);
    else {
      int64_t *wide = hn_scratch(call, n, sizeof *wide, error);
      if (wide) hn_read_i64(wide, call->input[i]->data, desc[i]->dtype, 0, n);
      x[i] = wide;
    }
    if (!x[i]) return HONE_ERROR_MEMORY;
    empty |= n == 0;
  }
  int64_t index[HN_EINSUM_LOOPS] = {0}, at[HN_EINSUM_OPERANDS] = {0}, left = 0, work = 1;
  for (int32_t d = t.rank - t.summed; d < t.rank; d++)
    work = work > HN_STOP_EVERY ? work : work * (t.dim[d] + 1);
  for (int64_t i = 0, count = hn_count(y); i < count; i++) {
    if ((left -= work) < 0) {
      left = HN_STOP_EVERY;
      status = hn_call_check(call, error);
      if (status) return status;
    }
    if (empty)
      hn_set_i64(y, i, 0);
    else if (real)
      hn_set_f64(y, i, sum_f64(&t, (const double *const *)x, at));
    else
      hn_set_i64(y, i, sum_i64(&t, (const int64_t *const *)x, at));
    for (int32_t d = t.rank - t.summed - 1; d >= 0; d--) {
      for (uint32_t k = 0; k < t.n; k++) at[k] += t.step[k][d];
      if (++index[d] < t.dim[d]) break;
      for (uint32_t k = 0; k < t.n; k++) at[k] -= t.step[k][d] * t.dim[d];
      index[d] = 0;
    }
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "equation", .type = HONE_ATTR_STRING, .required = true}, {0}};

HN_OP(einsum) = {HN_OP_HEAD,       .op_type = "Einsum",      .since = 12,    HN_INPUTS(1, HONE_VARIADIC),
                 HN_OUTPUTS(1, 1), .types = HN_TYPES_NUMBER, .attrs = attrs, .infer = infer,
                 .cost = cost,     .reference = reference};
