/* Patterns of RE2, matched by PCRE2 (regex.h). */
#include "model/ops/text/regex.h"

#include "base/error.h"
#include "base/mem.h"

#ifdef HN_HAVE_PCRE2
#include "base/late/late.h"
#include "base/late/pcre2.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 1000000, MOST_KILOBYTES = 65536 };

static void *take(PCRE2_SIZE n, void *data) {
  (void)data;
  return hn_malloc(n);
}
static void give(void *p, void *data) {
  (void)data;
  hn_free(p);
}

struct hn_regex {
  pcre2_general_context *general;
  pcre2_compile_context *compile;
  pcre2_match_context *match;
  pcre2_code *code;
  pcre2_match_data *data;
  char *pattern;
  int steps[512]; /* of the search for the longest match */
};

void hn_regex_free(hn_regex *m) {
  if (!m) return;
  pcre2_match_data_free(m->data);
  pcre2_code_free(m->code);
  pcre2_match_context_free(m->match);
  pcre2_compile_context_free(m->compile);
  pcre2_general_context_free(m->general);
  hn_free(m->pattern);
  hn_free(m);
}

/* A pattern as PCRE2 is to read it: RE2's, with \123 written \x{53}, which PCRE2 would take for a reference
 * back. */
typedef struct translation {
  const char *p, *end; /* what is left of RE2's */
  char *out;
  size_t n;
} translation;

/* The byte `i` further on; 0 behind the end. */
static char ahead(const translation *t, size_t i) { return i < (size_t)(t->end - t->p) ? t->p[i] : 0; }

static void copy(translation *t, size_t n) {
  for (; n && t->p < t->end; n--) t->out[t->n++] = *t->p++;
}

static bool octal(char c) { return c >= '0' && c <= '7'; }

/* What RE2 has behind "(?": (?:x), (?P<name>x), (?<name>x), and flags. */
static bool is_group(const translation *t) {
  size_t i = 2;
  const char c = ahead(t, i);
  if (c == ':' || (c == 'P' && ahead(t, 3) == '<')) return true;
  if (c == '<') return ahead(t, 3) != '=' && ahead(t, 3) != '!';
  while (ahead(t, i) && strchr("imsU-", ahead(t, i))) i++;
  return ahead(t, i) == ':' || ahead(t, i) == ')';
}

/* A backslash and what belongs to it. */
static const char *escape(translation *t, bool in_class) {
  const char c = ahead(t, 1);
  if (octal(c) && (c == '0' || octal(ahead(t, 2)))) {
    unsigned code = 0;
    size_t i = 1;
    for (; i <= 3 && octal(ahead(t, i)); i++) code = code * 8 + (unsigned)(ahead(t, i) - '0');
    t->n += (size_t)snprintf(t->out + t->n, 8, "\\x{%x}", code);
    t->p += i;
    return NULL;
  }
  if (c >= '1' && c <= '9') return in_class ? "an escape of one digit" : "a reference back";
  if (!in_class && c && strchr("kgKGRX", c)) return "a reference back";
  copy(t, 2);
  return NULL;
}

/* A class "[...]". */
static const char *class_of(translation *t) {
  copy(t, ahead(t, 1) == '^' ? 2 : 1);
  if (ahead(t, 0) == ']') copy(t, 1); /* the first one is a member */
  while (t->p < t->end && *t->p != ']') {
    if (ahead(t, 0) == '[' && ahead(t, 1) == ':') {
      const char *end = memmem(t->p + 2, (size_t)(t->end - t->p - 2), ":]", 2);
      copy(t, end ? (size_t)(end + 2 - t->p) : 1);
    } else if (*t->p == '\\') {
      const char *why = escape(t, true);
      if (why) return why;
    } else {
      copy(t, 1);
    }
  }
  copy(t, 1);
  return NULL;
}

/* NULL, or the part of the pattern that RE2 refuses: "(?=" and the like, "\\1", "\\k<name>", "a++". */
static const char *translate(translation *t) {
  while (t->p < t->end) {
    const char *why = NULL;
    if (*t->p == '\\' && ahead(t, 1) == 'Q') { /* literal up to \E */
      const char *end = memmem(t->p, (size_t)(t->end - t->p), "\\E", 2);
      copy(t, end ? (size_t)(end + 2 - t->p) : (size_t)(t->end - t->p));
    } else if (*t->p == '\\') {
      why = escape(t, false);
    } else if (*t->p == '[') {
      why = class_of(t);
    } else if (*t->p == '(' && ahead(t, 1) == '*') {
      why = "(*";
    } else if (*t->p == '(' && ahead(t, 1) == '?') {
      if (!is_group(t)) why = "a group (?...)";
      copy(t, 2); /* no quantifier */
    } else if (*t->p && strchr("*+?", *t->p) && ahead(t, 1) == '+') {
      why = "a possessive quantifier";
    } else {
      copy(t, 1);
    }
    if (why) return why;
  }
  return NULL;
}

static hone_status compile(const hone_node *node, hone_string text, bool whole, hn_regex *m,
                           hone_error *error) {
  /* \12 becomes \x{a}, \777 becomes \x{1ff}. */
  translation t = {text.ptr, text.ptr + text.len, m->pattern = hn_malloc(3 * text.len + 8), 0};
  if (!m->pattern) return hn_fail_memory(error, 3 * text.len + 8, "a pattern");
  const char *foreign = translate(&t);
  int number = 0;
  PCRE2_SIZE at = 0;
  PCRE2_UCHAR why[160] = {0};
  if (foreign) return hn_op_bad(node, error, "the pattern has %s, which RE2 has not", foreign);
  m->general = pcre2_general_context_create(take, give, NULL);
  m->compile = m->general ? pcre2_compile_context_create(m->general) : NULL;
  m->match = m->general ? pcre2_match_context_create(m->general) : NULL;
  if (!m->compile || !m->match) return hn_fail_memory(error, 0, "a pattern");
  pcre2_set_match_limit(m->match, MOST_STEPS);
  pcre2_set_heap_limit(m->match, MOST_KILOBYTES);
  pcre2_set_parens_nest_limit(m->compile, 200);
  m->code =
      pcre2_compile((PCRE2_SPTR)m->pattern, t.n,
                    PCRE2_UTF | PCRE2_DOLLAR_ENDONLY |
                        (whole ? PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED : PCRE2_DOTALL),
                    &number, &at, m->compile);
  if (!m->code) {
    pcre2_get_error_message(number, why, sizeof why);
    return hn_op_bad(node, error, "the pattern is wrong at byte %zu: %s", (size_t)at, (char *)why);
  }
  m->data = pcre2_match_data_create(1, m->general);
  return m->data ? HONE_OK : hn_fail_memory(error, 0, "a pattern");
}

hone_status hn_regex_make(const hone_node *node, hone_string text, bool whole, hn_regex **out,
                          hone_error *error) {
  *out = NULL;
  const hone_status there = hn_late_need(HN_LATE_LIBRARY_PCRE2, error);
  if (there) return there;
  hn_regex *m = hn_calloc(1, sizeof *m);
  if (!m) return hn_fail_memory(error, sizeof *m, "a pattern");
  const hone_status s = compile(node, text, whole, m, error);
  if (s)
    hn_regex_free(m);
  else
    *out = m;
  return s;
}

static hone_status said(const hone_call *call, int found, int64_t element, hone_error *error) {
  if (found >= 0 || found == PCRE2_ERROR_NOMATCH) return HONE_OK;
  if (found <= PCRE2_ERROR_UTF8_ERR1 && found >= PCRE2_ERROR_UTF8_ERR21)
    return hn_op_bad(call->node, error, "element %lld is not UTF-8", (long long)element);
  return hn_op_refuse(call->node, error, "element %lld takes more than %d steps or %d MB to match",
                      (long long)element, MOST_STEPS, MOST_KILOBYTES / 1024);
}

hone_status hn_regex_match(const hone_call *call, hn_regex *m, hone_string s, int64_t element, bool *matches,
                           hone_error *error) {
  const int found = pcre2_match(m->code, (PCRE2_SPTR)(s.len ? s.ptr : ""), s.len, 0, 0, m->data, m->match);
  *matches = found >= 0;
  return said(call, found, element, error);
}

hone_status hn_regex_find(const hone_call *call, hn_regex *m, hone_string s, size_t from, int64_t element,
                          size_t *begin, size_t *end, hone_error *error) {
  /* Whether it is UTF-8 was seen when its beginning was searched. */
  const int found =
      pcre2_dfa_match(m->code, (PCRE2_SPTR)(s.len ? s.ptr : ""), s.len, from, from ? PCRE2_NO_UTF_CHECK : 0,
                      m->data, m->match, m->steps, sizeof m->steps / sizeof *m->steps);
  *begin = *end = s.len;
  if (found >= 0) {
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    *begin = at[0], *end = at[1];
  }
  return said(call, found, element, error);
}
#else
hone_status hn_regex_make(const hone_node *node, hone_string text, bool whole, hn_regex **out,
                          hone_error *error) {
  (void)text, (void)whole, *out = NULL;
  return hn_op_refuse(node, error,
                      "hone was built without PCRE2 (package libpcre2-dev), which matches patterns");
}

void hn_regex_free(hn_regex *m) { (void)m; }

hone_status hn_regex_match(const hone_call *call, hn_regex *m, hone_string s, int64_t element, bool *matches,
                           hone_error *error) {
  (void)call, (void)m, (void)s, (void)element, (void)error;
  *matches = false;
  return HONE_ERROR_INTERNAL;
}

hone_status hn_regex_find(const hone_call *call, hn_regex *m, hone_string s, size_t from, int64_t element,
                          size_t *begin, size_t *end, hone_error *error) {
  (void)call, (void)m, (void)from, (void)element, (void)error;
  *begin = *end = s.len;
  return HONE_ERROR_INTERNAL;
}
#endif
