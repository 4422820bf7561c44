/* NonZero: the indices of all elements that are not zero, one column each, in row-major order. */
#include "model/ops/common/convert.h"

static hone_status infer(const hone_infer *io, hone_error *error) {
  (void)error;
  int64_t dim[2] = {io->input[0]->rank < 0 ? HONE_DIM_UNKNOWN : io->input[0]->rank, HONE_DIM_UNKNOWN};
  hn_infer_set(io, 0, HONE_DTYPE_I64, 2, dim);
  return HONE_OK;
}

/* At most every element is not zero. */
static hone_status most(const hone_infer *io, hone_error *error) {
  hone_status status = infer(io, error);
  if (!status && io->output[0]) io->output[0]->dim[1] = hone_desc_count(io->input[0]);
  return status;
}

/* ------------------------------------------------------------------ elements by their size */

enum { BLOCK = 64 }; /* elements whose bits are one word */

/* How many of n <= BLOCK elements have a bit of `mask`, and which. Loops that become vectors find the blocks
 * of zeros, which most of a mask is. */
typedef struct elements {
  int64_t (*count)(const void *x, int64_t first, int64_t n, uint64_t mask);
  uint64_t (*which)(const void *x, int64_t first, int64_t n, uint64_t mask);
} elements;

#define ELEMENTS(T)                                                                                          \
  static int64_t count_##T(const void *data, int64_t first, int64_t n, uint64_t mask) {                      \
    const T *x = (const T *)data + first, bits = (T)mask;                                                    \
    T some = 0;                                                                                              \
    for (int64_t i = 0; i < n; i++) some = (T)(some + ((x[i] & bits) != 0));                                 \
    return (int64_t)some;                                                                                    \
  }                                                                                                          \
  static uint64_t which_##T(const void *data, int64_t first, int64_t n, uint64_t mask) {                     \
    const T *x = (const T *)data + first, bits = (T)mask;                                                    \
    uint64_t found = 0;                                                                                      \
    for (int64_t i = 0; i < n; i++) found |= (uint64_t)((x[i] & bits) != 0) << i;                            \
    return found;                                                                                            \
  }
ELEMENTS(uint8_t)
ELEMENTS(uint16_t)
ELEMENTS(uint32_t)
ELEMENTS(uint64_t)

static uint64_t which_string(const void *data, int64_t first, int64_t n, uint64_t mask) {
  const hone_string *x = (const hone_string *)data + first;
  uint64_t found = 0;
  (void)mask;
  for (int64_t i = 0; i < n; i++) found |= (uint64_t)(x[i].len != 0) << i;
  return found;
}
static int64_t count_string(const void *data, int64_t first, int64_t n, uint64_t mask) {
  return __builtin_popcountll(which_string(data, first, n, mask));
}

static elements elements_of(hone_dtype dtype) {
  if (dtype == HONE_DTYPE_STRING) return (elements){count_string, which_string};
  switch (hone_dtype_size(dtype)) {
  case 1: return (elements){count_uint8_t, which_uint8_t};
  case 2: return (elements){count_uint16_t, which_uint16_t};
  case 4: return (elements){count_uint32_t, which_uint32_t};
  default: return (elements){count_uint64_t, which_uint64_t};
  }
}

/* Bits of which one is set where an element is not zero: the sign of a float says nothing. */
static uint64_t mask_of(hone_dtype dtype) {
  const uint64_t sign = 1ull << (8 * hone_dtype_size(dtype) - 1) % 64;
  return hone_dtype_is_float(dtype) ? ~sign : ~0ull;
}

/* ------------------------------------------------------------------ the operator */

static hone_status count_all(hone_call *call, const elements *e, uint64_t mask, int64_t *n,
                             hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int64_t count = hn_count(x);
  *n = 0;
  for (int64_t i = 0; i < count; i += BLOCK) {
    const hone_status status = i % HN_STOP_EVERY == 0 ? hn_call_check(call, error) : HONE_OK;
    if (status) return status;
    *n += e->count(x->data, i, count - i < BLOCK ? count - i : BLOCK, mask);
  }
  return HONE_OK;
}

/* The places of the n elements that are not zero, counted through all of x. */
static void find_all(const hone_tensor *x, const elements *e, uint64_t mask, int64_t *place, int64_t n) {
  const int64_t count = hn_count(x);
  int64_t at = 0;
  for (int64_t i = 0; at < n; i += BLOCK) {
    const int64_t size = count - i < BLOCK ? count - i : BLOCK, some = e->count(x->data, i, size, mask);
    if (some == BLOCK)
      for (int64_t k = 0; k < BLOCK; k++) place[at++] = i + k;
    else if (some)
      for (uint64_t found = e->which(x->data, i, size, mask); found; found &= found - 1)
        place[at++] = i + __builtin_ctzll(found);
  }
}

/* Places in the last row of index[rank][n] become indices of all dimensions. */
static void spread(int64_t *index, int64_t n, const hone_tensor_desc *x) {
  const int32_t last = x->rank - 1;
  const int64_t inner = x->dim[last];
  int64_t *place = index + last * n, outer[HONE_MAX_RANK] = {0}, first = 0; /* of the innermost row */
  for (int64_t i = 0; i < n; i++) {
    if (place[i] - first >= inner) {
      int64_t row = place[i] / inner;
      first = row * inner;
      for (int32_t d = last - 1; d >= 0; d--) outer[d] = row % x->dim[d], row /= x->dim[d];
    }
    for (int32_t d = 0; d < last; d++) index[d * n + i] = outer[d];
    place[i] -= first;
  }
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *x = call->input[0];
  const int32_t rank = x->desc.rank;
  const elements e = elements_of(x->desc.dtype);
  const uint64_t mask = mask_of(x->desc.dtype);
  int64_t n;
  hone_status status = count_all(call, &e, mask, &n, error);
  const hone_tensor_desc y = hone_desc(HONE_DTYPE_I64, 2, (const int64_t[]){rank, n});
  if (!status) status = call->alloc_output(call, 0, &y, error);
  if (status || !rank) return status;
  int64_t *index = call->output[0]->data;
  find_all(x, &e, mask, index + (rank - 1) * n, n);
  if (rank > 1) spread(index, n, &x->desc);
  return HONE_OK;
}

HN_OP(non_zero) = {HN_OP_HEAD,
                   .op_type = "NonZero",
                   .since = 9,
                   .flags = HONE_OP_DATA_DEPENDENT,
                   HN_INPUTS(1, 1),
                   HN_OUTPUTS(1, 1),
                   .types = HN_TYPES_ALL,
                   .infer = infer,
                   .most = most,
                   .reference = reference};
