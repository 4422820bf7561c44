/* Numbers of a request's "data": flat, or in arrays within arrays as the shape has it. They are read where
 * they stand: a document of a million numbers would take thirty times their bytes. */
#include "api/serve/serve.h"
#include "base/error.h"
#include "model/ops/common/op.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 64 }; /* characters of a number */

typedef struct reader {
  const char *at, *end, *name;
  const hone_tensor *out;
  int64_t n, count;
  hone_error *error;
} reader;

static hone_status bad(const reader *r, const char *what, const char *got, size_t size) {
  hn_fail(r->error, HONE_ERROR_INPUT, "input '%.80s': %s, at element %lld", r->name, what, (long long)r->n);
  if (size) hn_error_got(r->error, "%.*s", (int)(size < WORD ? size : WORD), got);
  return HONE_ERROR_INPUT;
}

static char look(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
  return r->at < r->end ? *r->at : 0;
}

/* ------------------------------------------------------------------ one number */

/* Up to 15 digits and a small power of ten: both are exact, and so is the one rounding of their quotient. */
static bool short_decimal(const char *word, double *out) {
  static const double tens[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char *c = word + (*word == '-');
  int64_t mantissa = 0;
  int digits = 0, behind = -1;
  for (; *c; c++) {
    if (*c == '.' && behind < 0) {
      behind = 0;
      continue;
    }
    if (*c < '0' || *c > '9' || ++digits > 15) return false;
    mantissa = mantissa * 10 + (*c - '0');
    behind += behind >= 0;
  }
  if (!digits || !behind) return false;
  const double value = (double)mantissa / tens[behind > 0 ? behind : 0];
  *out = *word == '-' ? -value : value;
  return true;
}

static bool decimal(const char *word, double *out) {
  char *stop;
  if (short_decimal(word, out)) return true;
  if (strspn(word, "0123456789+-.eE") != strlen(word) || (*word != '-' && (*word < '0' || *word > '9')))
    return false;
  *out = strtod(word, &stop);
  return stop != word && !*stop;
}

static bool word_of(const char *word, double *out) {
  *out = strcmp(word, "NaN") == 0        ? (double)NAN
         : strcmp(word, "Infinity") == 0 ? (double)INFINITY
                                         : -(double)INFINITY;
  return isnan(*out) || *out > 0 || strcmp(word, "-Infinity") == 0;
}

static hone_status floating(reader *r, const char *word, size_t size) {
  double value;
  if (word_of(word, &value)) {
    hn_set_f64(r->out, r->n, value);
    return HONE_OK;
  }
  if (!decimal(word, &value)) return bad(r, "that is no number", word, size);
  hn_set_f64(r->out, r->n, value);
  return isfinite(hn_get_f64(r->out, r->n)) ? HONE_OK : bad(r, "its type cannot hold that", word, size);
}

static hone_status whole(reader *r, const char *word, size_t size) {
  const hone_dtype type = r->out->desc.dtype;
  const size_t bits = 8 * hone_dtype_size(type);
  const char *c = word + (*word == '-');
  uint64_t value = 0;
  const bool sign = *word == '-', can_sign = hone_dtype_is_signed_int(type);
  if (!*c || strspn(c, "0123456789") != strlen(c)) return bad(r, "that is no integer", word, size);
  const uint64_t most = can_sign ? (UINT64_MAX >> (65 - bits)) + sign : UINT64_MAX >> (64 - bits);
  for (; *c; c++) {
    const unsigned digit = (unsigned)(*c - '0');
    if (value > (most - digit) / 10 || digit > most) return bad(r, "its type cannot hold that", word, size);
    value = value * 10 + digit;
  }
  if (sign && value && !can_sign) return bad(r, "its type cannot hold that", word, size);
  if (sign) value = 0 - value;
  memcpy((char *)r->out->data + (size_t)r->n * (bits / 8), &value, bits / 8); /* little-endian */
  return HONE_OK;
}

static hone_status truth(reader *r, const char *word, size_t size) {
  const bool yes = strcmp(word, "true") == 0 || strcmp(word, "1") == 0;
  if (!yes && strcmp(word, "false") != 0 && strcmp(word, "0") != 0)
    return bad(r, "that is no truth value", word, size);
  ((uint8_t *)r->out->data)[r->n] = yes;
  return HONE_OK;
}

static hone_status element(reader *r) {
  char word[WORD];
  const char *from = r->at;
  while (r->at < r->end && !strchr(",[]{}\" \t\n\r", *r->at)) r->at++;
  const size_t size = (size_t)(r->at - from);
  if (!size) return bad(r, "a number is missing", from, from < r->end);
  if (size >= WORD) return bad(r, "a number has too many digits", from, size);
  if (r->n >= r->count) return bad(r, "there are more numbers than the shape has", from, size);
  memcpy(word, from, size);
  word[size] = 0;
  const hone_dtype type = r->out->desc.dtype;
  const hone_status status = type == HONE_DTYPE_BOOL     ? truth(r, word, size)
                             : hone_dtype_is_float(type) ? floating(r, word, size)
                                                         : whole(r, word, size);
  r->n++;
  return status;
}

/* ------------------------------------------------------------------ arrays */

/* deep: arrays in arrays, each as long as the shape says. */
static hone_status list(reader *r, int32_t level, bool deep) {
  const hone_tensor_desc *d = &r->out->desc;
  const bool leaf = !deep || level + 1 == d->rank;
  int64_t n = 0;
  if (look(r) != '[') return bad(r, "an array is missing, as the shape has one here", r->at, r->at < r->end);
  r->at++;
  for (char c = look(r); c != ']'; n++) {
    if (n) {
      if (c != ',') return bad(r, "a comma or the array's end is missing", r->at, c != 0);
      r->at++;
      look(r);
    }
    const hone_status status = leaf ? element(r) : list(r, level + 1, deep);
    if (status != HONE_OK) return status;
    c = look(r);
  }
  r->at++;
  if (!deep || n == d->dim[level]) return HONE_OK;
  hn_fail(r->error, HONE_ERROR_INPUT, "input '%.80s': an array at depth %d has %lld elements", r->name,
          (int)level, (long long)n);
  hn_error_expected(r->error, "%lld, as dimension %d of the shape", (long long)d->dim[level], (int)level);
  return HONE_ERROR_INPUT;
}

hone_status hn_ask_numbers(const char *text, size_t size, const char *name, const hone_tensor *out,
                           hone_error *error) {
  reader r = {.at = text, .end = text + size, .name = name, .out = out, .error = error};
  r.count = hone_desc_count(&out->desc);
  reader inner = r;
  look(&inner);
  inner.at += inner.at < inner.end;
  const hone_status status = list(&r, 0, look(&inner) == '[' && out->desc.rank > 1);
  if (status != HONE_OK) return status;
  if (look(&r)) return bad(&r, "something follows the array", r.at, 1);
  if (r.n == r.count) return HONE_OK;
  hn_fail(error, HONE_ERROR_INPUT, "input '%.80s' has fewer numbers than its shape", name);
  hn_error_expected(error, "%lld", (long long)r.count);
  hn_error_got(error, "%lld", (long long)r.n);
  return HONE_ERROR_INPUT;
}
