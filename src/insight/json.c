#include "insight/json.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quoted(hn_str *out, const char *text) {
  hn_str_putc(out, '"');
  const unsigned char *run = (const unsigned char *)text, *p = run;
  while (*p) {
    const size_t n = hn_text_character((const char *)p);
    /* Among them U+2028 and U+2029, which end a line in old JavaScript; the HTML characters are escaped, too.
     */
    const bool hidden = n > 1 && n < 4 && hn_text_is_hidden((const char *)p, n);
    if (n && !hidden && (n > 1 || (*p >= 0x20 && *p != 0x7f && !strchr("\"\\<>&", *p)))) {
      p += n;
      continue;
    }
    hn_str_append(out, (const char *)run, (size_t)(p - run));
    if (!n)
      hn_str_puts(out, "\\ufffd");
    else if (hidden) /* also where JSON allows it: the document may be shown by a terminal */
      hn_str_printf(out, "\\u%04x",
                    n == 2 ? (p[0] & 0x1f) << 6 | (p[1] & 0x3f)
                           : (p[0] & 0xf) << 12 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f));
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
