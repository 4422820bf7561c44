/* Conversion of whole tensors between dtypes. */
#include "model/ops/math/cast_core.h"

#include "base/half_of_integer.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define BLOCK 512

/* By way of which type a conversion goes, so that nothing is rounded twice. */
typedef enum way { BY_COPY, BY_F32, BY_F64, BY_I64, BY_U64, TO_U64, TO_NARROW } way;

static bool is_real(hone_dtype d) { return hone_dtype_is_float(d) || hn_narrow_is_float(d); }

static way way_of(hone_dtype from, hone_dtype to) {
  if (from == to) return BY_COPY;
  bool float_from = is_real(from), float_to = is_real(to);
  if (hn_narrow_is_float(to)) return TO_NARROW;
  if (hn_narrow_bits(to)) return BY_I64;
  /* No float is a way from wide integers to bf16, which has room for their size, but not for their digits. */
  if (!float_from && to == HONE_DTYPE_BF16) return from == HONE_DTYPE_U64 ? BY_U64 : BY_I64;
  if (float_to) return from == HONE_DTYPE_F64 || to == HONE_DTYPE_F64 ? BY_F64 : BY_F32;
  if (!float_from) return BY_I64;
  switch (to) {
  case HONE_DTYPE_I8:
  case HONE_DTYPE_U8:
  case HONE_DTYPE_I16:
  case HONE_DTYPE_U16:
  case HONE_DTYPE_U32: return BY_I64;
  case HONE_DTYPE_U64: return TO_U64;
  default: return BY_F64;
  }
}

static const char *const powers[] = {
    [HN_NARROW_UP] = "up", [HN_NARROW_DOWN] = "down", [HN_NARROW_NEAREST] = "nearest"};

/* The number of the node's round_mode; -1: not one that is defined. */
static int power_of(const hone_node *node) {
  const char *name = hone_node_string(node, "round_mode", powers[HN_NARROW_UP]);
  for (int i = 0; i < (int)(sizeof powers / sizeof *powers); i++)
    if (!strcmp(powers[i], name)) return i;
  return -1;
}

hone_status hn_cast_check(const hone_node *node, hone_error *error) {
  return power_of(node) >= 0
             ? HONE_OK
             : hn_op_bad(node, error, "round_mode is \"%s\"", hone_node_string(node, "round_mode", ""));
}

/* To a narrow float; F8E8M0 is defined by way of f32. */
static void narrow(const hone_node *node, const double *v, hone_dtype to, uint8_t *out, int64_t n) {
  const hn_narrow_rule rule = {.overflow = !hone_node_int(node, "saturate", 1), .powers = power_of(node)};
  for (int64_t i = 0; i < n; i++)
    out[i] = hn_narrow_from_f64(to, to == HONE_DTYPE_F8E8M0 ? (double)(float)v[i] : v[i], rule);
}

static hone_status numbers(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error) {
  int64_t n = hn_count(x);
  way by = way_of(x->desc.dtype, y->desc.dtype);
  if (by == BY_COPY) {
    hn_copy_elements(y->data, x->data, n, x->desc.dtype);
    return HONE_OK;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    union {
      float f[BLOCK];
      double d[BLOCK];
      int64_t i[BLOCK];
    } b;
    int64_t m = n - i < BLOCK ? n - i : BLOCK;
    if (i % HN_STOP_EVERY == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
    if (by == BY_F32) {
      hn_read_f32(b.f, x->data, x->desc.dtype, i, m);
      hn_write_f32(y->data, y->desc.dtype, i, b.f, m);
    } else if (by == TO_NARROW) {
      hn_read_f64(b.d, x->data, x->desc.dtype, i, m);
      narrow(call->node, b.d, y->desc.dtype, (uint8_t *)y->data + i, m);
    } else if (by == TO_U64) {
      hn_read_f64(b.d, x->data, x->desc.dtype, i, m);
      for (int64_t k = 0; k < m; k++)
        ((uint64_t *)y->data)[i + k] = b.d[k] < 0 ? (uint64_t)hn_trunc_i64(b.d[k]) : hn_trunc_u64(b.d[k]);
    } else if (by == BY_U64) {
      for (int64_t k = i; k < i + m; k++)
        ((uint16_t *)y->data)[k] = hn_u64_to_bf16(((const uint64_t *)x->data)[k]);
    } else if (by == BY_F64) {
      hn_read_f64(b.d, x->data, x->desc.dtype, i, m);
      hn_write_f64(y->data, y->desc.dtype, i, b.d, m);
    } else {
      hn_read_i64(b.i, x->data, x->desc.dtype, i, m);
      hn_write_i64(y->data, y->desc.dtype, i, b.i, m);
    }
  }
  return HONE_OK;
}

static bool reads_back(char *out, size_t size, double v, bool single, int digits) {
  snprintf(out, size, "%.*e", digits - 1, v);
  return single ? strtof(out, NULL) == (float)v : strtod(out, NULL) == v;
}

/* v to `digits` digits, of which `whole` stand before the point. False: f64 is too coarse to say. */
static bool scaled(double v, int digits, int whole, const double *ten, int64_t *out) {
  const double s = digits >= whole ? v * ten[digits - whole] : v / ten[whole - digits], part = s - floor(s);
  *out = (int64_t)floor(s + 0.5);
  return fabs(part - 0.5) > 1e-6 && (double)*out < ten[digits];
}

/* What print_float says of a float without an exponent, as f64 can tell for almost all of them: products of
 * 30 bits and a power of ten that is exact have 23 bits behind the point. False: not said. */
static bool print_single(char *out, float v) {
  static const double ten[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};
  enum { FEW = 6, MOST = 9, DOUBT = 8 };
  const double a = fabs((double)v);
  int whole = -3, digits = FEW;
  if (!(a >= 1e-4 && a < 1e8)) return false;
  while (whole < 0 ? a * ten[-whole] >= 1 : a >= ten[whole]) whole++;
  int64_t n = 0;
  for (; digits <= MOST; digits++) {
    uint64_t bits;
    if (!scaled(a, digits, whole, ten, &n)) return false;
    const double back = digits >= whole ? (double)n / ten[digits - whole] : (double)n * ten[whole - digits];
    memcpy(&bits, &back, sizeof bits);
    const int64_t beyond = (int64_t)(bits & ((UINT64_C(1) << 29) - 1)) - (INT64_C(1) << 28);
    if (beyond >= -DOUBT && beyond <= DOUBT) return false; /* between two floats */
    if ((float)back == (float)a) break;
  }
  if (digits > MOST) return false;
  if (whole > digits && !scaled(a, digits = whole, whole, ten, &n)) return false;
  char text[24];
  snprintf(text, sizeof text, "%0*lld", digits, (long long)n);
  while (digits > 1 && digits > whole && text[digits - 1] == '0') digits--;
  if (v < 0) *out++ = '-';
  if (whole <= 0) {
    memcpy(out, "0.000", 5);
    memcpy(out += 2 - whole, text, (size_t)digits);
    out[digits] = '\0';
    return true;
  }
  memcpy(out, text, (size_t)whole);
  if (digits > whole) {
    out[whole] = '.';
    memcpy(out + whole + 1, text + whole, (size_t)(digits - whole));
  }
  out[digits > whole ? digits + 1 : whole] = '\0';
  return true;
}

/* The shortest decimal that reads back as the same number; with an exponent from 10^8 (f64: 10^17) on, and
 * below 10^-4. */
static void print_float(char *out, size_t size, double v, bool single) {
  if (v != v) {
    snprintf(out, size, "NaN");
    return;
  }
  if (isinf(v)) {
    snprintf(out, size, v > 0 ? "INF" : "-INF");
    return;
  }
  if (single && print_single(out, (float)v)) return;
  /* Numbers of 6 digits (f64: 15) lie further apart than floats: most floats need more, and are not asked for
   * fewer one after the other. */
  int digits = single ? 6 : 15;
  if (reads_back(out, size, v, single, digits))
    digits = 1;
  else
    digits++;
  while (digits < 17 && !reads_back(out, size, v, single, digits)) digits++;
  int whole = v == 0 ? 1 : (int)floor(log10(fabs(v))) + 1; /* digits before the point */
  if (whole > digits && whole <= (single ? 8 : 17)) digits = whole;
  snprintf(out, size, "%.*g", digits, v);
}

static hone_status to_string(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error) {
  hone_dtype t = x->desc.dtype;
  for (int64_t i = 0, n = hn_count(x); i < n; i++) {
    char text[40];
    if (is_real(t))
      print_float(text, sizeof text, hn_get_f64(x, i), t != HONE_DTYPE_F64);
    else if (t == HONE_DTYPE_U64)
      snprintf(text, sizeof text, "%llu", (unsigned long long)hn_get_i64(x, i));
    else if (t == HONE_DTYPE_BOOL)
      snprintf(text, sizeof text, "%s", hn_get_i64(x, i) ? "1" : "0");
    else
      snprintf(text, sizeof text, "%lld", (long long)hn_get_i64(x, i));
    size_t len = strlen(text);
    char *kept = call->scratch_keep(call, len + 1);
    if (!kept) return hn_fail_memory(error, len + 1, "a string");
    memcpy(kept, text, len + 1);
    ((hone_string *)y->data)[i] = (hone_string){kept, len};
    if (i % 4096 == 0) {
      hone_status status = hn_call_check(call, error);
      if (status) return status;
    }
  }
  return HONE_OK;
}

/* Integers keep all their bits; everything else is read as f64. */
static hone_status from_string(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error) {
  hone_dtype t = y->desc.dtype;
  for (int64_t i = 0, n = hn_count(x); i < n; i++) {
    const hone_string *s = &((const hone_string *)x->data)[i];
    char text[128], *end;
    if (s->len == 0 || s->len >= sizeof text)
      return hn_op_bad(call->node, error, "element %lld is no number", (long long)i);
    memcpy(text, s->ptr, s->len);
    text[s->len] = '\0';
    if (!hone_dtype_is_float(t) && t != HONE_DTYPE_BOOL) {
      errno = 0;
      int64_t v = t == HONE_DTYPE_U64 ? (int64_t)strtoull(text, &end, 10) : strtoll(text, &end, 10);
      if (end == text + s->len && errno == 0) {
        hn_set_i64(y, i, v);
        continue;
      }
    }
    double v = t == HONE_DTYPE_F32 ? strtof(text, &end) : strtod(text, &end);
    if (t == HONE_DTYPE_BOOL && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) {
      v = strcasecmp(text, "true") == 0;
      end = text + s->len;
    }
    if (end != text + s->len || end == text)
      return hn_op_bad(call->node, error, "element %lld, '%.40s', is no number", (long long)i, text);
    hn_set_f64(y, i, v);
  }
  return HONE_OK;
}

hone_status hn_cast_run(hone_call *call, const hone_tensor *x, hone_tensor *y, hone_error *error) {
  bool string_from = x->desc.dtype == HONE_DTYPE_STRING, string_to = y->desc.dtype == HONE_DTYPE_STRING;
  if (string_from == string_to) return numbers(call, x, y, error);
  locale_t c = newlocale(LC_ALL_MASK, "C", NULL); /* decimal points, whatever the application has set */
  if (!c) return hn_fail_memory(error, 1, "the C locale");
  locale_t before = uselocale(c);
  hone_status status = string_to ? to_string(call, x, y, error) : from_string(call, x, y, error);
  uselocale(before);
  freelocale(c);
  return status;
}
