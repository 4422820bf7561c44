/* Drivers of the elementwise families. */
#include "model/ops/common/elementwise.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"

#define BLOCK 256 /* elements of 16-bit floats that are widened at a time */

static bool is_half(hone_dtype t) { return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16; }

static hone_status no_loop(hone_call *call, hone_dtype t, hone_error *error) {
  return hn_op_refuse(call->node, error, "dtype %s", hone_dtype_name(t));
}

hone_status hn_infer_test(const hone_infer *io, hone_error *error) {
  (void)error;
  hn_infer_set(io, 0, HONE_DTYPE_BOOL, io->input[0]->rank, io->input[0]->dim);
  return HONE_OK;
}

hone_status hn_unary(hone_call *call, const hn_unary_loops *loops, const double *param, hone_error *error) {
  static const double none[2] = {0, 0};
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  hone_dtype t = x->desc.dtype, r = y->desc.dtype;
  hn_unary_loop loop = loops->of[is_half(t) ? HONE_DTYPE_F32 : t];
  if (!loop) return no_loop(call, t, error);
  if (!param) param = none;
  int64_t n = hn_count(x);
  for (int64_t i = 0; i < n; i += HN_STOP_EVERY) {
    hone_status status = hn_call_check(call, error);
    if (status) return status;
    int64_t end = n - i < HN_STOP_EVERY ? n : i + HN_STOP_EVERY;
    if (!is_half(t)) {
      loop(hn_at(x, i), hn_at_mut(y, i), end - i, param);
      continue;
    }
    for (int64_t j = i; j < end; j += BLOCK) {
      float in[BLOCK], out[BLOCK];
      int64_t m = end - j < BLOCK ? end - j : BLOCK;
      hn_read_f32(in, x->data, t, j, m);
      if (is_half(r)) {
        loop(in, out, m, param);
        hn_write_f32(y->data, r, j, out, m);
      } else
        loop(in, hn_at_mut(y, j), m, param);
    }
  }
  return HONE_OK;
}

hone_status hn_align_operand(const hone_node *node, const hone_tensor_desc *a, const hone_tensor_desc *b,
                             hone_tensor_desc *aligned, hone_error *error) {
  *aligned = *b;
  if (hone_node_opset(node) >= 7 || a->rank < 0 || b->rank < 0) return HONE_OK;
  if (!hone_node_int(node, "broadcast", 0)) {
    bool same = a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank; i++)
      same = a->dim[i] < 0 || b->dim[i] < 0 || a->dim[i] == b->dim[i];
    return same ? HONE_OK : hn_op_bad(node, error, "operands differ in shape, and broadcast is not set");
  }
  if (b->rank > a->rank) return hn_op_bad(node, error, "operand B has more dimensions than A");
  int32_t axis = a->rank - b->rank;
  if (hone_node_has(node, "axis")) {
    hone_status status = hn_axis(hone_node_int(node, "axis", 0), a->rank, &axis, error);
    if (status) return status;
    if (axis + b->rank > a->rank) { /* a trailing 1 may hang over: B of one element */
      if (hone_desc_count(b) != 1)
        return hn_op_bad(node, error, "axis %d leaves no room for operand B", axis);
      axis = a->rank - b->rank;
    }
  }
  aligned->rank = a->rank;
  for (int32_t i = 0; i < a->rank; i++)
    aligned->dim[i] = i >= axis && i < axis + b->rank ? b->dim[i - axis] : 1;
  for (int32_t i = 0; i < a->rank; i++)
    if (aligned->dim[i] > 1 && a->dim[i] >= 0 && a->dim[i] != aligned->dim[i])
      return hn_op_bad(node, error, "operand B does not fit A at dimension %d", i);
  return HONE_OK;
}

static hone_status infer_binary(const hone_infer *io, hone_dtype dtype, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  hone_tensor_desc out = *a, aligned;
  if (a->dtype && b->dtype && a->dtype != b->dtype)
    return hn_op_bad(io->node, error, "operands are %s and %s", hone_dtype_name(a->dtype),
                     hone_dtype_name(b->dtype));
  hone_status status = hn_align_operand(io->node, a, b, &aligned, error);
  if (!status) status = hn_broadcast_dims(&out, &aligned, error);
  if (!status) hn_infer_set(io, 0, dtype, out.rank, out.dim);
  return status;
}

hone_status hn_infer_binary(const hone_infer *io, hone_error *error) {
  return infer_binary(io, io->input[0]->dtype ? io->input[0]->dtype : io->input[1]->dtype, error);
}
hone_status hn_infer_compare(const hone_infer *io, hone_error *error) {
  return infer_binary(io, HONE_DTYPE_BOOL, error);
}

/* Result dimensions with the operands' steps; dimensions that are one run for both operands are joined. */
typedef struct walk {
  int32_t rank;
  int64_t dim[HONE_MAX_RANK], a[HONE_MAX_RANK], b[HONE_MAX_RANK];
} walk;

static int64_t step_of(const hone_tensor_desc *d, const int64_t *stride, int32_t i, int32_t rank) {
  int32_t j = i - (rank - d->rank);
  return j < 0 || d->dim[j] == 1 ? 0 : stride[j];
}

static walk walk_make(const hone_tensor_desc *a, const hone_tensor_desc *b, const hone_tensor_desc *c) {
  walk w = {0};
  int64_t sa[HONE_MAX_RANK], sb[HONE_MAX_RANK];
  hn_strides(a->dim, a->rank, sa);
  hn_strides(b->dim, b->rank, sb);
  for (int32_t i = 0; i < c->rank; i++) {
    if (c->dim[i] == 1) continue;
    int64_t ta = step_of(a, sa, i, c->rank), tb = step_of(b, sb, i, c->rank), d = c->dim[i];
    if (w.rank && w.a[w.rank - 1] == ta * d && w.b[w.rank - 1] == tb * d) {
      w.dim[w.rank - 1] *= d, w.a[w.rank - 1] = ta, w.b[w.rank - 1] = tb;
      continue;
    }
    w.dim[w.rank] = d, w.a[w.rank] = ta, w.b[w.rank] = tb;
    w.rank++;
  }
  if (w.rank == 0) w.dim[w.rank++] = 1;
  return w;
}

/* One run of 16-bit floats, widened block by block. */
static bool run_half(hn_binary_loop loop, hone_dtype t, const void *a, int64_t sa, const void *b, int64_t sb,
                     void *c, hone_dtype r, int64_t at, int64_t n) {
  float x[BLOCK], y[BLOCK], z[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    hn_read_f32(x, a, t, sa ? i : 0, sa ? m : 1);
    hn_read_f32(y, b, t, sb ? i : 0, sb ? m : 1);
    if (is_half(r)) {
      if (!loop(x, sa, y, sb, z, m)) return false;
      hn_write_f32(c, r, at + i, z, m);
    } else if (!loop(x, sa, y, sb, (char *)c + (size_t)(at + i) * hone_dtype_size(r), m))
      return false;
  }
  return true;
}

hone_status hn_binary_apply(hone_call *call, hn_binary_loop loop, const hone_tensor_desc *da, const void *a,
                            const hone_tensor_desc *db, const void *b, hone_tensor *c, hone_error *error) {
  int64_t count = hn_count(c), at = 0, since_check = HN_STOP_EVERY;
  if (count == 0) return HONE_OK;
  walk w = walk_make(da, db, &c->desc);
  int64_t index[HONE_MAX_RANK] = {0}, inner = w.dim[w.rank - 1], ia = w.a[w.rank - 1], ib = w.b[w.rank - 1];
  size_t size = hone_dtype_size(da->dtype), out_size = hone_dtype_size(c->desc.dtype);
  const char *pa = a, *pb = b;
  for (;;) {
    for (int64_t i = 0; i < inner;) { /* long runs are cut so that a stop is seen */
      int64_t n = inner - i < HN_STOP_EVERY ? inner - i : HN_STOP_EVERY;
      if ((since_check += n) >= HN_STOP_EVERY) {
        since_check = 0;
        hone_status status = hn_call_check(call, error);
        if (status) return status;
      }
      const char *ra = pa + i * ia * (int64_t)size, *rb = pb + i * ib * (int64_t)size;
      bool ok = is_half(da->dtype) ? run_half(loop, da->dtype, ra, ia, rb, ib, c->data, c->desc.dtype, at, n)
                                   : loop(ra, ia, rb, ib, (char *)c->data + (size_t)at * out_size, n);
      if (!ok) return hn_op_bad(call->node, error, "integer division by zero");
      at += n;
      i += n;
    }
    int32_t i = w.rank - 2;
    for (; i >= 0; i--) {
      pa += w.a[i] * (int64_t)size;
      pb += w.b[i] * (int64_t)size;
      if (++index[i] < w.dim[i]) break;
      pa -= w.a[i] * w.dim[i] * (int64_t)size;
      pb -= w.b[i] * w.dim[i] * (int64_t)size;
      index[i] = 0;
    }
    if (i < 0) return HONE_OK;
  }
}

hone_status hn_binary_run(hone_call *call, const hn_binary_loops *loops, hone_error *error) {
  const hone_tensor *a = call->input[0], *b = call->input[1];
  hone_dtype t = a->desc.dtype;
  hn_binary_loop loop = loops->of[is_half(t) ? HONE_DTYPE_F32 : t];
  if (!loop) return no_loop(call, t, error);
  hone_tensor_desc aligned;
  hone_status status = hn_align_operand(call->node, &a->desc, &b->desc, &aligned, error);
  if (status) return status;
  return hn_binary_apply(call, loop, &a->desc, a->data, &aligned, b->data, call->output[0], error);
}

hone_status hn_infer_variadic(const hone_infer *io, hone_error *error) {
  if (!hn_has_input(io, 0)) return hn_op_bad(io->node, error, "input 0 is missing");
  hone_tensor_desc out = *io->input[0];
  for (uint32_t i = 1; i < io->n_inputs; i++) {
    if (!io->input[i]) return hn_op_bad(io->node, error, "input %u is missing", i);
    if (out.dtype && io->input[i]->dtype && out.dtype != io->input[i]->dtype)
      return hn_op_bad(io->node, error, "input %u is %s, input 0 is %s", i,
                       hone_dtype_name(io->input[i]->dtype), hone_dtype_name(out.dtype));
    hone_status status = hn_broadcast_dims(&out, io->input[i], error);
    if (status) return status;
  }
  hn_infer_set(io, 0, out.dtype, out.rank, out.dim);
  return HONE_OK;
}

/* All inputs into y, which has their dtype, with one loop. */
static hone_status accumulate(hone_call *call, hn_binary_loop loop, const hone_tensor *const *x,
                              hone_tensor *y, hone_error *error) {
  if (call->n_inputs == 1) hn_expand(y, &x[0]->desc, x[0]->data);
  for (uint32_t i = 1; i < call->n_inputs; i++) {
    const hone_tensor *a = i == 1 ? x[0] : y, *b = x[i];
    hone_status status = hn_binary_apply(call, loop, &a->desc, a->data, &b->desc, b->data, y, error);
    if (status) return status;
  }
  return HONE_OK;
}

hone_status hn_variadic_run(hone_call *call, const hn_binary_loops *loops, hone_error *error) {
  hone_tensor *y = call->output[0];
  hone_dtype t = y->desc.dtype;
  uint32_t n = call->n_inputs;
  hn_binary_loop loop = loops->of[is_half(t) ? HONE_DTYPE_F32 : t];
  if (!loop) return no_loop(call, t, error);
  if (!is_half(t) || n < 3) return accumulate(call, loop, call->input, y, error);
  /* 16-bit floats are rounded once, at the end. */
  hone_tensor *wide = hn_scratch(call, n + 1, sizeof *wide, error);
  const hone_tensor **x = wide ? hn_scratch(call, n, sizeof *x, error) : NULL;
  if (!x) return HONE_ERROR_MEMORY;
  for (uint32_t i = 0; i < n; i++) {
    const hone_tensor *from = call->input[i];
    wide[i] = (hone_tensor){hone_desc(HONE_DTYPE_F32, from->desc.rank, from->desc.dim),
                            (void *)hn_all_f32(call, from, error)};
    if (!wide[i].data) return HONE_ERROR_MEMORY;
    x[i] = &wide[i];
  }
  int64_t count = hn_count(y);
  wide[n] = (hone_tensor){hone_desc(HONE_DTYPE_F32, y->desc.rank, y->desc.dim),
                          hn_scratch(call, count, sizeof(float), error)};
  if (!wide[n].data) return HONE_ERROR_MEMORY;
  hone_status status = accumulate(call, loop, x, &wide[n], error);
  if (!status) hn_write_f32(y->data, t, 0, wide[n].data, count);
  return status;
}

void hn_variadic_cost(const hone_infer *io, hone_cost *cost) {
  int64_t n = hone_desc_count(io->output[0]);
  *cost =
      (hone_cost){.flops = n > 0 ? (double)n * (io->n_inputs > 1 ? io->n_inputs - 1 : 0) : 0, .bytes = -1};
}
