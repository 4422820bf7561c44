/* What kernels of custom operators are written with: vectors of f32 whose width follows the instruction set
 * that the file is compiled for, so that one source serves every processor, and references in f64. Header
 * only; C11, gcc and clang. Arithmetic on hone_vf is that of C: a + b, a * b, a < b (a mask of 0 and -1 in a
 * hone_vi).
 *
 *   for (int64_t i = 0; i < n; i += HONE_LANES) {
 *     const int k = hone_lanes(n - i);                    // all lanes, or what is left
 *     hone_vf v = hone_load(x + i, k);                    // other lanes are 0
 *     hone_store(y + i, v / (1.0f + hone_exp(-v)), k);    // touches exactly k numbers
 *   }
 */
#ifndef HONE_KERNEL_H
#define HONE_KERNEL_H

#include <hone/plugin.h>
#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#define HONE_LANES 16
#elif defined(__AVX2__)
#define HONE_LANES 8
#else
#define HONE_LANES 4
#endif

/* HONE_KERNEL(swish) is swish_scalar, swish_avx2 or swish_avx512: the same source is compiled once for each,
 * with HONE_TIER (and, where there are tiles to choose from, HONE_TILE) defined by `hone op build`. */
#define HONE_PASTED(a, b) a##_##b
#define HONE_PASTE(a, b) HONE_PASTED(a, b)
#ifndef HONE_TIER
#define HONE_TIER scalar
#endif
#ifdef HONE_TILE
#define HONE_KERNEL(name) HONE_PASTE(HONE_PASTE(name, HONE_TIER), HONE_TILE)
#else
#define HONE_KERNEL(name) HONE_PASTE(name, HONE_TIER)
#endif

#ifdef __cplusplus
#define HONE_KERNEL_FN static inline
#else
#define HONE_KERNEL_FN static inline __attribute__((unused))
#endif

typedef float hone_vf __attribute__((vector_size(4 * HONE_LANES)));
typedef int32_t hone_vi __attribute__((vector_size(4 * HONE_LANES)));

/* ---------------------------------------------------------------- vectors */

HONE_KERNEL_FN int hone_lanes(int64_t left) { return left < HONE_LANES ? (int)left : HONE_LANES; }

HONE_KERNEL_FN hone_vf hone_all(float x) {
  hone_vf zero = {0};
  return zero + x;
}

/* The first k numbers of p; it need not be aligned. */
HONE_KERNEL_FN hone_vf hone_load(const float *p, int k) {
  hone_vf v = {0};
  if (k == HONE_LANES)
    memcpy(&v, p, sizeof v);
  else
    memcpy(&v, p, sizeof *p * (size_t)k);
  return v;
}

HONE_KERNEL_FN void hone_store(float *p, hone_vf v, int k) {
  if (k == HONE_LANES)
    memcpy(p, &v, sizeof v);
  else
    memcpy(p, &v, sizeof *p * (size_t)k);
}

/* Asks for what the loop reads 4 KiB further on. Where a lane takes many operations, a processor does not
 * look that far ahead by itself, and waits for memory. Nothing happens where there is nothing. */
HONE_KERNEL_FN void hone_ahead(const float *p) { __builtin_prefetch((const char *)p + 4096); }
/* The same for what it writes 2 KiB further on: a store waits for the line that it changes. */
HONE_KERNEL_FN void hone_ahead_written(float *p) { __builtin_prefetch((const char *)p + 2048, 1); }

HONE_KERNEL_FN hone_vf hone_select(hone_vi mask, hone_vf yes, hone_vf no) {
  hone_vi a, b;
  hone_vf r;
  memcpy(&a, &yes, sizeof a);
  memcpy(&b, &no, sizeof b);
  a = (mask & a) | (~mask & b);
  memcpy(&r, &a, sizeof r);
  return r;
}

/* Where a is NaN, so is the result: hone_max(x, hone_all(0)) is ONNX's Relu. */
HONE_KERNEL_FN hone_vf hone_max(hone_vf a, hone_vf b) { return hone_select(b > a, b, a); }
HONE_KERNEL_FN hone_vf hone_min(hone_vf a, hone_vf b) { return hone_select(b < a, b, a); }

HONE_KERNEL_FN hone_vf hone_abs(hone_vf a) { return hone_select(a < 0.0f, -a, a + 0.0f); }

/* Of all lanes: their sum, and the largest (NaN where one is NaN). */
typedef float hone_v4f __attribute__((vector_size(16)));
typedef int32_t hone_v4i __attribute__((vector_size(16)));

HONE_KERNEL_FN float hone_sum(hone_vf a) {
  hone_v4f sum, v;
  memcpy(&sum, &a, sizeof sum);
  for (int i = 4; i < HONE_LANES; i += 4) {
    memcpy(&v, (const char *)&a + 4 * i, sizeof v);
    sum += v;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

HONE_KERNEL_FN float hone_most(hone_vf a) {
  hone_v4f most, v;
  memcpy(&most, &a, sizeof most);
  for (int i = 4; i < HONE_LANES; i += 4) {
    memcpy(&v, (const char *)&a + 4 * i, sizeof v);
    const hone_v4i mask = (v > most) | (v != v);
    most = (hone_v4f)((mask & (hone_v4i)v) | (~mask & (hone_v4i)most));
  }
  float r = most[0];
  for (int i = 1; i < 4; i++) r = most[i] > r || most[i] != most[i] ? most[i] : r;
  return r;
}

HONE_KERNEL_FN hone_vf hone_sqrt(hone_vf a) {
  for (int i = 0; i < HONE_LANES; i++) a[i] = sqrtf(a[i]);
  return a;
}

/* e^x, within 2 units in the last place; 0 below -104, infinity above 88.73. x = n ln 2 + r with |r| <= ln 2
 * / 2; e^r by its series to r^7. */
HONE_KERNEL_FN hone_vf hone_exp(hone_vf x) {
  const float magic = 12582912.0f; /* 1.5 2^23: adding it rounds to whole numbers */
  /* Lanes whose result is 0 or NaN compute e^0: numbers that vanish on their way take long. */
  const hone_vi in_range = x >= -104.0f;
  const hone_vf c = hone_select(in_range, hone_min(x, hone_all(89.0f)), hone_all(0.0f));
  const hone_vf shifted = c * 1.44269504f + magic;
  const hone_vf n = shifted - magic;
  hone_vf r = c - n * 0.693145752f;
  r = r - n * 1.42860677e-6f;
  hone_vf p = r * 1.98412698e-4f + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  /* 2^n in two factors, so that neither leaves the range */
  const hone_vi whole = __builtin_convertvector(n, hone_vi), half = whole >> 1,
                bits[2] = {(half + 127) << 23, (whole - half + 127) << 23};
  hone_vf f[2];
  memcpy(f, bits, sizeof f);
  const hone_vf result = p * f[0] * f[1];
  return hone_select(in_range, result, hone_select(x == x, hone_all(0.0f), x));
}

HONE_KERNEL_FN hone_vf hone_sigmoid(hone_vf x) { return 1.0f / (1.0f + hone_exp(-x)); }

/* Within 2 units in the last place. Small x by an odd minimax polynomial (the coefficients of Cephes' tanhf),
 * others from e^-2|x|. */
HONE_KERNEL_FN hone_vf hone_tanh(hone_vf x) {
  const hone_vf a = hone_abs(x), e = hone_exp(-2.0f * a), large = (1.0f - e) / (1.0f + e), s = x * x;
  hone_vf p = s * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * s + -5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s + -3.33332819422e-1f;
  const hone_vf small = x + x * s * p;
  const hone_vf signed_large = hone_select(x < 0.0f, -large, large);
  return hone_select(a < 0.625f, small, hone_select(x == x, signed_large, x));
}

/* ---------------------------------------------------------------- numbers of every type */

HONE_KERNEL_FN float hone_from_f16(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u;
  uint32_t bits;
  float f;
  if (!e) { /* zero, or a denormal: m 2^-24 */
    f = (float)m * 5.9604644775390625e-8f;
    return sign ? -f : f;
  }
  bits = e == 31 ? sign | 0x7f800000u | m << 13 : sign | (e + 112) << 23 | m << 13;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* To the nearest, ties to even; beyond the range: infinity. From f64 at once, so that nothing is rounded
 * twice. */
HONE_KERNEL_FN uint16_t hone_to_f16(double x) {
  const uint16_t sign = signbit(x) ? 0x8000u : 0;
  const double a = fabs(x);
  int e;
  if (isnan(x)) return 0x7e00u;
  if (a >= 65520.0) return (uint16_t)(sign | 0x7c00u);
  (void)frexp(a, &e); /* a = f 2^e, f in [0.5, 1) */
  if (a < 6.103515625e-05) return (uint16_t)(sign | (uint16_t)nearbyint(a * 16777216.0));
  const uint32_t m = (uint32_t)nearbyint(ldexp(a, 11 - e)); /* 1024 ... 2048 */
  return (uint16_t)(sign | (uint16_t)(((uint32_t)(e + 14) << 10) + m - 1024));
}

HONE_KERNEL_FN float hone_from_bf16(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

HONE_KERNEL_FN uint16_t hone_to_bf16(double x) {
  float f = (float)x;
  uint32_t bits;
  if (isnan(x)) return 0x7fc0u;
  /* (float) may have rounded up to a tie, or away from one: step back to the f64's side. */
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0xffffu) == 0x8000u && (double)f != x) bits += (fabs((double)f) < fabs(x)) ? 1u : 0xffffffffu;
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return (uint16_t)((isinf(f) ? bits : rounded) >> 16);
}

/* Element i of a dense tensor as f64 (64-bit integers beyond 2^53 are rounded). */
HONE_KERNEL_FN double hone_element(const void *data, hone_dtype dtype, int64_t i) {
  switch (dtype) {
  case HONE_DTYPE_F32: return (double)((const float *)data)[i];
  case HONE_DTYPE_F64: return ((const double *)data)[i];
  case HONE_DTYPE_F16: return (double)hone_from_f16(((const uint16_t *)data)[i]);
  case HONE_DTYPE_BF16: return (double)hone_from_bf16(((const uint16_t *)data)[i]);
  case HONE_DTYPE_I8: return (double)((const int8_t *)data)[i];
  case HONE_DTYPE_U8:
  case HONE_DTYPE_BOOL: return (double)((const uint8_t *)data)[i];
  case HONE_DTYPE_I16: return (double)((const int16_t *)data)[i];
  case HONE_DTYPE_U16: return (double)((const uint16_t *)data)[i];
  case HONE_DTYPE_I32: return (double)((const int32_t *)data)[i];
  case HONE_DTYPE_U32: return (double)((const uint32_t *)data)[i];
  case HONE_DTYPE_I64: return (double)((const int64_t *)data)[i];
  case HONE_DTYPE_U64: return (double)((const uint64_t *)data)[i];
  default: return 0;
  }
}

/* The inverse: rounded to the nearest where the type has no such number, integers kept within their range. */
HONE_KERNEL_FN void hone_set_element(void *data, hone_dtype dtype, int64_t i, double x) {
  const double whole = isnan(x) ? 0 : nearbyint(x);
#define HONE_CLAMPED(type, low, high) ((type)(whole < (low) ? (low) : whole > (high) ? (high) : whole))
  switch (dtype) {
  case HONE_DTYPE_F32: ((float *)data)[i] = (float)x; break;
  case HONE_DTYPE_F64: ((double *)data)[i] = x; break;
  case HONE_DTYPE_F16: ((uint16_t *)data)[i] = hone_to_f16(x); break;
  case HONE_DTYPE_BF16: ((uint16_t *)data)[i] = hone_to_bf16(x); break;
  case HONE_DTYPE_I8: ((int8_t *)data)[i] = HONE_CLAMPED(int8_t, -128.0, 127.0); break;
  case HONE_DTYPE_U8: ((uint8_t *)data)[i] = HONE_CLAMPED(uint8_t, 0.0, 255.0); break;
  case HONE_DTYPE_BOOL: ((uint8_t *)data)[i] = x != 0; break;
  case HONE_DTYPE_I16: ((int16_t *)data)[i] = HONE_CLAMPED(int16_t, -32768.0, 32767.0); break;
  case HONE_DTYPE_U16: ((uint16_t *)data)[i] = HONE_CLAMPED(uint16_t, 0.0, 65535.0); break;
  case HONE_DTYPE_I32: ((int32_t *)data)[i] = HONE_CLAMPED(int32_t, -2147483648.0, 2147483647.0); break;
  case HONE_DTYPE_U32: ((uint32_t *)data)[i] = HONE_CLAMPED(uint32_t, 0.0, 4294967295.0); break;
  case HONE_DTYPE_I64: /* the largest f64 below 2^63 */
    ((int64_t *)data)[i] = HONE_CLAMPED(int64_t, -9223372036854775808.0, 9223372036854774784.0);
    break;
  case HONE_DTYPE_U64: ((uint64_t *)data)[i] = HONE_CLAMPED(uint64_t, 0.0, 18446744073709549568.0); break;
  default: break;
  }
#undef HONE_CLAMPED
}

/* ---------------------------------------------------------------- references */

/* A tensor in f64, row-major. */
typedef struct hone_array {
  int32_t rank;
  const int64_t *dim; /* [rank] */
  int64_t count;
  double *data;     /* [count] */
  hone_dtype dtype; /* that its elements have in the model */
} hone_array;

/* Is a number between the steps of kernels beyond their range, so that it rounds to infinity? Those for f64
 * have its range, all others that of f32. Asked of the sizes of a sum's terms: may it leave the range on its
 * way, in some order? A reference whose result hangs on that says NaN, and hone op test leaves it unjudged.
 */
HONE_KERNEL_FN bool hone_beyond(const hone_array *array, double x) {
  return array->dtype != HONE_DTYPE_F64 && isfinite(x) && fabs(x) >= 3.4028235677973366e38;
}

/* Brings a reference's inputs into f64: array[i] of input i, with data NULL where it is left out. Scratch
 * memory of the call. */
HONE_KERNEL_FN hone_status hone_widen(hone_call *call, hone_array *array, uint32_t n, hone_error *error) {
  for (uint32_t i = 0; i < n; i++) {
    const hone_tensor *t = i < call->n_inputs ? call->input[i] : NULL;
    memset(&array[i], 0, sizeof array[i]);
    if (!t) continue;
    array[i].dtype = t->desc.dtype;
    array[i].rank = t->desc.rank;
    array[i].dim = t->desc.dim;
    array[i].count = hone_desc_count(&t->desc);
    array[i].data = (double *)call->scratch(call, (size_t)array[i].count * sizeof(double) + 1);
    if (!array[i].data) {
      if (error) error->status = HONE_ERROR_MEMORY;
      return HONE_ERROR_MEMORY;
    }
    for (int64_t k = 0; k < array[i].count; k++) array[i].data[k] = hone_element(t->data, t->desc.dtype, k);
  }
  return HONE_OK;
}

/* Room for the outputs; those that are not wanted have data, too. Their shapes are what infer said. */
HONE_KERNEL_FN hone_status hone_room(hone_call *call, hone_array *array, uint32_t n, hone_error *error) {
  for (uint32_t i = 0; i < n; i++) {
    const hone_tensor *t = i < call->n_outputs ? call->output[i] : NULL;
    memset(&array[i], 0, sizeof array[i]);
    if (!t) continue;
    array[i].dtype = t->desc.dtype;
    array[i].rank = t->desc.rank;
    array[i].dim = t->desc.dim;
    array[i].count = hone_desc_count(&t->desc);
    array[i].data = (double *)call->scratch(call, (size_t)array[i].count * sizeof(double) + 1);
    if (!array[i].data) {
      if (error) error->status = HONE_ERROR_MEMORY;
      return HONE_ERROR_MEMORY;
    }
  }
  return HONE_OK;
}

/* Rounds the results to the outputs' types. */
HONE_KERNEL_FN void hone_narrow(hone_call *call, const hone_array *array, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    hone_tensor *t = i < call->n_outputs ? call->output[i] : NULL;
    for (int64_t k = 0; t && k < array[i].count; k++)
      hone_set_element(t->data, t->desc.dtype, k, array[i].data[k]);
  }
}

/* ---------------------------------------------------------------- codes */

/* What 8-bit codes mean: scale (code - zero). */
typedef struct hone_affine {
  float scale;
  int32_t zero;
} hone_affine;

/* That of a step's tensor, whose scale and zero point are these inputs (scale < 0: it has none). As the model
 * says it, or as the run has it; on an accelerator only the former. */
HONE_KERNEL_FN hone_affine hone_affine_of(const hone_step_run *r, const hone_tensor_desc *d, int scale,
                                          int zero) {
  const hone_step *s = r->step;
  hone_affine a = {1, 0};
  if (d->quant.count == 1) {
    a.scale = d->quant.scale[0];
    a.zero = d->quant.zero_point ? d->quant.zero_point[0] : 0;
  } else if (scale >= 0 && (uint32_t)scale < s->n_inputs && r->in[scale]) {
    a.scale = (float)hone_element(r->in[scale], s->input[scale].desc.dtype, 0);
    if (zero >= 0 && (uint32_t)zero < s->n_inputs && r->in[zero])
      a.zero = (int32_t)hone_element(r->in[zero], s->input[zero].desc.dtype, 0);
  }
  return a;
}

/* n elements from `from` on as floats: f32 as they lie, codes in `room`. */
HONE_KERNEL_FN const float *hone_as_floats(const void *data, hone_dtype d, int64_t from, int64_t n,
                                           hone_affine a, float *room) {
  if (d == HONE_DTYPE_F32) return (const float *)data + from;
  if (d == HONE_DTYPE_I8)
    for (int64_t i = 0; i < n; i++) room[i] = a.scale * (float)(((const int8_t *)data)[from + i] - a.zero);
  else
    for (int64_t i = 0; i < n; i++) room[i] = a.scale * (float)(((const uint8_t *)data)[from + i] - a.zero);
  return room;
}

/* Floats as codes: rounded to the nearest (halves to even), kept within the type; NaN is code 0. */
HONE_KERNEL_FN void hone_as_codes(const float *x, int64_t n, hone_affine a, hone_dtype d, void *data,
                                  int64_t from) {
  const int32_t low = d == HONE_DTYPE_I8 ? -128 : 0, high = d == HONE_DTYPE_I8 ? 127 : 255;
  for (int64_t i = 0; i < n; i++) {
    float v = x[i] / a.scale;
    v = v > 65536 ? 65536 : v < -65536 ? -65536 : v;
    const float whole = (v + 12582912.0f) - 12582912.0f; /* 1.5 * 2^23: nothing is left behind the point */
    const int32_t code = v != v ? 0 : (int32_t)whole + a.zero, kept = code < low    ? low
                                                                      : code > high ? high
                                                                                    : code;
    ((uint8_t *)data)[from + i] = (uint8_t)kept;
  }
}

/* The same in references. Codes of input i become what they mean; other types stay as they are. */
HONE_KERNEL_FN void hone_decode(const hone_call *call, hone_array *array, uint32_t i, int scale, int zero) {
  const hone_array *s = scale >= 0 ? &array[scale] : NULL, *z = zero >= 0 ? &array[zero] : NULL;
  const double by = s && s->data ? s->data[0] : 1, from = z && z->data ? z->data[0] : 0;
  if (!array[i].data || hone_dtype_is_float(call->input[i]->desc.dtype)) return;
  for (int64_t k = 0; k < array[i].count; k++) array[i].data[k] = by * (array[i].data[k] - from);
}

/* Results become the codes that mean them; input[] is what hone_widen has made. */
HONE_KERNEL_FN void hone_encode(const hone_call *call, const hone_array *input, hone_array *result,
                                uint32_t i, int scale, int zero) {
  const hone_array *s = scale >= 0 ? &input[scale] : NULL, *z = zero >= 0 ? &input[zero] : NULL;
  const double by = s && s->data ? s->data[0] : 1, from = z && z->data ? z->data[0] : 0;
  if (!result[i].data || hone_dtype_is_float(call->output[i]->desc.dtype)) return;
  for (int64_t k = 0; k < result[i].count; k++) result[i].data[k] = nearbyint(result[i].data[k] / by) + from;
}

/* ---------------------------------------------------------------- costs */

/* Seconds in which this many bytes come and go: a first guess for a tactic that is bound by memory. */
HONE_KERNEL_FN double hone_memory_seconds(const hone_machine *m, double bytes) {
  const double speed = bytes < (double)m->l3 && m->cache_bytes > 0 ? m->cache_bytes : m->dram_bytes;
  return (speed > 0 ? bytes / speed : 0) + (m->launch_s > 0 ? m->launch_s : 5e-7);
}

/* Bytes of everything that a step reads and writes. */
HONE_KERNEL_FN double hone_step_bytes(const hone_step *s) {
  double bytes = 0;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (s->input[i].desc.dtype != HONE_DTYPE_NONE) bytes += (double)hone_desc_bytes(&s->input[i].desc);
  for (uint32_t i = 0; i < s->n_outputs; i++)
    if (s->output[i].desc.dtype != HONE_DTYPE_NONE) bytes += (double)hone_desc_bytes(&s->output[i].desc);
  return bytes;
}

/* Says why a tactic does not take a step, and returns false. */
HONE_KERNEL_FN bool hone_refuse(hone_reason *why, const char *text) {
  if (why) {
    strncpy(why->text, text, sizeof why->text - 1);
    why->text[sizeof why->text - 1] = 0;
  }
  return false;
}

#endif
