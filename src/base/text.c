#include "base/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- characters */

size_t hn_text_character(const char *text) {
  const unsigned char *p = (const unsigned char *)text;
  const size_t n = *p < 0x80                 ? 1
                   : *p >= 0xc2 && *p < 0xe0 ? 2
                   : *p >= 0xe0 && *p < 0xf0 ? 3
                   : *p >= 0xf0 && *p < 0xf5 ? 4
                                             : 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  /* Longer than need be, surrogates, beyond the last character. */
  if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
      (*p == 0xf4 && p[1] > 0x8f))
    return 0;
  return n;
}

static uint32_t code_of(const char *text, size_t n) {
  const unsigned char *p = (const unsigned char *)text;
  uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);
  for (size_t i = 1; i < n; i++) code = code << 6 | (p[i] & 0x3f);
  return code;
}

bool hn_text_is_hidden(const char *p, size_t n) {
  if (!n) return true;
  const uint32_t c = code_of(p, n);
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
         (c >= 0xe0000 && c <= 0xe007f);
}

size_t hn_text_step(const char *text, size_t size, char to[12], size_t *length) {
  size_t n = *text ? hn_text_character(text) : 1;
  if (n > size) n = 0;
  if (!hn_text_is_hidden(text, n))
    memcpy(to, text, *length = n);
  else if (n > 1)
    *length = (size_t)snprintf(to, 12, "\\u%04x", code_of(text, n));
  else
    *length = (size_t)snprintf(to, 12, "\\x%02x", (unsigned char)*text);
  return n ? n : 1;
}

void hn_text_escape(hn_str *o, const char *text, size_t size) {
  char piece[12];
  size_t length;
  for (size_t at = 0; at < size;) {
    at += hn_text_step(text + at, size - at, piece, &length);
    hn_str_append(o, piece, length);
  }
}

size_t hn_text_whole(const char *s, size_t n) {
  size_t back = 0;
  while (back < 3 && back < n && ((unsigned char)s[n - 1 - back] & 0xc0) == 0x80) back++;
  if (back >= n) return n;
  const unsigned char lead = (unsigned char)s[n - 1 - back];
  const size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return want > back + 1 ? n - 1 - back : n;
}

/* ---- formats */

typedef struct spec {
  char text[32]; /* the conversion as snprintf takes it, with width and precision as '*' */
  bool left;
  int width, precision; /* precision < 0: none */
  char length[3], letter;
} spec;

/* Up to `precision` bytes of s, without the half of a character at its end. */
static size_t length_of(const char *s, int precision) {
  if (precision < 0) return strlen(s);
  const size_t n = strnlen(s, (size_t)precision);
  return n < (size_t)precision ? n : hn_text_whole(s, n);
}

static void blanks(hn_str *o, size_t n) {
  while (n--) hn_str_putc(o, ' ');
}

static void put_text(hn_str *o, const spec *f, const char *s, size_t size) {
  hn_str clean = {0};
  size_t count = 0;
  hn_text_escape(&clean, s, size);
  for (size_t i = 0; i < clean.len; i++) count += ((unsigned char)clean.ptr[i] & 0xc0) != 0x80;
  const size_t gap = f->width > 0 && (size_t)f->width > count ? (size_t)f->width - count : 0;
  if (!f->left) blanks(o, gap);
  if (clean.len) hn_str_append(o, clean.ptr, clean.len);
  if (f->left) blanks(o, gap);
  if (clean.failed) o->failed = true;
  hn_str_free(&clean);
}

/* Flags, width, precision and length of the conversion behind '%'; `width` and `precision` stay -2 where an
 * argument gives them. Returns the letter's place. */
static const char *parse(const char *p, spec *f) {
  size_t n = 0, k = 0;
  f->text[n++] = '%';
  for (; *p && strchr("-+ #0'", *p); p++) {
    if (*p == '-') f->left = true;
    if (n < 8) f->text[n++] = *p;
  }
  f->width = 0;
  f->precision = -1;
  if (*p == '*')
    f->width = -2, p++;
  else
    for (; *p >= '0' && *p <= '9'; p++) f->width = f->width < 100000 ? f->width * 10 + *p - '0' : f->width;
  if (*p == '.') {
    f->precision = 0;
    if (*++p == '*')
      f->precision = -2, p++;
    else
      for (; *p >= '0' && *p <= '9'; p++)
        f->precision = f->precision < 100000 ? f->precision * 10 + *p - '0' : f->precision;
  }
  memcpy(f->text + n, "*.*", 3); /* a negative precision counts as none */
  n += 3;
  for (; *p && strchr("hljztL", *p); p++) {
    if (k < 2) f->length[k++] = *p;
    f->text[n < 28 ? n++ : n] = *p;
  }
  f->letter = *p;
  f->text[n] = *p;
  return p;
}

enum length { INT, LONG, LONG_LONG, SIZE, DIFFERENCE, MAXIMUM };

static enum length integer(const spec *f) {
  return strcmp(f->length, "ll") == 0 ? LONG_LONG
         : f->length[0] == 'l'        ? LONG
         : f->length[0] == 'z'        ? SIZE
         : f->length[0] == 't'        ? DIFFERENCE
         : f->length[0] == 'j'        ? MAXIMUM
                                      : INT;
}

void hn_text_vformat(hn_str *o, const char *format, va_list ap) {
  for (const char *p = format; *p; p++) {
    const size_t plain = strcspn(p, "%");
    hn_str_append(o, p, plain);
    p += plain;
    if (!*p) break;
    if (p[1] == '%') {
      hn_str_putc(o, *++p);
      continue;
    }
    spec f = {0};
    p = parse(p + 1, &f);
    if (!*p) break;
    if (f.width == -2) f.width = va_arg(ap, int);
    if (f.precision == -2) f.precision = va_arg(ap, int);
    if (f.width < 0) f.left = true, f.width = -f.width;
    const int width = f.left ? -f.width : f.width;
    switch (f.letter) {
    case 's': {
      const char *s = va_arg(ap, const char *);
      if (!s) s = "(null)";
      put_text(o, &f, s, length_of(s, f.precision));
      break;
    }
    case 'c': {
      const char c = (char)va_arg(ap, int);
      f.precision = -1;
      put_text(o, &f, &c, 1);
      break;
    }
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      /* The format is a part of the caller's, which the compiler has checked. */
      switch (integer(&f)) {
      case INT: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, int)); break;
      case LONG: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, long)); break;
      case LONG_LONG: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, long long)); break;
      case SIZE: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, size_t)); break;
      case DIFFERENCE: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, ptrdiff_t)); break;
      case MAXIMUM: hn_str_printf(o, f.text, width, f.precision, va_arg(ap, intmax_t)); break;
      }
      break;
    case 'p': hn_str_printf(o, "%p", va_arg(ap, void *)); break;
    default: /* a e f g */
      if (f.length[0] == 'L')
        hn_str_printf(o, f.text, width, f.precision, va_arg(ap, long double));
      else
        hn_str_printf(o, f.text, width, f.precision, va_arg(ap, double));
    }
  }
}

size_t hn_text_shell(const char *text, char *buf, size_t size) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  const bool quoted = !*text || text[strspn(text, plain)];
  size_t n = 0;
#define PUT(c) (n + 1 < size ? buf[n] = (c) : 0, n++)
  if (quoted) PUT('\'');
  for (; *text; text++) {
    PUT(*text);
    if (*text != '\'') continue;
    PUT('\\'); /* 'a'\''b' */
    PUT('\'');
    PUT('\'');
  }
  if (quoted) PUT('\'');
#undef PUT
  if (size) buf[n < size ? n : size - 1] = 0;
  return n;
}

const char *hn_text_shell_short(const char *text, const char *instead, char *buf, size_t size) {
  return hn_text_shell(text, buf, size) < size ? buf : instead;
}
