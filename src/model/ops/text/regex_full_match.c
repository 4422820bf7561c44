/* RegexFullMatch: whether a pattern matches all of a string. The pattern is RE2's; PCRE2 matches it. What RE2
 * does not have (references back, looking around) is refused, and so is a match that takes too many steps. */
#include "base/mem.h"
#include "model/ops/common/convert.h"

#ifdef HN_HAVE_PCRE2
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
} matcher;

static void matcher_free(matcher *m) {
  pcre2_match_data_free(m->data);
  pcre2_code_free(m->code);
  pcre2_match_context_free(m->match);
  pcre2_compile_context_free(m->compile);
  pcre2_general_context_free(m->general);
}

/* What RE2 has behind "(?": (?:x), (?P<name>x), (?<name>x), and flags. */
static bool is_group(const char *p) {
  if (*p == ':' || (p[0] == 'P' && p[1] == '<')) return true;
  if (*p == '<') return p[1] != '=' && p[1] != '!';
  while (*p && strchr("imsU-", *p)) p++;
  return *p == ':' || *p == ')';
}

/* The end of a class "[...]" that begins here: its "]" or the pattern's last byte. */
static const char *class_end(const char *p) {
  p += p[1] == '^' ? 2 : 1;
  if (*p == ']') p++; /* the first one is a member */
  for (; *p && *p != ']'; p++) {
    const char *end = p[0] == '[' && p[1] == ':' ? strstr(p + 2, ":]") : NULL;
    if (end) p = end + 1;
    if (p[0] == '\\' && p[1]) p++;
  }
  return *p ? p : p - 1;
}

/* "(?=" and the like, "\\1", "\\k<name>", "a++": parts of patterns that RE2 refuses. */
static const char *not_re2(const char *p) {
  for (; *p; p++) {
    if (p[0] == '\\' && p[1] == 'Q') { /* literal up to \E */
      const char *end = strstr(p + 2, "\\E");
      if (!end) return NULL;
      p = end + 1;
    } else if (p[0] == '\\' && p[1]) {
      p++;
      if ((*p >= '1' && *p <= '9') || strchr("kgKGRX", *p)) return "a reference back";
    } else if (*p == '[') {
      p = class_end(p);
    } else if (p[0] == '(' && p[1] == '*') {
      return "(*";
    } else if (p[0] == '(' && p[1] == '?') {
      if (!is_group(p + 2)) return "a group (?...)";
      p++; /* no quantifier */
    } else if (strchr("*+?", *p) && p[1] == '+') {
      return "a possessive quantifier";
    }
  }
  return NULL;
}

static hone_status compile(const hone_node *node, matcher *m, hone_error *error) {
  const char *pattern = hone_node_string(node, "pattern", "");
  const char *foreign = not_re2(pattern);
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
  m->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
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
