/* GatherBlockQuantized: Gather of a table of codes with a scale (and zero point) for each block along an
 * axis; only what is gathered is decoded. Codes of u8 are packed along the last dimension where `bits` says
 * less. Floats of 8 and 4 bits have no zero points, and may have one scale for all of the axis (block_size
 * 0). */
#include "model/ops/common/convert.h"
#include "model/ops/microsoft/codes/nbits.h"

enum { DATA, INDICES, SCALES, ZEROS };

/* Codes that are numbers by themselves. */
#define FLOATS                                                                                               \
  (HONE_TYPES(HONE_DTYPE_F8E4M3FN) | HONE_TYPES(HONE_DTYPE_F8E4M3FNUZ) | HONE_TYPES(HONE_DTYPE_F8E5M2) |     \
   HONE_TYPES(HONE_DTYPE_F8E5M2FNUZ) | HONE_TYPES(HONE_DTYPE_F4E2M1))

typedef struct table {
  hone_tensor_desc d; /* of codes, each counted */
  int32_t gather, quantise;
  int64_t bits, block;
} table;

static hone_status read(const hone_node *node, const hone_tensor_desc *data, table *t, hone_error *error) {
  *t = (table){.d = *data, .bits = data->dtype == HONE_DTYPE_U8 ? hone_node_int(node, "bits", 4) : 4};
  t->block = hone_node_int(node, "block_size", 128);
  if (t->bits != 2 && t->bits != 4 && t->bits != 8)
    return hn_op_refuse(node, error, "codes of %lld bits", (long long)t->bits);
  const bool floats = (HONE_TYPES(data->dtype) & FLOATS) != 0;
  if ((t->block || !floats) && (t->block < 16 || t->block > INT32_MAX || (t->block & (t->block - 1))))
    return hn_op_bad(node, error, "block_size is %lld", (long long)t->block);
  if (!t->block) t->block = INT64_MAX; /* one */
  if (data->rank < 0) return HONE_OK;
  if (data->rank < 1) return hn_op_bad(node, error, "the table has rank 0");
  hone_status s = hn_axis(hone_node_int(node, "gather_axis", 0), data->rank, &t->gather, error);
  if (!s) s = hn_axis(hone_node_int(node, "quantize_axis", 1), data->rank, &t->quantise, error);
  if (s || data->dtype != HONE_DTYPE_U8) return s;
  if (t->gather != 0) return hn_op_bad(node, error, "gather_axis of a table of u8 is %d", (int)t->gather);
  int64_t *last = &t->d.dim[data->rank - 1];
  if (*last > 0 && __builtin_mul_overflow(*last, 8 / t->bits, last))
    return hn_op_bad(node, error, "the table is too large");
  return HONE_OK;
}

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *index = io->input[INDICES], *scales = io->input[SCALES];
  table t;
  int64_t dims[2 * HONE_MAX_RANK];
  hone_status s = read(io->node, io->input[DATA], &t, error);
  if (!s) s = hn_infer_dtype_in(io, INDICES, HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64), error);
  if (!s) s = hn_infer_dtype_in(io, SCALES, HN_TYPES_FLOAT, error);
  if (!s) s = hn_infer_same_dtype(io, DATA, ZEROS, error);
  if (!s && hn_has_input(io, ZEROS) && (HONE_TYPES(io->input[DATA]->dtype) & FLOATS))
    s = hn_op_bad(io->node, error, "zero points of a table of floats");
  if (s) return s;
  if (t.d.rank < 0 || index->rank < 0) return hn_infer_set(io, 0, scales->dtype, -1, NULL), HONE_OK;
  if (scales->rank >= 0 && scales->rank != t.d.rank)
    return hn_op_bad(io->node, error, "the scales have rank %d, the table %d", (int)scales->rank,
                     (int)t.d.rank);
  for (int32_t i = 0; i < t.d.rank && scales->rank >= 0; i++) {
    const int64_t n = t.d.dim[i], want = n <= 0 || i != t.quantise ? n : (n - 1) / t.block + 1;
    if (hn_dims_differ(scales->dim[i], want))
      return hn_op_bad(io->node, error, "the scales have %lld in dimension %d, expected %lld",
                       (long long)scales->dim[i], (int)i, (long long)want);
  }
  if (scales->rank >= 0) { /* packed as the codes are */
    int64_t zeros[HONE_MAX_RANK];
    for (int32_t i = 0; i < scales->rank; i++) zeros[i] = scales->dim[i];
    const int64_t each = t.d.dtype == HONE_DTYPE_U8 ? 8 / t.bits : 1;
    int64_t *last = &zeros[scales->rank - 1];
    if (*last >= 0) *last = (*last + each - 1) / each;
    if ((s = hn_infer_dims(io, ZEROS, "zero_points", scales->rank, zeros, error))) return s;
  }
  const int32_t rank = t.d.rank - 1 + index->rank;
  if (rank > HONE_MAX_RANK) return hn_op_refuse(io->node, error, "a result of %d dimensions", (int)rank);
  for (int32_t i = 0; i < rank; i++)
    dims[i] = i < t.gather                 ? t.d.dim[i]
              : i < t.gather + index->rank ? index->dim[i - t.gather]
                                           : t.d.dim[i - index->rank + 1];
  hn_infer_set(io, 0, scales->dtype, rank, dims);
  return HONE_OK;
}

/* Code i of `x`, of which `row` codes (rounded up to whole bytes) lie in the last dimension. */
static double code(const hone_tensor *x, const table *t, int64_t i, int64_t row) {
  if (x->desc.dtype != HONE_DTYPE_U8) return hn_get_f64(x, i);
  const int64_t each = 8 / t->bits, bytes = (row + each - 1) / each;
  return (double)hn_nbits_code((const uint8_t *)x->data + i / row * bytes, t->bits, i % row);
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *data = call->input[DATA], *index = call->input[INDICES], *scales = call->input[SCALES],
                    *zeros = hn_call_has(call, ZEROS) ? call->input[ZEROS] : NULL;
  hone_tensor *y = call->output[0];
  table t;
  hone_status s = read(call->node, &data->desc, &t, error);
  if (s) return s;
  const int32_t rank = t.d.rank;
  const int64_t outer = hn_dims(&t.d, 0, t.gather), rows = t.d.dim[t.gather],
                inner = hn_dims(&t.d, t.gather + 1, rank), picked = hn_count(index);
  const double otherwise = data->desc.dtype == HONE_DTYPE_U8 ? (double)(1 << (t.bits - 1)) : 0;
  const hone_tensor_desc *sd = &scales->desc;
  double *run = hn_scratch(call, inner, sizeof *run, error);
  if (!run) return HONE_ERROR_MEMORY;
  for (int64_t o = 0; o < outer * picked; o++) {
    int64_t row = hn_get_i64(index, o % picked);
    if ((s = hn_call_check(call, error))) return s;
    if (row < 0) row += rows;
    for (int64_t i = 0; i < inner; i++) {
      if (row < 0 || row >= rows) { /* as ONNX Runtime has it */
        run[i] = 0;
        continue;
      }
      int64_t rest = (o / picked * rows + row) * inner + i, at = 0, step = 1;
      const int64_t from = rest;
      for (int32_t d = rank - 1; d >= 0; d--) {
        const int64_t k = rest % t.d.dim[d];
        at += (d == t.quantise ? k / t.block : k) * step;
        rest /= t.d.dim[d], step *= sd->dim[d];
      }
      const double zero = zeros ? code(zeros, &t, at, sd->dim[rank - 1]) : otherwise;
      run[i] = (code(data, &t, from, t.d.dim[rank - 1]) - zero) * hn_get_f64(scales, at);
    }
    hn_store_f64(y, o * inner, run, inner);
  }
  return HONE_OK;
}

static const hone_attr_desc attrs[] = {{.name = "gather_axis", .type = HONE_ATTR_INT},
                                       {.name = "quantize_axis", .type = HONE_ATTR_INT},
                                       {.name = "block_size", .type = HONE_ATTR_INT},
                                       {.name = "bits", .type = HONE_ATTR_INT},
                                       {0}};

HN_OP(gather_block_quantized) = {HONE_DESC_HEAD(hone_op_desc),
                                 .domain = "com.microsoft",
                                 .op_type = "GatherBlockQuantized",
                                 .since = 1,
                                 HN_INPUTS(3, 4),
                                 HN_OUTPUTS(1, 1),
                                 .types = HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_U4) |
                                          HONE_TYPES(HONE_DTYPE_I4) | FLOATS,
                                 .attrs = attrs,
                                 .infer = infer,
                                 .reference = reference};
