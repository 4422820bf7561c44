/* RegexFullMatch: whether a pattern matches all of a string. The pattern is RE2's; PCRE2 matches it. What RE2
 * does not have (references back, looking around) is refused, and so is a match that takes too many steps. */
#include "base/mem.h"
#include "model/ir/graph.h"
#include "model/ops/common/convert.h"

#ifdef HN_HAVE_PCRE2
#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { MOST_STEPS = 1000000, MOST_KILOBYTES = 65536 };

static void *take(PCRE2_SIZE n, void *data) {
  (void)data;
  return hn_malloc(n);
}
static void give(void *p, void *data) {
  (void)data;
  hn_free(p);
}

typedef struct matcher {
  pcre2_general_context *general;
  pcre2_compile_context *compile;
  pcre2_match_context *match;
  pcre2_code *code;
  pcre2_match_data *data;
  char *pattern;
} matcher;

static void matcher_free(matcher *m) {
  pcre2_match_data_free(m->data);
  pcre2_code_free(m->code);
  pcre2_match_context_free(m->match);
  pcre2_compile_context_free(m->compile);
  pcre2_general_context_free(m->general);
  hn_free(m->pattern);
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

static hone_status compile(const hone_node *node, matcher *m, hone_error *error) {
  const hone_string pattern = hn_node_text(node, "pattern", "");
  /* \12 becomes \x{a}, \777 becomes \x{1ff}. */
  translation t = {pattern.ptr, pattern.ptr + pattern.len, m->pattern = hn_malloc(3 * pattern.len + 8), 0};
  if (!m->pattern) return hn_fail_memory(error, 3 * pattern.len + 8, "a pattern");
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
  m->code = pcre2_compile((PCRE2_SPTR)m->pattern, t.n,
                          PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED |
                              PCRE2_DOLLAR_ENDONLY,
                          &number, &at, m->compile);
  if (!m->code) {
    pcre2_get_error_message(number, why, sizeof why);
    return hn_op_bad(node, error, "the pattern is wrong at byte %zu: %s", (size_t)at, (char *)why);
  }
  m->data = pcre2_match_data_create(1, m->general);
  return m->data ? HONE_OK : hn_fail_memory(error, 0, "a pattern");
}

static hone_status available(const hone_node *node, hone_error *error) {
  matcher m = {0};
  const hone_status s = compile(node, &m, error);
  matcher_free(&m);
  return s;
}

static hone_status match_all(hone_call *call, matcher *m, hone_error *error) {
  const hone_string *x = call->input[0]->data;
  bool *y = call->output[0]->data;
  for (int64_t i = 0, n = hn_count(call->input[0]); i < n; i++) {
    if (i % 64 == 0 && call->stopped(call)) return HONE_ERROR_CANCELLED;
    const int found =
        pcre2_match(m->code, (PCRE2_SPTR)(x[i].len ? x[i].ptr : ""), x[i].len, 0, 0, m->data, m->match);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
      return hn_op_refuse(call->node, error, "element %lld takes more than %d steps or %d MB to match",
                          (long long)i, MOST_STEPS, MOST_KILOBYTES / 1024);
    y[i] = found >= 0;
  }
  return HONE_OK;
}

static hone_status reference(hone_call *call, hone_error *error) {
  matcher m = {0};
  hone_status s = compile(call->node, &m, error);
  if (!s) s = match_all(call, &m, error);
  matcher_free(&m);
  return s;
}
#else
static hone_status available(const hone_node *node, hone_error *error) {
  return hn_op_refuse(node, error,
                      "hone was built without PCRE2 (package libpcre2-dev), which matches patterns");
}

static hone_status reference(hone_call *call, hone_error *error) { return available(call->node, error); }
#endif

static hone_status infer(const hone_infer *io, hone_error *error) {
  hn_infer_set(io, 0, HONE_DTYPE_BOOL, io->input[0]->rank, io->input[0]->dim);
  return available(io->node, error);
}

static const hone_attr_desc attrs[] = {{.name = "pattern", .type = HONE_ATTR_STRING, .required = true}, {0}};

HN_OP(regex_full_match) = {HN_OP_HEAD,
                           .op_type = "RegexFullMatch",
                           .since = 20,
                           HN_INPUTS(1, 1),
                           HN_OUTPUTS(1, 1),
                           .types = HN_TYPES_STRING,
                           .attrs = attrs,
                           .infer = infer,
                           .reference = reference};
