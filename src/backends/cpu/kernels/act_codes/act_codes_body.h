/* The body of act_codes_<tier>.c: four vectors, of two rows or four, stay in registers from the sum to the
 * codes. */
#include "backends/cpu/kernels/act_codes/act_codes.h"

#include <string.h>

#include "backends/cpu/kernels/template.h"
#include "backends/cpu/kernels/vec/vec_act.h"
#if VEC_W == 16
#include "backends/cpu/kernels/vec/vec_silu.h"
#endif

enum { WIDE = 2 * VEC_W };

static inline __attribute__((always_inline)) vf act_of(vf x, const hone_pw_op act, vf al, vf be) {
  switch (act) {
  case HONE_PW_RELU: return v_max_number(v_zero(), x);
  case HONE_PW_CLIP: return v_min_number(be, v_max_number(al, x));
  case HONE_PW_LEAKYRELU: return v_leaky(x, al);
  case HONE_PW_HARDSIGMOID: return v_ramp(x, al, be);
  case HONE_PW_HARDSWISH: return v_mul(x, v_ramp(x, al, be));
  case HONE_PW_SIGMOID: return v_sigmoid(x);
  case HONE_PW_TANH: return v_tanh(x);
  case HONE_PW_GELU_ERF: return v_gelu_erf(x);
#if VEC_W == 16
  case HONE_PW_SILU: return v_silu_pieces(x, al, be);
#else
  case HONE_PW_SILU: return v_mul(x, v_sigmoid(v_mul(al, x)));
#endif
  default: return x;
  }
}

/* The parameters of n columns from `column` on, n at most a vector. */
typedef struct part {
  vf factor, bias, over;
  size_t column, n;
} part;

static inline vf some_of(const float *v, size_t n) {
  return n == 0 ? v_zero() : n < VEC_W ? v_loadn(v, n) : v_load(v);
}

static inline part part_of(const hn_act_codes *a, size_t column, size_t n) {
  return (part){.factor = a->factor ? some_of(a->factor + column, n) : v_set1(1.0f),
                .bias = a->bias ? some_of(a->bias + column, n) : v_zero(),
                .over = a->vectors ? some_of(a->over + column, n) : v_set1(*a->over),
                .column = column,
                .n = n};
}

/* x times the rounded 1 / scale instead of x / scale: within 2^-22 |x / scale| of each other, so below 2^-13
 * where neither saturates. Both round to the same integer unless one is so close to the middle between two:
 * such blocks are divided. v: four vectors, which become what is rounded, of parts `even`, `odd`, and so on.
 */
static inline __attribute__((always_inline)) void levels(const hn_act_codes *a, vf *v, const part *even,
                                                         const part *odd) {
  const vf lo = v_set1(a->is_signed ? -128.0f : 0.0f), hi = v_set1(a->is_signed ? 127.0f : 255.0f),
           z = v_set1(a->zero), least = v_sub(lo, z), most = v_sub(hi, z);
  vf t[4], far = v_zero();
  HN_UNROLL for (int i = 0; i < 4; i++) {
    t[i] = v_min_number(most, v_max_number(v_mul(v[i], i % 2 ? odd->over : even->over), least));
    far = v_from_integer(t[i], far);
  }
  if (v_any(v_lt(v_set1(0.5f - 0x1p-13f), far)) && !HN_FAULT("act_codes_ties"))
    for (int i = 0; i < 4; i++) {
      const part *p = i % 2 ? odd : even;
      const vf scale = a->vectors ? some_of(a->scale + p->column, p->n) : v_set1(*a->scale);
      t[i] = v_min_number(most, v_max_number(v_round(v_div(v[i], scale)), least));
    }
  HN_UNROLL for (int i = 0; i < 4; i++) v[i] = t[i];
}

/* The function's immediates as vectors. */
typedef struct immediates {
  vf al, be;
} immediates;

static inline immediates immediates_of(const hn_act_codes *a, const hone_pw_op act) {
#if VEC_W == 16
  /* of the sigmoid's argument: where its pieces end */
  if (act == HONE_PW_SILU) return (immediates){v_set1(a->p[0]), v_set1(VEC_SILU_END / a->p[0])};
#endif
  (void)act;
  return (immediates){v_set1(a->p[0]), v_set1(a->p[1])};
}

/* Columns [j, j + n) of all rows, n more than a vector and at most WIDE. */
static inline __attribute__((always_inline)) void columns(const hn_act_codes *a, uint8_t *y,
                                                          ptrdiff_t y_pitch, const float *x,
                                                          ptrdiff_t x_pitch, size_t rows, size_t j, size_t n,
                                                          const hone_pw_op act) {
  const part even = part_of(a, j, VEC_W), odd = part_of(a, j + VEC_W, n - VEC_W);
  const immediates m = immediates_of(a, act);
  x += j, y += j;
  for (size_t r = 0; r < rows; r += 2) {
    const bool two = r + 1 < rows;
    const float *row = x + (ptrdiff_t)r * x_pitch, *next = two ? row + x_pitch : row;
    uint8_t *to = y + (ptrdiff_t)r * y_pitch, *to2 = two ? to + y_pitch : to, some[2][WIDE];
    vf v[4] = {v_load(row), n == WIDE ? v_load(row + VEC_W) : v_loadn(row + VEC_W, n - VEC_W), v_load(next),
               n == WIDE ? v_load(next + VEC_W) : v_loadn(next + VEC_W, n - VEC_W)};
    HN_UNROLL for (int i = 0; i < 4; i++) v[i] = act_of(
        v_add(v_mul(v[i], i % 2 ? odd.factor : even.factor), i % 2 ? odd.bias : even.bias), act, m.al, m.be);
    levels(a, v, &even, &odd);
    if (n == WIDE) {
      v_store_code_rows(to, to2, v, (int)a->zero, a->is_signed);
      continue;
    }
    v_store_code_rows(some[0], some[1], v, (int)a->zero, a->is_signed);
    memcpy(to2, some[two], HN_FAULT("act_codes_tail") ? n - 1 : n);
    memcpy(to, some[0], HN_FAULT("act_codes_tail") ? n - 1 : n);
  }
}

/* The same of n columns, n at most a vector: four rows at a time. */
static inline __attribute__((always_inline)) void narrow(const hn_act_codes *a, uint8_t *y, ptrdiff_t y_pitch,
                                                         const float *x, ptrdiff_t x_pitch, size_t rows,
                                                         size_t j, size_t n, const hone_pw_op act) {
  const part p = part_of(a, j, n);
  const immediates m = immediates_of(a, act);
  x += j, y += j;
  for (size_t r = 0; r < rows; r += 4, x += 4 * x_pitch, y += 4 * y_pitch) {
    const size_t left = rows - r;
    uint8_t some[4][VEC_W];
    vf v[4];
    HN_UNROLL for (size_t i = 0; i < 4; i++) {
      v[i] = i < left ? some_of(x + (ptrdiff_t)i * x_pitch, n) : v_zero();
      v[i] = act_of(v_add(v_mul(v[i], p.factor), p.bias), act, m.al, m.be);
    }
    levels(a, v, &p, &p);
    v_store_codes(some, v, (int)a->zero, a->is_signed);
    for (size_t i = 0; i < 4 && i < left; i++)
      if (n == VEC_W)
        memcpy(y + (ptrdiff_t)i * y_pitch, some[i], VEC_W);
      else
        memcpy(y + (ptrdiff_t)i * y_pitch, some[i], HN_FAULT("act_codes_tail") ? n - 1 : n);
  }
}

static inline __attribute__((always_inline)) void all(const hn_act_codes *a, uint8_t *y, ptrdiff_t y_pitch,
                                                      const float *x, ptrdiff_t x_pitch, size_t rows,
                                                      size_t n, const hone_pw_op act) {
  size_t j = 0;
  for (; j + WIDE <= n; j += WIDE) columns(a, y, y_pitch, x, x_pitch, rows, j, WIDE, act);
  if (j + VEC_W < n)
    columns(a, y, y_pitch, x, x_pitch, rows, j, n - j, act);
  else if (j < n)
    narrow(a, y, y_pitch, x, x_pitch, rows, j, n - j, act);
}

static void rows_f32(const hn_act_codes *a, uint8_t *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch,
                     size_t rows, size_t n) {
#define ACT(OP)                                                                                              \
  case OP: all(a, y, y_pitch, x, x_pitch, rows, n, OP); break
  switch (HN_FAULT("act_codes_no_act") ? HONE_PW_NONE : a->act) {
    ACT(HONE_PW_RELU);
    ACT(HONE_PW_CLIP);
    ACT(HONE_PW_LEAKYRELU);
    ACT(HONE_PW_HARDSIGMOID);
    ACT(HONE_PW_HARDSWISH);
    ACT(HONE_PW_SIGMOID);
    ACT(HONE_PW_TANH);
    ACT(HONE_PW_GELU_ERF);
    ACT(HONE_PW_SILU);
  default: all(a, y, y_pitch, x, x_pitch, rows, n, HONE_PW_NONE);
  }
#undef ACT
}

static const struct hn_act_codes_ops table = {.rows = rows_f32};
