#include "insight/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at p, 0 when there is none. Overlong forms and surrogates are invalid.
 */
static size_t utf8_length(const unsigned char *p) {
  static const struct {
    unsigned char low, high, second_low, second_high;
    size_t length;
  } forms[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
               {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
               {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (p[0] < forms[i].low || p[0] > forms[i].high) continue;
    if (forms[i].length > 1 && (p[1] < forms[i].second_low || p[1] > forms[i].second_high)) return 0;
    for (size_t k = 2; k < forms[i].length; k++)
      if (p[k] < 0x80 || p[k] > 0xbf) return 0;
    return forms[i].length;
  }
  return 0;
}

static void quoted(hn_str *out, const char *text) {
  hn_str_putc(out, '"');
  const unsigned char *run = (const unsigned char *)text, *p = run;
  while (*p) {
    size_t n = utf8_length(p);
    /* U+2028 and U+2029 end a line in old JavaScript, so they are escaped like the HTML characters. */
    int separator = n == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9);
    if (n && !separator && (n > 1 || (*p >= 0x20 && *p != 0x7f && !strchr("\"\\<>&", *p)))) {
      p += n;
      continue;
    }
    hn_str_append(out, (const char *)run, (size_t)(p - run));
    if (!n)
      hn_str_puts(out, "\\ufffd");
    else if (separator)
      hn_str_printf(out, "\\u20%02x", p[2] - 0x80);
    else if (*p == '\n')
      hn_str_puts(out, "\\n");
    else if (*p == '\t')
      hn_str_puts(out, "\\t");
    else if (*p == '"' || *p == '\\')
      hn_str_printf(out, "\\%c", *p);
    else
      hn_str_printf(out, "\\u%04x", *p);
    p += n ? n : 1;
    run = p;
  }
  hn_str_append(out, (const char *)run, (size_t)(p - run));
  hn_str_putc(out, '"');
}

/* Comma where one is due, then the key. What came before tells: nothing, an opening bracket, or a value. */
static void begin(hn_str *out, const char *key) {
  size_t i = out->len;
  while (i && out->ptr[i - 1] == '\n') i--;
  if (i && out->ptr[i - 1] != '{' && out->ptr[i - 1] != '[') {
    /* Keep the comma on the line of the value that it follows. */
    if (i < out->len) {
      out->ptr[i] = ',';
      hn_str_putc(out, '\n');
    } else
      hn_str_putc(out, ',');
  }
  if (!key) return;
  quoted(out, key);
  hn_str_putc(out, ':');
}

void hn_json_open(hn_str *out, const char *key, char bracket) {
  begin(out, key);
  hn_str_putc(out, bracket);
}

void hn_json_close(hn_str *out, char bracket) { hn_str_putc(out, bracket); }

void hn_json_text(hn_str *out, const char *key, const char *text) {
  begin(out, key);
  if (text)
    quoted(out, text);
  else
    hn_str_puts(out, "null");
}

void hn_json_num(hn_str *out, const char *key, double value) {
  begin(out, key);
  if (!isfinite(value)) {
    hn_str_puts(out, "null");
    return;
  }
  char number[40];
  snprintf(number, sizeof number, "%.15g", value);
  if (strtod(number, NULL) != value) snprintf(number, sizeof number, "%.17g", value);
  /* The program around the library may have set a locale with a decimal comma. */
  char *comma = strchr(number, ',');
  if (comma) *comma = '.';
  hn_str_puts(out, number);
}

void hn_json_int(hn_str *out, const char *key, int64_t value) {
  begin(out, key);
  hn_str_printf(out, "%lld", (long long)value);
}

void hn_json_uint(hn_str *out, const char *key, uint64_t value) {
  begin(out, key);
  hn_str_printf(out, "%llu", (unsigned long long)value);
}

void hn_json_bool(hn_str *out, const char *key, int value) {
  begin(out, key);
  hn_str_puts(out, value ? "true" : "false");
}

void hn_json_null(hn_str *out, const char *key) {
  begin(out, key);
  hn_str_puts(out, "null");
}

void hn_json_texts(hn_str *out, const char *key, const char *const *texts, size_t n) {
  hn_json_open(out, key, '[');
  for (size_t i = 0; i < n; i++) hn_json_text(out, NULL, texts[i]);
  hn_json_close(out, ']');
}

void hn_json_line(hn_str *out) { hn_str_putc(out, '\n'); }

static void member(hn_str *out, const hn_json_member *m, const void *at) {
  int64_t i = 0;
  uint64_t u = 0;
  switch (m->kind) {
  case HN_JSON_DOUBLE: {
    const double d = *(const double *)at;
    if (d != 0 || m->when != HN_JSON_UNLESS_ZERO) hn_json_num(out, m->key, d);
    return;
  }
  case HN_JSON_TEXT: {
    const char *text = *(const char *const *)at;
    if (text || m->when != HN_JSON_UNLESS_ZERO) hn_json_text(out, m->key, text);
    return;
  }
  case HN_JSON_BOOL: {
    const bool b = *(const bool *)at;
    if (b || m->when != HN_JSON_UNLESS_ZERO) hn_json_bool(out, m->key, b);
    return;
  }
  case HN_JSON_U32: u = *(const uint32_t *)at; break;
  case HN_JSON_U64: u = *(const uint64_t *)at; break;
  case HN_JSON_I32: i = *(const int32_t *)at; break;
  case HN_JSON_I64: i = *(const int64_t *)at; break;
  }
  if (m->when == HN_JSON_UNLESS_ZERO && i == 0 && u == 0) return;
  if (m->when == HN_JSON_UNLESS_MINUS_ONE && i == -1) return;
  if (m->kind == HN_JSON_U32 || m->kind == HN_JSON_U64)
    hn_json_uint(out, m->key, u);
  else
    hn_json_int(out, m->key, i);
}

void hn_json_members(hn_str *out, const hn_json_member *list, const void *object) {
  for (; list->key; list++) member(out, list, (const char *)object + list->offset);
}

void hn_json_object(hn_str *out, const char *key, const hn_json_member *list, const void *object) {
  hn_json_open(out, key, '{');
  hn_json_members(out, list, object);
  hn_json_close(out, '}');
  hn_json_line(out);
}

void hn_json_objects(hn_str *out, const char *key, const hn_json_member *list, const void *objects, size_t n,
                     size_t size) {
  hn_json_open(out, key, '[');
  for (size_t i = 0; i < n; i++) {
    hn_json_open(out, NULL, '{');
    hn_json_members(out, list, (const char *)objects + i * size);
    hn_json_close(out, '}');
  }
  hn_json_close(out, ']');
  hn_json_line(out);
}
