/* What every operator file includes: the descriptor, and helpers for inference, broadcasting and typed
 * access. */
#ifndef HN_MODEL_OPS_OP_H
#define HN_MODEL_OPS_OP_H

#include "base/error.h"
#include "base/half.h"
#include "base/narrow.h"

#include <hone/plugin.h>
#include <math.h>
#include <string.h>

/* Defines the entry symbol of an operator file: HN_OP(conv) = { .op_type = "Conv", ... }; */
#define HN_OP(name) const hone_op_desc hn_op_##name
#define HN_OP_HEAD HONE_DESC_HEAD(hone_op_desc), .domain = ""
#define HN_INPUTS(least, most) .min_inputs = (least), .max_inputs = (most)
#define HN_OUTPUTS(least, most) .min_outputs = (least), .max_outputs = (most)

#define HN_TYPES_FLOAT                                                                                       \
  (HONE_TYPES(HONE_DTYPE_F32) | HONE_TYPES(HONE_DTYPE_F64) | HONE_TYPES(HONE_DTYPE_F16) |                    \
   HONE_TYPES(HONE_DTYPE_BF16))
#define HN_TYPES_SINT                                                                                        \
  (HONE_TYPES(HONE_DTYPE_I8) | HONE_TYPES(HONE_DTYPE_I16) | HONE_TYPES(HONE_DTYPE_I32) |                     \
   HONE_TYPES(HONE_DTYPE_I64))
#define HN_TYPES_UINT                                                                                        \
  (HONE_TYPES(HONE_DTYPE_U8) | HONE_TYPES(HONE_DTYPE_U16) | HONE_TYPES(HONE_DTYPE_U32) |                     \
   HONE_TYPES(HONE_DTYPE_U64))
/* Those that are stored and converted, never computed with. */
#define HN_TYPES_NARROW_INT                                                                                  \
  (HONE_TYPES(HONE_DTYPE_I4) | HONE_TYPES(HONE_DTYPE_U4) | HONE_TYPES(HONE_DTYPE_I2) |                       \
   HONE_TYPES(HONE_DTYPE_U2))
#define HN_TYPES_NARROW_CODE /* what QuantizeLinear makes */                                                 \
  (HN_TYPES_NARROW_INT | HONE_TYPES(HONE_DTYPE_F8E4M3FN) | HONE_TYPES(HONE_DTYPE_F8E4M3FNUZ) |               \
   HONE_TYPES(HONE_DTYPE_F8E5M2) | HONE_TYPES(HONE_DTYPE_F8E5M2FNUZ) | HONE_TYPES(HONE_DTYPE_F4E2M1) |       \
   HONE_TYPES(HONE_DTYPE_F6E2M3) | HONE_TYPES(HONE_DTYPE_F6E3M2))
#define HN_TYPES_NARROW (HN_TYPES_NARROW_CODE | HONE_TYPES(HONE_DTYPE_F8E8M0))
#define HN_TYPES_NUMBER (HN_TYPES_FLOAT | HN_TYPES_SINT | HN_TYPES_UINT)
#define HN_TYPES_BOOL HONE_TYPES(HONE_DTYPE_BOOL)
#define HN_TYPES_STRING HONE_TYPES(HONE_DTYPE_STRING)
#define HN_TYPES_ALL (HN_TYPES_NUMBER | HN_TYPES_BOOL | HN_TYPES_STRING)

/* ---- inference. Unknown ranks and dimensions flow through; only contradictions are errors. */

/* Output i gets a dtype and a shape; no-op when the output is not wanted. */
void hn_infer_set(const hone_infer *io, uint32_t i, hone_dtype dtype, int32_t rank, const int64_t *dims);
/* Output 0 like input 0: for unary operators. */
hone_status hn_infer_same(const hone_infer *io, hone_error *error);
/* Broadcasts b into a's shape; HONE_ERROR_INPUT when they do not fit. */
hone_status hn_broadcast_dims(hone_tensor_desc *a, const hone_tensor_desc *b, hone_error *error);
/* True when input i is there. */
static inline bool hn_has_input(const hone_infer *io, uint32_t i) {
  return i < io->n_inputs && io->input[i] != NULL;
}
static inline bool hn_call_has(const hone_call *c, uint32_t i) {
  return i < c->n_inputs && c->input[i] != NULL;
}
/* Integers of a constant input (i32 or i64 tensor of any rank) into out[max]; returns their number, -1 when
 * the value is not known beforehand, -2 when there are more than max. */
int64_t hn_infer_ints(const hone_infer *io, uint32_t i, int64_t *out, int64_t max);
/* The same for a tensor at run time. */
int64_t hn_tensor_ints(const hone_tensor *t, int64_t *out, int64_t max);
/* axis + rank where negative; HONE_ERROR_INPUT (naming the axis) outside [-rank, rank). */
hone_status hn_axis(int64_t axis, int32_t rank, int32_t *out, hone_error *error);

/* ---- typed element access, for references where clarity beats speed. i counts elements in row-major order.
 */
double hn_get_f64(const hone_tensor *t, int64_t i); /* any number or bool */
void hn_set_f64(const hone_tensor *t, int64_t i,
                double v); /* floats round to nearest even; integers truncate and wrap as C casts of the value
                              clamped to the type's range */
int64_t hn_get_i64(const hone_tensor *t,
                   int64_t i); /* any integer or bool; floats truncate; u64 as its bits */
void hn_set_i64(const hone_tensor *t, int64_t i, int64_t v); /* wraps modulo 2^bits; bool: v != 0 */
static inline int64_t hn_count(const hone_tensor *t) { return hone_desc_count(&t->desc); }

/* ---- iteration over broadcast operands */
#define HN_MAX_OPERANDS 16
typedef struct hn_iter {
  int32_t rank;
  uint32_t n;
  int64_t count; /* elements of the result */
  int64_t dim[HONE_MAX_RANK], index[HONE_MAX_RANK];
  int64_t stride[HN_MAX_OPERANDS][HONE_MAX_RANK];
  int64_t at[HN_MAX_OPERANDS]; /* element offsets of the operands at the current place */
} hn_iter;
/* Walks out's dimensions in row-major order; operand[k] broadcasts to them. */
void hn_iter_init(hn_iter *it, const hone_tensor_desc *out, const hone_tensor *const *operand, uint32_t n);
void hn_iter_next(hn_iter *it);

/* "Conv: bad ..." with HONE_ERROR_INPUT. */
hone_status hn_op_bad(const hone_node *node, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with HONE_ERROR_UNSUPPORTED. */
hone_status hn_op_refuse(const hone_node *node, hone_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies `rows` strided blocks of elements of any dtype (strings too: the references are copied, not the
 * bytes). */
static inline void hn_copy_elements(void *dst, const void *src, int64_t n, hone_dtype dtype) {
  if (n > 0) memcpy(dst, src, (size_t)n * hone_dtype_size(dtype));
}

#endif
