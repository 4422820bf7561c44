/* Pow: a to the power of b. The exponent may have another dtype (opset 12 on); the result has the base's.
 * Integers by repeated squaring modulo 2^bits; a negative exponent of an integer truncates towards zero. */
#include "model/ops/common/bulk.h"
#include "model/ops/common/elementwise.h"

static int64_t pow_i64(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  uint64_t r = 1, b = (uint64_t)base;
  for (; exponent; exponent >>= 1, b *= b)
    if (exponent & 1) r *= b;
  return (int64_t)r;
}

HN_BINARY_LOOP(any_f32, float, float, float, powf(x, y))
HN_BINARY_LOOP(any_f64, double, double, double, (pow)(x, y))
HN_BINARY_LOOP(any_i32, int32_t, int32_t, int32_t, pow_i64(x, y))
HN_BINARY_LOOP(any_i64, int64_t, int64_t, int64_t, pow_i64(x, y))

/* One exponent for all, which is mostly 2 or 3. U: the type to multiply in. */
#define POWER(suffix, T, U)                                                                                  \
  static bool loop_##suffix(const void *pa, int64_t sa, const void *pb, int64_t sb, void *pc, int64_t n) {   \
    const T *a = pa, y = *(const T *)pb;                                                                     \
    T *c = pc;                                                                                               \
    if (!sa || sb || (y != 2 && y != 3)) return loop_any_##suffix(pa, sa, pb, sb, pc, n);                    \
    if (y == 2)                                                                                              \
      for (int64_t i = 0; i < n; i++) c[i] = (T)((U)a[i] * (U)a[i]);                                         \
    else                                                                                                     \
      for (int64_t i = 0; i < n; i++) c[i] = (T)((U)a[i] * (U)a[i] * (U)a[i]);                               \
    return true;                                                                                             \
  }
POWER(f32, float, float)
POWER(f64, double, double)
POWER(i32, int32_t, uint32_t)
POWER(i64, int64_t, uint64_t)
#undef POWER
static const hn_binary_loops loops = {.of = {[HONE_DTYPE_F32] = loop_f32,
                                             [HONE_DTYPE_F64] = loop_f64,
                                             [HONE_DTYPE_I32] = loop_i32,
                                             [HONE_DTYPE_I64] = loop_i64}};

static hone_status infer(const hone_infer *io, hone_error *error) {
  const hone_tensor_desc *a = io->input[0], *b = io->input[1];
  if (hone_node_opset(io->node) < 12) return hn_infer_binary(io, error);
  if (b->dtype == HONE_DTYPE_STRING || b->dtype == HONE_DTYPE_BOOL)
    return hn_op_bad(io->node, error, "exponent is %s", hone_dtype_name(b->dtype));
  hone_tensor_desc out = *a;
  hone_status status = hn_broadcast_dims(&out, b, error);
  if (!status) hn_infer_set(io, 0, a->dtype, out.rank, out.dim);
  return status;
}

/* x to a whole power >= 0, by squaring in f64: exact as long as the result is below 2^53. */
static inline double whole_power(double x, uint32_t e) {
  double r = 1;
  for (; e; e >>= 1, x *= x)
    if (e & 1) r *= x;
  return r;
}

/* pow, of which whole powers of integers mostly are exact without it. */
static double power(double x, double y) {
  if (y >= 0 && y <= 64 && y == (double)(int)y && fabs(x) <= 0x1p53 && x == (double)(int64_t)x) {
    const double r = whole_power(x, (uint32_t)y);
    if (fabs(r) <= 0x1p53) return r;
  }
  return (pow)(x, y);
}

/* Integers to powers of floats, element by element or to one power of all, in blocks. False: other types or
 * shapes. */
static bool to_float_powers(const hone_tensor *a, const hone_tensor *b, hone_tensor *c) {
  enum { BLOCK = 256 };
  const int64_t n = hn_count(c), m = hn_count(b);
  const hone_dtype t = a->desc.dtype;
  if ((t != HONE_DTYPE_I32 && t != HONE_DTYPE_I64) || hn_count(a) != n || (m != 1 && m != n)) return false;
  double v[BLOCK], r[BLOCK], y[BLOCK];
  if (m == 1) hn_read_f64(y, b->data, b->desc.dtype, 0, 1);
  const bool few = m == 1 && (y[0] == 2 || y[0] == 3), cube = few && y[0] == 3;
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t some = n - i < BLOCK ? n - i : BLOCK;
    int big = 0;
    hn_read_f64(v, a->data, t, i, some);
    if (few) {
      for (int64_t k = 0; k < some; k++) r[k] = cube ? v[k] * v[k] * v[k] : v[k] * v[k];
      for (int64_t k = 0; k < some; k++) big |= fabs(r[k]) > (t == HONE_DTYPE_I32 ? 2147483647.0 : 0x1p53);
    }
    if (m != 1) hn_read_f64(y, b->data, b->desc.dtype, i, some);
    if (few && !big && t == HONE_DTYPE_I32)
      for (int64_t k = 0; k < some; k++) ((int32_t *)c->data)[i + k] = (int32_t)r[k];
    else if (few && !big)
      for (int64_t k = 0; k < some; k++) ((int64_t *)c->data)[i + k] = (int64_t)r[k];
    else
      for (int64_t k = 0; k < some; k++) hn_set_f64(c, i + k, power(v[k], y[m == 1 ? 0 : k]));
  }
  return true;
}

/* Both operands in f64 (floats, or a fractional exponent) or i64 (integers), element by element. */
static hone_status mixed(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[0], *b = call->input[1];
  hone_tensor *c = call->output[0];
  bool whole = !hone_dtype_is_float(a->desc.dtype) && !hone_dtype_is_float(b->desc.dtype);
  const hone_tensor *operands[2] = {a, b};
  if (!whole && to_float_powers(a, b, c)) return HONE_OK;
  hn_iter it;
  hn_iter_init(&it, &c->desc, operands, 2);
  for (int64_t i = 0; i < it.count; i++, hn_iter_next(&it)) {
    if (i % HN_STOP_EVERY == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
    if (whole) {
      int64_t exponent = hn_get_i64(b, it.at[1]);
      bool huge = b->desc.dtype == HONE_DTYPE_U64 &&
                  exponent < 0; /* beyond 2^63: the same power modulo 2^63 cycles */
      hn_set_i64(c, i, pow_i64(hn_get_i64(a, it.at[0]), huge ? (exponent & INT64_MAX) : exponent));
    } else
      hn_set_f64(c, i, power(hn_get_f64(a, it.at[0]), hn_get_f64(b, it.at[1])));
  }
  return HONE_OK;
}

/* Exponents of another type in the base's, in scratch; NULL where it does not hold them all, or there is no
 * room. */
static void *in_bases_type(hone_call *call, hone_error *error) {
  enum { BLOCK = 256 };
  const hone_tensor *b = call->input[1];
  const hone_dtype from = b->desc.dtype, to = call->input[0]->desc.dtype;
  const int64_t n = hn_count(b);
  const bool wide =
      from == HONE_DTYPE_I64 || from == HONE_DTYPE_U64; /* beyond 2^53 a double says too little */
  void *y = hn_scratch(call, n, hone_dtype_size(to), error);
  if (!y || (!hone_dtype_is_float(to) && hone_dtype_is_float(from))) return NULL;
  double v[BLOCK], w[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t some = n - i < BLOCK ? n - i : BLOCK;
    int32_t other = 0;
    hn_read_f64(v, b->data, from, i, some);
    hn_write_f64(y, to, i, v, some);
    hn_read_f64(w, y, to, i, some);
    for (int64_t k = 0; k < some; k++) other |= (int)(v[k] != w[k]) | (int)(wide && fabs(v[k]) > 0x1p52);
    if (other) return NULL;
  }
  return y;
}

static hone_status reference(hone_call *call, hone_error *error) {
  const hone_tensor *a = call->input[0], *b = call->input[1];
  if (a->desc.dtype == b->desc.dtype) return hn_binary_run(call, &loops, error);
  const hone_dtype computed =
      a->desc.dtype == HONE_DTYPE_F16 || a->desc.dtype == HONE_DTYPE_BF16 ? HONE_DTYPE_F32 : a->desc.dtype;
  const void *exponents = loops.of[computed] && hn_count(b) ? in_bases_type(call, error) : NULL;
  if (!exponents) return mixed(call, error);
  const hone_tensor_desc d = hone_desc(a->desc.dtype, b->desc.rank, b->desc.dim);
  return hn_binary_apply(call, loops.of[computed], &a->desc, a->data, &d, exponents, call->output[0], error);
}

static const hone_attr_desc attrs[] = {HN_LEGACY_BROADCAST, {0}};

HN_OP(pow) = {HN_OP_HEAD,
              .op_type = "Pow",
              .since = 1,
              HN_BINARY_ARITY,
              .types = HN_TYPES_FLOAT | HONE_TYPES(HONE_DTYPE_I32) | HONE_TYPES(HONE_DTYPE_I64),
              .attrs = attrs,
              .infer = infer,
              .reference = reference,
              .function = HN_FUNCTION(HONE_PW_POW, 2)};
