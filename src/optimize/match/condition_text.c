/* Reads conditions and settings (condition.h). */
#include "base/error.h"
#include "optimize/match/condition.h"

#include <string.h>

enum { MOST_FACTORS = 16, MOST_LIST = 64, MOST_TERMS = 64 };

static hn_term *no_memory(hn_lex *lex) {
  if (lex->status == HONE_OK) lex->status = hn_fail_memory(lex->error, sizeof(hn_term), "a condition");
  lex->token.kind = HN_TOKEN_END;
  return NULL;
}

static const char *here(const hn_lex *lex) { return lex->line_start + lex->token.column - 1; }

/* From `start` to the current token, without the blanks between. */
static const char *spelled(hn_lex *lex, const char *start) {
  const char *stop = lex->token.kind == HN_TOKEN_END ? lex->end : here(lex);
  while (stop > start && strchr(" \t\r\n", stop[-1])) stop--;
  const char *text =
      lex->status == HONE_OK ? hn_arena_strndup(lex->arena, start, (size_t)(stop - start)) : "";
  return text ? text : (no_memory(lex), "");
}

static hn_term *new_term(hn_lex *lex, hn_term_kind kind) {
  hn_term *t = HN_NEW(lex->arena, hn_term);
  if (!t) return no_memory(lex);
  *t = (hn_term){.kind = kind, .row = lex->token.line, .column = lex->token.column};
  return t;
}

static hn_number number_of(const hn_token *t) {
  return (hn_number){.whole = t->is_int && !t->is_unsigned, .i = t->integer, .f = t->number};
}

static hn_term *list(hn_lex *lex) {
  char buf[64];
  hn_term *t = new_term(lex, HN_TERM_LIST);
  if (!t || !(t->list = HN_NEW_ARRAY(lex->arena, hn_number, MOST_LIST))) return no_memory(lex);
  hn_lex_next(lex); /* [ */
  while (lex->status == HONE_OK && !hn_lex_accept(lex, ']')) {
    if (t->n_list && !hn_lex_expect(lex, ',')) return NULL;
    if (t->n_list == MOST_LIST) return hn_lex_fail(lex, "the list has more than %d numbers", MOST_LIST), NULL;
    const hn_token now = lex->token;
    if (now.kind == HN_TOKEN_NUMBER)
      t->list[t->n_list++] = number_of(&now);
    else if (now.kind == HN_TOKEN_PUNCT && now.punct == '?')
      t->list[t->n_list++] = (hn_number){.any = true};
    else
      return hn_lex_fail(lex, "expected a number or ? in the list, found %s", hn_lex_describe(lex, buf)),
             NULL;
    hn_lex_next(lex);
  }
  return t;
}

static bool word(hn_lex *lex, const char **out, const char *what) {
  char buf[64];
  if (lex->token.kind != HN_TOKEN_WORD)
    return hn_lex_fail(lex, "expected %s, found %s", what, hn_lex_describe(lex, buf)), false;
  *out = lex->token.text;
  hn_lex_next(lex);
  return lex->status == HONE_OK;
}

static hn_term *factor(hn_lex *lex, uint32_t depth);

static hn_term *otherwise(hn_lex *lex, hn_term *t, uint32_t depth) {
  if (hn_lex_accept_word(lex, "else") && !(t->otherwise = factor(lex, depth + 1))) return NULL;
  return t;
}

/* dim(%x, 1) and the like; the current token is the bracket behind the word. */
static hn_term *call(hn_lex *lex, hn_term *t, const char *function, uint32_t depth) {
  static const struct {
    const char *word;
    hn_term_kind kind;
  } functions[] = {{"dim", HN_TERM_DIM},      {"dims", HN_TERM_DIMS},   {"rank", HN_TERM_RANK},
                   {"type", HN_TERM_TYPE_OF}, {"value", HN_TERM_VALUE}, {"attr", HN_TERM_ATTR}};
  char buf[64];
  size_t i = 0;
  while (i < sizeof functions / sizeof *functions && strcmp(functions[i].word, function) != 0) i++;
  if (i == sizeof functions / sizeof *functions) {
    lex->token.line = t->row;
    lex->token.column = t->column;
    return hn_lex_fail(lex, "there is no '%.40s(': dim, dims, rank, type, value, attr are known", function),
           NULL;
  }
  t->kind = functions[i].kind;
  hn_lex_next(lex); /* ( */
  if (lex->token.kind != HN_TOKEN_VALUE)
    return hn_lex_fail(lex, "expected a %%name, found %s", hn_lex_describe(lex, buf)), NULL;
  t->name = lex->token.text;
  hn_lex_next(lex);
  if (t->kind == HN_TERM_DIM) {
    if (!hn_lex_expect(lex, ',')) return NULL;
    if (lex->token.kind != HN_TOKEN_NUMBER || !lex->token.is_int || lex->token.integer < -HONE_MAX_RANK ||
        lex->token.integer >= HONE_MAX_RANK)
      return hn_lex_fail(lex, "expected the number of a dimension, %d to %d, found %s", -HONE_MAX_RANK,
                         HONE_MAX_RANK - 1, hn_lex_describe(lex, buf)),
             NULL;
    t->index = lex->token.integer;
    hn_lex_next(lex);
  }
  if (t->kind == HN_TERM_ATTR &&
      (!hn_lex_expect(lex, ',') || !word(lex, &t->attr, "the name of an attribute")))
    return NULL;
  if (!hn_lex_expect(lex, ')')) return NULL;
  return t->kind == HN_TERM_ATTR ? otherwise(lex, t, depth) : t;
}

static hn_term *bare(hn_lex *lex, uint32_t depth) {
  char buf[64];
  hn_term *t = new_term(lex, HN_TERM_NUMBER);
  const hn_token now = lex->token;
  if (!t) return NULL;
  if (now.kind == HN_TOKEN_NUMBER) {
    t->number = number_of(&now);
  } else if (now.kind == HN_TOKEN_STRING) {
    t->kind = HN_TERM_TEXT;
    t->text = (hone_string){now.text, now.len};
  } else if (now.kind == HN_TOKEN_WORD) {
    hn_lex_next(lex);
    if (lex->token.kind == HN_TOKEN_PUNCT && lex->token.punct == '(') return call(lex, t, now.text, depth);
    t->type = hone_dtype_from_name(now.text);
    t->kind = t->type ? HN_TERM_TYPE : HN_TERM_ATTR;
    t->attr = now.text;
    return t->type ? t : otherwise(lex, t, depth);
  } else
    return hn_lex_fail(lex,
                       "expected an attribute, a number, a list or a function such as dim(%%x, 1), found %s",
                       hn_lex_describe(lex, buf)),
           NULL;
  hn_lex_next(lex);
  return lex->status == HONE_OK ? t : NULL;
}

static hn_term *factor(hn_lex *lex, uint32_t depth) {
  const char *start = here(lex);
  if (depth > MOST_FACTORS)
    return hn_lex_fail(lex, "more than %d terms behind each other", MOST_FACTORS), NULL;
  hn_term *t = lex->token.kind == HN_TOKEN_PUNCT && lex->token.punct == '[' ? list(lex) : bare(lex, depth);
  if (!t || lex->status != HONE_OK) return NULL;
  t->spelled = spelled(lex, start);
  return lex->status == HONE_OK ? t : NULL;
}

static hn_term *term(hn_lex *lex) {
  const char *start = here(lex);
  hn_term *t = factor(lex, 0);
  for (uint32_t n = 1; t; n++) {
    const hn_term_kind kind = hn_lex_accept(lex, '*')          ? HN_TERM_PRODUCT
                              : hn_lex_accept(lex, '/')        ? HN_TERM_QUOTIENT
                              : hn_lex_accept_word(lex, "mod") ? HN_TERM_REMAINDER
                                                               : HN_TERM_NUMBER;
    if (kind == HN_TERM_NUMBER) return t;
    hn_term *whole = new_term(lex, kind), *right = factor(lex, n);
    if (!whole || !right) return NULL;
    whole->left = t;
    whole->right = right;
    whole->row = t->row;
    whole->column = t->column;
    whole->spelled = spelled(lex, start);
    t = whole;
  }
  return NULL;
}

/* What a term can only be; ATTR: anything. */
static hn_term_kind kind_of(const hn_term *t) {
  switch (t->kind) {
  case HN_TERM_TEXT: return HN_TERM_TEXT;
  case HN_TERM_TYPE:
  case HN_TERM_TYPE_OF: return HN_TERM_TYPE;
  case HN_TERM_LIST:
  case HN_TERM_DIMS: return HN_TERM_LIST;
  case HN_TERM_ATTR:
  case HN_TERM_VALUE: return HN_TERM_ATTR;
  default: return HN_TERM_NUMBER;
  }
}

static bool relation(hn_lex *lex, hn_relation *out) {
  static const struct {
    char first;
    hn_relation alone, with_equal;
  } signs[] = {{'<', HN_LESS, HN_AT_MOST}, {'>', HN_GREATER, HN_AT_LEAST}};
  char buf[64];
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (hn_lex_accept(lex, signs[i].first)) {
      *out = hn_lex_accept(lex, '=') ? signs[i].with_equal : signs[i].alone;
      return lex->status == HONE_OK;
    }
  *out = HN_DIFFERENT;
  if (hn_lex_accept(lex, '!')) return hn_lex_expect(lex, '=');
  *out = HN_EQUAL;
  if (!hn_lex_accept(lex, '='))
    return hn_lex_fail(lex, "expected ==, !=, <, <=, > or >=, found %s", hn_lex_describe(lex, buf)), false;
  return hn_lex_expect(lex, '=');
}

static bool comparison(hn_lex *lex, hn_comparison *out) {
  const hn_token at = lex->token;
  if (!(out->left = term(lex)) || !relation(lex, &out->relation) || !(out->right = term(lex))) return false;
  const hn_term_kind a = kind_of(out->left), b = kind_of(out->right);
  const bool ordered = out->relation >= HN_LESS;
  if (ordered ? (a != HN_TERM_ATTR && a != HN_TERM_NUMBER) || (b != HN_TERM_ATTR && b != HN_TERM_NUMBER)
              : a != b && a != HN_TERM_ATTR && b != HN_TERM_ATTR) {
    lex->token = at;
    return hn_lex_fail(lex, ordered ? "only numbers are smaller or greater than others"
                                    : "the two sides can never be the same kind of thing"),
           false;
  }
  return true;
}

static bool condition(hn_lex *lex, hn_where *out) {
  enum { MOST_ANY = 16 };
  const char *start = here(lex);
  const bool several = hn_lex_accept(lex, '(');
  out->any = HN_NEW_ARRAY(lex->arena, hn_comparison, several ? MOST_ANY : 1);
  if (!out->any) return no_memory(lex), false;
  do {
    if (out->n_any == MOST_ANY) return hn_lex_fail(lex, "more than %d joined by or", MOST_ANY), false;
    if (!comparison(lex, &out->any[out->n_any++])) return false;
  } while (several && hn_lex_accept_word(lex, "or"));
  if (several && !hn_lex_expect(lex, ')')) return false;
  out->spelled = spelled(lex, start);
  return lex->status == HONE_OK;
}

bool hn_where_parse(hn_lex *lex, uint32_t line, hn_where_list *out) {
  do {
    hn_where c = {.line = line};
    if (out->len == MOST_TERMS) return hn_lex_fail(lex, "more than %d conditions", MOST_TERMS), false;
    if (!condition(lex, &c)) return false;
    if (!hn_vec_push(out, c)) return no_memory(lex), false;
  } while (hn_lex_accept_word(lex, "and"));
  if (lex->token.kind == HN_TOKEN_WORD && strcmp(lex->token.text, "or") == 0)
    (void)hn_lex_fail(lex, "comparisons joined by or stand in brackets: (a == 1 or a == 2)");
  return lex->status == HONE_OK;
}

bool hn_settings_parse(hn_lex *lex, hn_setting_list *out) {
  while (lex->status == HONE_OK && lex->token.kind != HN_TOKEN_END) {
    hn_setting s = {0};
    const hn_token at = lex->token;
    if (!word(lex, &s.attr, "the name of an attribute")) return false;
    for (size_t i = 0; i < out->len; i++)
      if (strcmp(out->ptr[i].attr, s.attr) == 0) {
        lex->token = at;
        return hn_lex_fail(lex, "attribute '%.40s' is given twice", s.attr), false;
      }
    if (out->len == MOST_TERMS) return hn_lex_fail(lex, "more than %d attributes", MOST_TERMS), false;
    if (!hn_lex_expect(lex, '=') || !(s.term = term(lex))) return false;
    if (!hn_vec_push(out, s)) return no_memory(lex), false;
    (void)hn_lex_accept(lex, ',');
  }
  return lex->status == HONE_OK;
}

/* ---- names */

static bool fail_at(hn_lex *lex, const hn_term *t, const char *what, const char *name) {
  lex->token.line = t->row;
  lex->token.column = t->column;
  return hn_lex_fail(lex, what, name), false;
}

bool hn_term_resolve(hn_lex *lex, const hn_pattern *p, uint32_t line, hn_term *t) {
  if (t->left) return hn_term_resolve(lex, p, line, t->left) && hn_term_resolve(lex, p, line, t->right);
  if (t->kind == HN_TERM_ATTR) t->line = line;
  if (t->name) {
    const int i = hn_pattern_name(p, t->name);
    if (i < 0) return fail_at(lex, t, "the pattern has no '%%%.40s'", t->name);
    if (t->kind == HN_TERM_ATTR && p->made_by[i] < 0)
      return fail_at(lex, t, "no line makes '%%%.40s': it has no attributes", t->name);
    if (t->kind == HN_TERM_ATTR) t->line = (uint32_t)p->made_by[i];
  } else if (t->kind == HN_TERM_ATTR && line >= p->n_lines)
    return fail_at(lex, t, "'%.40s' of which node? attr(%%name, ...) says it", t->attr);
  return !t->otherwise || hn_term_resolve(lex, p, line, t->otherwise);
}
