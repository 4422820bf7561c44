#include "insight/import/read/text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* mantissa * 10^exponent. Exact for up to 15 digits and small exponents, else within a few units of the last
 * place. */
static double scaled(uint64_t mantissa, int exponent) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (!mantissa) return 0;
  if (mantissa < (uint64_t)1 << 53 && exponent >= 0 && exponent <= 22)
    return (double)mantissa * powers[exponent];
  if (mantissa < (uint64_t)1 << 53 && exponent < 0 && exponent >= -22)
    return (double)mantissa / powers[-exponent];
  return (double)((long double)mantissa * powl(10.0L, exponent));
}

bool hn_text_number(const char *p, double *value, const char **end) {
  while (is_blank(*p)) p++;
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  static const struct {
    const char *word;
    double value;
  } words[] = {
      {"infinity", INFINITY}, {"inf", INFINITY}, {"nan(ind)", NAN}, {"nan(snan)", NAN}, {"nan", NAN}};
  for (size_t i = 0; is_letter(*p) && i < sizeof words / sizeof *words; i++) {
    size_t n = strlen(words[i].word);
    if (strncasecmp(p, words[i].word, n) != 0 || is_letter(p[n])) continue;
    *value = negative ? -words[i].value : words[i].value;
    *end = p + n;
    return true;
  }
  uint64_t mantissa = 0;
  int exponent = 0;
  bool any = false, fraction = false;
  for (;; p++) {
    if (*p == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!is_digit(*p)) break;
    any = true;
    if (mantissa < UINT64_MAX / 10 - 1) {
      mantissa = mantissa * 10 + (uint64_t)(*p - '0');
      exponent -= fraction;
    } else if (exponent < 100000)
      exponent += !fraction;
  }
  if (!any) return false;
  if ((*p == 'e' || *p == 'E') && (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && is_digit(p[2])))) {
    bool down = p[1] == '-';
    int e = 0;
    for (p += is_digit(p[1]) ? 1 : 2; is_digit(*p); p++)
      if (e < 100000) e = e * 10 + (*p - '0');
    exponent += down ? -e : e;
  }
  double v = scaled(mantissa, exponent);
  *value = negative ? -v : v;
  *end = p;
  return true;
}

bool hn_text_count(const char *text, double *value) {
  char plain[64];
  size_t n = 0;
  while (is_blank(*text)) text++;
  for (; *text && n + 1 < sizeof plain; text++) {
    bool separator = *text == ',' && n && is_digit(plain[n - 1]) && is_digit(text[1]) && is_digit(text[2]) &&
                     is_digit(text[3]) && !is_digit(text[4]);
    if (!separator) plain[n++] = *text;
  }
  plain[n] = 0;
  const char *end;
  if (*text || !hn_text_number(plain, value, &end)) return false;
  while (is_blank(*end)) end++;
  while (is_letter(*end) || *end == '%' || *end == '/') end++;
  while (is_blank(*end)) end++;
  return !*end;
}

bool hn_text_ns(const char *p, int digits, int64_t *ns) {
  while (is_blank(*p)) p++;
  const char *start = p;
  bool negative = *p == '-';
  if (*p == '-' || *p == '+') p++;
  const int64_t most = INT64_C(2300000000) * 1000000000; /* 2042; twice of it still fits into facts */
  int64_t value = 0;
  int places = 0; /* decimals taken */
  bool any = false, fraction = false, up = false;
  for (;; p++) {
    if (*p == '.' && !fraction) {
      fraction = true;
      continue;
    }
    if (!is_digit(*p)) break;
    any = true;
    if (fraction && places == digits) {
      up = *p >= '5';
      while (is_digit(p[1])) p++;
      continue;
    }
    if (value > (most - 9) / 10) return false;
    value = value * 10 + (*p - '0');
    places += fraction;
  }
  if (!any) return false;
  if (*p == 'e' || *p == 'E') { /* nobody stamps times so; durations are short enough for a double */
    double v;
    const char *end;
    if (!hn_text_number(start, &v, &end)) return false;
    v *= pow(10, digits);
    if (!(fabs(v) < (double)most)) return false;
    *ns = (int64_t)llround(v);
    return true;
  }
  for (; places < digits; places++) {
    if (value > most / 10) return false;
    value *= 10;
  }
  value += up;
  *ns = negative ? -value : value;
  return true;
}

double hn_text_unit_ns(const char *unit) {
  static const struct {
    const char *word;
    double ns;
  } units[] = {{"ns", 1},
               {"nsecond", 1},
               {"nanosecond", 1},
               {"nanoseconds", 1},
               {"us", 1e3},
               {"usecond", 1e3},
               {"microsecond", 1e3},
               {"microseconds", 1e3},
               {"\xc2\xb5s", 1e3},
               {"\xce\xbcs", 1e3},
               {"ms", 1e6},
               {"msecond", 1e6},
               {"millisecond", 1e6},
               {"milliseconds", 1e6},
               {"s", 1e9},
               {"sec", 1e9},
               {"second", 1e9},
               {"seconds", 1e9}};
  for (size_t i = 0; unit && i < sizeof units / sizeof *units; i++)
    if (strcasecmp(unit, units[i].word) == 0) return units[i].ns;
  return 0;
}

static const struct {
  const char *word, *dtype;
  unsigned bytes;
} dtypes[] = {
    {"f32", "f32", 4},         {"float", "f32", 4},    {"float32", "f32", 4},   {"fp32", "f32", 4},
    {"single", "f32", 4},      {"f16", "f16", 2},      {"float16", "f16", 2},   {"fp16", "f16", 2},
    {"half", "f16", 2},        {"bf16", "bf16", 2},    {"bfloat16", "bf16", 2}, {"tf32", "tf32", 4},
    {"f64", "f64", 8},         {"double", "f64", 8},   {"float64", "f64", 8},   {"i8", "i8", 1},
    {"int8", "i8", 1},         {"s8", "i8", 1},        {"qint8", "i8", 1},      {"signed char", "i8", 1},
    {"u8", "u8", 1},           {"uint8", "u8", 1},     {"quint8", "u8", 1},     {"unsigned char", "u8", 1},
    {"i32", "i32", 4},         {"int32", "i32", 4},    {"s32", "i32", 4},       {"int", "i32", 4},
    {"i64", "i64", 8},         {"int64", "i64", 8},    {"s64", "i64", 8},       {"long", "i64", 8},
    {"long int", "i64", 8},    {"i16", "i16", 2},      {"int16", "i16", 2},     {"u16", "u16", 2},
    {"uint16", "u16", 2},      {"u32", "u32", 4},      {"uint32", "u32", 4},    {"u64", "u64", 8},
    {"uint64", "u64", 8},      {"bool", "bool", 1},    {"i4", "i4", 0},         {"int4", "i4", 0},
    {"u4", "u4", 0},           {"uint4", "u4", 0},     {"fp8", "f8", 1},        {"float8", "f8", 1},
    {"float8e4m3fn", "f8", 1}, {"fp8e4m3", "f8", 1},   {"f8_e4m3", "f8", 1},    {"float8e5m2", "f8", 1},
    {"fp4", "f4", 0},          {"string", "string", 0}};

const char *hn_text_dtype(const char *name) {
  if (!name) return NULL;
  static const char *const prefixes[] = {"DT_", "c10::", "torch.", "tensor(", "k"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (hn_text_starts(name, prefixes[i])) name += strlen(prefixes[i]);
  size_t n = strcspn(name, ")");
  while (n && is_blank(name[n - 1])) n--;
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    if (strlen(dtypes[i].word) == n && strncasecmp(name, dtypes[i].word, n) == 0) return dtypes[i].dtype;
  return NULL;
}

unsigned hn_text_dtype_bytes(const char *dtype) {
  for (size_t i = 0; dtype && i < sizeof dtypes / sizeof *dtypes; i++)
    if (strcmp(dtypes[i].dtype, dtype) == 0) return dtypes[i].bytes;
  return 0;
}

size_t hn_text_dims(const char *p, int64_t *dims, size_t most) {
  size_t n = 0;
  while (*p && *p != ';' && n < most) {
    bool negative = *p == '-' && is_digit(p[1]);
    if (negative) p++;
    if (!is_digit(*p)) {
      p++;
      continue;
    }
    int64_t v = 0;
    for (; is_digit(*p); p++) v = v < INT64_MAX / 16 ? v * 10 + (*p - '0') : v;
    dims[n++] = negative ? -1 : v;
  }
  return n;
}

void hn_text_put_shape(hn_str *out, const int64_t *dims, size_t n) {
  if (!n) hn_str_puts(out, "scalar");
  for (size_t i = 0; i < n; i++) {
    if (i) hn_str_putc(out, 'x');
    if (dims[i] < 0)
      hn_str_putc(out, '?');
    else
      hn_str_printf(out, "%lld", (long long)dims[i]);
  }
}

static char folded(char c) { return c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

bool hn_text_same(const char *a, const char *b) {
  for (; *a && *b; a++, b++)
    if (folded(*a) != folded(*b)) return false;
  return *a == *b;
}

bool hn_text_starts(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool hn_text_ends(const char *text, const char *suffix) {
  size_t n = strlen(text), m = strlen(suffix);
  return n >= m && memcmp(text + n - m, suffix, m) == 0;
}
