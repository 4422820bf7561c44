/* Functions of rows along an axis. */
#include "model/ops/activation/rows.h"
#include "model/ops/common/bulk.h"
#include "model/ops/common/move.h"

const hone_attr_desc hn_rows_attrs[] = {{.name = "axis", .type = HONE_ATTR_INT}, {0}};

static hone_status axis_of(const hone_node *node, int32_t rank, int32_t *axis, bool *flat,
                           hone_error *error) {
  *flat = hone_node_opset(node) < 13;
  int64_t a = hone_node_int(node, "axis", *flat ? 1 : -1);
  if ((*flat && a == rank) || rank == 0) { /* every element, or the scalar, is a row of its own */
    *axis = rank;
    return HONE_OK;
  }
  return hn_axis(a, rank, axis, error);
}

hone_status hn_rows_infer(const hone_infer *io, hone_error *error) {
  int32_t axis;
  bool flat;
  if (io->input[0]->rank >= 0) {
    hone_status status = axis_of(io->node, io->input[0]->rank, &axis, &flat, error);
    if (status) return status;
  }
  return hn_infer_same(io, error);
}

void hn_rows_cost(const hone_infer *io, hone_cost *cost) {
  int64_t n = hone_desc_count(io->output[0]);
  *cost = (hone_cost){.flops = n > 0 ? 5.0 * (double)n : 0, .bytes = -1};
}

hone_status hn_rows_run(hone_call *call, hn_row_f32 f32, hn_row_f64 f64, hn_row_narrow narrow,
                        hone_error *error) {
  const hone_tensor *x = call->input[0];
  hone_tensor *y = call->output[0];
  const hone_tensor_desc *d = &x->desc;
  int32_t axis;
  bool flat, wide = d->dtype == HONE_DTYPE_F64;
  hone_status status = axis_of(call->node, d->rank, &axis, &flat, error);
  if (status || hn_count(x) == 0) return status;
  int64_t outer = hn_product(d->dim, 0, axis), n = flat             ? hn_product(d->dim, axis, d->rank)
                                                   : axis < d->rank ? d->dim[axis]
                                                                    : 1;
  int64_t inner = flat || axis == d->rank ? 1 : hn_product(d->dim, axis + 1, d->rank), since_check = 0;
  size_t size = hone_dtype_size(d->dtype);
  void *packed = NULL, *row = NULL;
  bool direct = inner == 1 && (wide || d->dtype == HONE_DTYPE_F32);
  if (!direct) {
    packed = hn_scratch(call, n, 8, error);
    row = packed ? hn_scratch(call, n, 8, error) : NULL;
    if (!row) return HONE_ERROR_MEMORY;
  }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      if ((since_check -= n) < 0) {
        since_check = HN_STOP_EVERY;
        status = hn_call_check(call, error);
        if (status) return status;
      }
      const void *from = hn_at(x, o * n * inner + i);
      void *to = hn_at_mut(y, o * n * inner + i);
      if (direct) {
        if (wide)
          f64(from, to, n);
        else
          f32(from, to, n);
        continue;
      }
      const int64_t one = 1, step = inner;
      hn_move(packed, &one, from, &step, &n, 1, size);
      if (wide)
        f64(packed, packed, n);
      else {
        hn_read_f32(row, packed, d->dtype, 0, n);
        if (narrow && d->dtype != HONE_DTYPE_F32)
          narrow(row, packed, d->dtype, n);
        else
          f32(row, row, n);
        hn_write_f32(packed, d->dtype, 0, row, n);
      }
      hn_move(to, &step, packed, &one, &n, 1, size);
    }
  return HONE_OK;
}

#define LOG_SOFTMAX(T, EXP)                                                                                  \
  T top = x[0];                                                                                              \
  double sum = 0;                                                                                            \
  for (int64_t i = 1; i < n; i++)                                                                            \
    if (x[i] > top) top = x[i];                                                                              \
  for (int64_t i = 0; i < n; i++) sum += EXP(x[i] - top);                                                    \
  const T shift = (T)log(sum);                                                                               \
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - top - shift

void hn_log_softmax_f32(const float *x, float *y, int64_t n) { LOG_SOFTMAX(float, expf); }
void hn_log_softmax_f64(const double *x, double *y, int64_t n) { LOG_SOFTMAX(double, exp); }
