#include "model/ir/lex.h"

#include "base/error.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool digit(char c) { return c >= '0' && c <= '9'; }
bool hn_lex_name_char(char c) { return word_start(c) || digit(c) || c == '.' || c == '/'; }

hone_status hn_lex_fail(hn_lex *lex, const char *format, ...) {
  if (lex->status != HONE_OK) return lex->status;
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  lex->status = hn_fail(lex->error, HONE_ERROR_INPUT, "%s", what);
  hn_error_where(lex->error, "%s:%d:%d", lex->source, lex->token.line, lex->token.column);
  lex->failed_line = lex->token.line;
  lex->failed_column = lex->token.column;
  lex->token.kind = HN_TOKEN_END;
  lex->at = lex->end;
  return lex->status;
}

const char *hn_lex_describe(const hn_lex *lex, char buf[64]) {
  const hn_token *t = &lex->token;
  switch (t->kind) {
  case HN_TOKEN_END: snprintf(buf, 64, "the end of the text"); break;
  case HN_TOKEN_ARROW: snprintf(buf, 64, "'->'"); break;
  case HN_TOKEN_PUNCT: snprintf(buf, 64, "'%c'", t->punct); break;
  case HN_TOKEN_STRING: snprintf(buf, 64, "\"%.40s\"", t->text); break;
  case HN_TOKEN_VALUE: snprintf(buf, 64, "'%%%.40s'", t->text); break;
  default: snprintf(buf, 64, "'%.40s'", t->text); break;
  }
  return buf;
}

/* Reads a quoted text; at is on the opening quote. */
static void quoted(hn_lex *lex) {
  const char *start = ++lex->at;
  while (lex->at < lex->end && *lex->at != '"' && *lex->at != '\n') lex->at += *lex->at == '\\' ? 2 : 1;
  if (lex->at >= lex->end || *lex->at != '"') {
    hn_lex_fail(lex, "a quoted text does not end on its line");
    return;
  }
  char *out = hn_arena_alloc(lex->arena, (size_t)(lex->at - start) + 1);
  if (!out) {
    lex->status = hn_fail_memory(lex->error, (unsigned long long)(lex->at - start), "text");
    return;
  }
  size_t n = 0;
  for (const char *p = start; p < lex->at; p++) {
    if (*p != '\\') {
      out[n++] = *p;
      continue;
    }
    p++;
    if (*p == 'x' && lex->at - p > 2 && hn_text_hex(p[1]) >= 0 && hn_text_hex(p[2]) >= 0) {
      out[n++] = (char)(hn_text_hex(p[1]) * 16 + hn_text_hex(p[2]));
      p += 2;
    } else
      out[n++] = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p == 'r' ? '\r' : *p;
  }
  lex->at++;
  lex->token.text = out;
  lex->token.len = n;
}

static void copy_text(hn_lex *lex, const char *start) {
  lex->token.len = (size_t)(lex->at - start);
  lex->token.text = hn_arena_strndup(lex->arena, start, lex->token.len);
  if (!lex->token.text) {
    lex->token.text = "";
    lex->status = hn_fail_memory(lex->error, lex->token.len, "text");
  }
}

static void number(hn_lex *lex) {
  const char *start = lex->at;
  bool real = false;
  if (*lex->at == '-' || *lex->at == '+') lex->at++;
  while (lex->at < lex->end &&
         (digit(*lex->at) || word_start(*lex->at) || *lex->at == '.' ||
          ((*lex->at == '-' || *lex->at == '+') && (lex->at[-1] == 'e' || lex->at[-1] == 'E')))) {
    real |= !digit(*lex->at);
    lex->at++;
  }
  copy_text(lex, start);
  if (lex->status != HONE_OK) return;
  hn_token *t = &lex->token;
  t->kind = HN_TOKEN_NUMBER;
  char *stop;
  t->number = strtod(t->text, &stop);
  /* strtod also takes hexadecimal floats and "infinity": harmless, but only the documented forms are
   * promised. */
  if (*stop || stop == t->text) {
    hn_lex_fail(lex, "'%.40s' is no number", t->text);
    return;
  }
  if (real) return;
  errno = 0;
  t->integer = strtoll(t->text, NULL, 10);
  t->is_int = errno == 0;
  if (errno == ERANGE && t->text[0] != '-') {
    errno = 0;
    t->integer = (int64_t)strtoull(t->text, NULL, 10);
    t->is_int = t->is_unsigned = errno == 0;
  }
}

void hn_lex_next(hn_lex *lex) {
  hn_token *t = &lex->token;
  *t = (hn_token){.kind = HN_TOKEN_END};
  while (lex->at < lex->end && lex->status == HONE_OK) {
    char c = *lex->at;
    if (c == '\n') {
      lex->line++;
      lex->line_start = ++lex->at;
    } else if (c == ' ' || c == '\t' || c == '\r')
      lex->at++;
    else if (c == '/' && lex->end - lex->at > 1 && lex->at[1] == '/') {
      while (lex->at < lex->end && *lex->at != '\n') lex->at++;
    } else
      break;
  }
  t->line = lex->line;
  t->column = (int)(lex->at - lex->line_start) + 1;
  if (lex->at >= lex->end || lex->status != HONE_OK) return;
  const char *start = lex->at;
  char c = *start, c1 = lex->end - lex->at > 1 ? start[1] : 0;
  if (c == '%') {
    t->kind = HN_TOKEN_VALUE;
    lex->at++;
    if (c1 == '"')
      quoted(lex);
    else {
      while (lex->at < lex->end && hn_lex_name_char(*lex->at)) lex->at++;
      if (lex->at == start + 1)
        hn_lex_fail(lex, "a name must follow '%%'");
      else
        copy_text(lex, start + 1);
    }
    if (lex->status == HONE_OK && strlen(t->text) != t->len)
      hn_lex_fail(lex, "a name may not hold a zero byte");
  } else if (c == '"') {
    t->kind = HN_TOKEN_STRING;
    quoted(lex);
  } else if (word_start(c)) {
    while (lex->at < lex->end && (word_start(*lex->at) || digit(*lex->at) || *lex->at == '.')) lex->at++;
    copy_text(lex, start);
    t->kind = HN_TOKEN_WORD;
    if (strcmp(t->text, "inf") == 0 || strcmp(t->text, "nan") == 0) {
      t->kind = HN_TOKEN_NUMBER;
      t->number = *t->text == 'i' ? (double)INFINITY : (double)NAN;
    }
  } else if (c == '-' && c1 == '>') {
    t->kind = HN_TOKEN_ARROW;
    lex->at += 2;
  } else if (digit(c) || ((c == '-' || c == '+') && (digit(c1) || c1 == '.' || c1 == 'i')) ||
             (c == '.' && digit(c1)))
    number(lex);
  else if (c && strchr("(){}[],=:/*?!#|<>", c)) {
    t->kind = HN_TOKEN_PUNCT;
    t->punct = c;
    lex->at++;
  } else if (c >= ' ' && c < 127)
    hn_lex_fail(lex, "unexpected character '%c'", c);
  else
    hn_lex_fail(lex, "unexpected byte 0x%02x", (unsigned char)c);
  if (lex->status != HONE_OK) t->kind = HN_TOKEN_END;
}

void hn_lex_start(hn_lex *lex, const char *source, const char *text, size_t len, hn_arena *arena,
                  hone_error *error) {
  *lex = (hn_lex){.at = text,
                  .end = text + len,
                  .line_start = text,
                  .line = 1,
                  .source = source,
                  .arena = arena,
                  .error = error};
  hn_lex_next(lex);
}

bool hn_lex_accept(hn_lex *lex, char punct) {
  if (lex->token.kind != HN_TOKEN_PUNCT || lex->token.punct != punct) return false;
  hn_lex_next(lex);
  return true;
}

bool hn_lex_accept_word(hn_lex *lex, const char *word) {
  if (lex->token.kind != HN_TOKEN_WORD || strcmp(lex->token.text, word) != 0) return false;
  hn_lex_next(lex);
  return true;
}

bool hn_lex_expect(hn_lex *lex, char punct) {
  if (hn_lex_accept(lex, punct)) return true;
  char buf[64];
  hn_lex_fail(lex, "expected '%c', found %s", punct, hn_lex_describe(lex, buf));
  return false;
}
