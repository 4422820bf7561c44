/* Evaluates conditions and settings (condition.h) on a match. */
#include "optimize/match/condition.h"

#include "optimize/match/read.h"

#include <math.h>
#include <stdio.h>

/* What a term is on this match. */
typedef struct result {
  enum { NUMBER, TEXT, TYPE, LIST } kind;
  bool dims; /* negative numbers are dimensions that are not known */
  hn_number number;
  hone_string text;
  hone_dtype type;
  uint64_t n; /* LIST: of `numbers`, or of elements at ptr, or of a tensor */
  const hn_number *numbers;
  hone_attr_type element; /* INTS, FLOATS: at ptr */
  const void *ptr;
  const hone_tensor *tensor;
} result;

#define REFUSE(why, ...) (snprintf((why)->text, sizeof(why)->text, __VA_ARGS__), false)

static hn_number whole(int64_t i) { return (hn_number){.whole = true, .i = i, .f = (double)i}; }
static hn_number real(double f) { return (hn_number){.f = f}; }

static hn_number element(const result *r, uint64_t i) {
  if (r->numbers) return r->numbers[i];
  if (r->tensor)
    return hone_dtype_is_float(r->tensor->desc.dtype) ? real(hn_get_f64(r->tensor, (int64_t)i))
                                                      : whole(hn_get_i64(r->tensor, (int64_t)i));
  return r->element == HONE_ATTR_INTS ? whole(((const int64_t *)r->ptr)[i])
                                      : real((double)((const float *)r->ptr)[i]);
}

/* A constant of one element is a number, too. */
static bool as_number(const result *r, hn_number *out) {
  if (r->kind == LIST && r->tensor && r->n == 1) return *out = element(r, 0), true;
  return r->kind == NUMBER ? (*out = r->number, true) : false;
}

static void describe_number(const hn_number *n, char buf[24]) {
  if (n->any)
    snprintf(buf, 24, "?");
  else if (n->whole)
    snprintf(buf, 24, "%lld", (long long)n->i);
  else
    snprintf(buf, 24, "%.6g", n->f);
}

static void describe(const result *r, char buf[64]) {
  enum { FEW = 4 };
  char one[24];
  hn_number n;
  size_t len = 0;
  if (as_number(r, &n)) {
    describe_number(&n, one);
    snprintf(buf, 64, "%s", one);
  } else if (r->kind == TEXT) {
    snprintf(buf, 64, "\"%.*s\"", (int)(r->text.len < 20 ? r->text.len : 20), r->text.ptr);
  } else if (r->kind == TYPE) {
    snprintf(buf, 64, "%s", hone_dtype_name(r->type));
  } else {
    buf[len++] = '[';
    for (uint64_t i = 0; i < r->n && i < FEW && len < 50; i++) {
      n = element(r, i);
      describe_number(&n, one);
      len += (size_t)snprintf(buf + len, 64 - len, "%s%.10s", i ? ", " : "", one);
    }
    snprintf(buf + len, 64 - len, r->n > FEW ? ", ...]" : "]");
  }
}

/* ---- terms */

static bool evaluate(const hn_term *t, const hone_match *m, result *out, hone_reason *why);

static bool of_attr(const hn_term *t, const hone_match *m, result *out, hone_reason *why) {
  const hone_node *n = m->node[t->line];
  const hn_attr *a = n ? hn_node_attr(n, t->attr) : NULL;
  if (!a && t->otherwise) return evaluate(t->otherwise, m, out, why);
  if (!a)
    return REFUSE(why, "%.30s '%.40s' has no attribute %.30s", n ? n->op_type : "?", n ? n->name : "?",
                  t->attr);
  *out = (result){.kind = NUMBER};
  switch (a->type) {
  case HONE_ATTR_INT: return out->number = whole(a->i), true;
  case HONE_ATTR_FLOAT: return out->number = real((double)a->f), true;
  case HONE_ATTR_STRING: return *out = (result){.kind = TEXT, .text = a->s}, true;
  case HONE_ATTR_INTS:
  case HONE_ATTR_FLOATS:
    *out = (result){.kind = LIST, .n = a->list.n, .element = a->type, .ptr = a->list.ptr};
    return true;
  default:
    return REFUSE(why, "attribute %.30s of '%.40s' is no number, text or list of numbers", t->attr, n->name);
  }
}

static bool of_value(const hn_term *t, const hone_match *m, result *out, hone_reason *why) {
  enum { MOST = 4096 };
  const hn_value *v = hn_match_get(m, t->name);
  if (!v) return REFUSE(why, "%%%.60s was left out", t->name);
  const hone_tensor_desc *d = &v->desc;
  if (t->kind == HN_TERM_TYPE_OF) return *out = (result){.kind = TYPE, .type = d->dtype}, true;
  if (t->kind == HN_TERM_VALUE) {
    const hone_tensor *c = hn_known(v);
    const int64_t n = c ? hone_desc_count(&c->desc) : -1;
    if (n < 0) return REFUSE(why, "%%%.60s is no constant", t->name);
    const hone_dtype type = c->desc.dtype;
    if (type == HONE_DTYPE_STRING || type == HONE_DTYPE_C64 || type == HONE_DTYPE_C128 || n > MOST ||
        (c->desc.rank > 1 && n != 1))
      return REFUSE(why, "%%%.60s is no number and no list of numbers", t->name);
    return *out = (result){.kind = LIST, .n = (uint64_t)n, .tensor = c}, true;
  }
  if (d->rank < 0) return REFUSE(why, "the rank of %%%.60s is not known", t->name);
  if (t->kind == HN_TERM_RANK) return *out = (result){.kind = NUMBER, .number = whole(d->rank)}, true;
  if (t->kind == HN_TERM_DIMS) {
    *out = (result){
        .kind = LIST, .dims = true, .n = (uint64_t)d->rank, .element = HONE_ATTR_INTS, .ptr = d->dim};
    return true;
  }
  const int64_t at = t->index < 0 ? t->index + d->rank : t->index;
  if (at < 0 || at >= d->rank) return REFUSE(why, "%%%.60s has %d dimensions", t->name, d->rank);
  return *out = (result){.kind = NUMBER, .dims = true, .number = whole(d->dim[at])}, true;
}

/* Is it, where it is dimensions, known numbers? */
static bool known(const hn_term *t, const result *r, hone_reason *why) {
  const uint64_t n = !r->dims ? 0 : r->kind == LIST ? r->n : 1;
  for (uint64_t i = 0; i < n; i++)
    if ((r->kind == LIST ? ((const int64_t *)r->ptr)[i] : r->number.i) < 0)
      return REFUSE(why, "%.60s is not known", t->spelled);
  return true;
}

static bool operand(const hn_term *t, const hone_match *m, hn_number *out, hone_reason *why) {
  result r;
  if (!evaluate(t, m, &r, why) || !known(t, &r, why)) return false;
  return as_number(&r, out) || REFUSE(why, "%.80s is no number", t->spelled);
}

static bool arithmetic(const hn_term *t, const hone_match *m, result *out, hone_reason *why) {
  hn_number a, b;
  int64_t product;
  if (!operand(t->left, m, &a, why) || !operand(t->right, m, &b, why)) return false;
  const double x = a.whole ? (double)a.i : a.f, y = b.whole ? (double)b.i : b.f;
  const bool integers = a.whole && b.whole;
  *out = (result){.kind = NUMBER};
  if (t->kind == HN_TERM_PRODUCT) {
    out->number = integers && !__builtin_mul_overflow(a.i, b.i, &product) ? whole(product) : real(x * y);
    return true;
  }
  if (y == 0) return REFUSE(why, "%.80s divides by 0", t->spelled);
  if (t->kind == HN_TERM_REMAINDER) {
    if (!integers) return REFUSE(why, "%.80s: only whole numbers have a remainder", t->spelled);
    /* the sign of the divisor, as in Euclid for positive ones; -1 divides everything */
    const int64_t rest = b.i == -1 ? 0 : a.i % b.i;
    out->number = whole(rest && (rest < 0) != (b.i < 0) ? rest + b.i : rest);
  } else
    out->number = integers && b.i != -1 && a.i % b.i == 0 ? whole(a.i / b.i) : real(x / y);
  return true;
}

static bool evaluate(const hn_term *t, const hone_match *m, result *out, hone_reason *why) {
  switch (t->kind) {
  case HN_TERM_NUMBER: return *out = (result){.kind = NUMBER, .number = t->number}, true;
  case HN_TERM_TEXT: return *out = (result){.kind = TEXT, .text = t->text}, true;
  case HN_TERM_TYPE: return *out = (result){.kind = TYPE, .type = t->type}, true;
  case HN_TERM_LIST: return *out = (result){.kind = LIST, .n = t->n_list, .numbers = t->list}, true;
  case HN_TERM_ATTR: return of_attr(t, m, out, why);
  case HN_TERM_PRODUCT:
  case HN_TERM_QUOTIENT:
  case HN_TERM_REMAINDER: return arithmetic(t, m, out, why);
  default: return of_value(t, m, out, why);
  }
}

/* ---- comparisons */

static bool same(const hn_number *a, const hn_number *b) {
  if (a->any || b->any) return true;
  if (a->whole && b->whole) return a->i == b->i;
  return hn_same_number(a->whole ? (double)a->i : a->f, b->whole ? (double)b->i : b->f);
}

static bool ordered(hn_relation relation, const hn_number *a, const hn_number *b) {
  const bool integers = a->whole && b->whole;
  const double x = a->whole ? (double)a->i : a->f, y = b->whole ? (double)b->i : b->f;
  switch (relation) {
  case HN_LESS: return integers ? a->i < b->i : x < y;
  case HN_AT_MOST: return integers ? a->i <= b->i : x <= y;
  case HN_GREATER: return integers ? a->i > b->i : x > y;
  default: return integers ? a->i >= b->i : x >= y;
  }
}

/* The two sides of a comparison. */
typedef struct sides {
  const hn_comparison *c;
  result a, b;
} sides;

/* False: *why says which is not known. A dimension that is a symbol (<= -2) is the same as itself; nothing
 * else is known of it. */
static bool compare_one(const sides *s, const hn_number *a, const hn_number *b, bool *equal,
                        hone_reason *why) {
  const bool ua = s->a.dims && !a->any && a->i < 0, ub = s->b.dims && !b->any && b->i < 0;
  *equal = same(a, b);
  if (a->any || b->any || (!ua && !ub) || (ua && ub && *equal && a->i < HONE_DIM_UNKNOWN)) return true;
  return REFUSE(why, "%.50s is not known", ua ? s->c->left->spelled : s->c->right->spelled);
}

/* False: they cannot be compared. */
static bool compare(const sides *s, bool *equal, hone_reason *why) {
  hn_number x, y;
  const result *a = &s->a, *b = &s->b;
  if (as_number(a, &x) && as_number(b, &y)) return compare_one(s, &x, &y, equal, why);
  if (a->kind != b->kind) return REFUSE(why, "they are not the same kind of thing");
  if (a->kind == TYPE) return *equal = a->type == b->type, true;
  if (a->kind == TEXT)
    return *equal = a->text.len == b->text.len && memcmp(a->text.ptr, b->text.ptr, a->text.len) == 0, true;
  *equal = a->n == b->n;
  for (uint64_t i = 0; i < a->n && *equal; i++) {
    x = element(a, i);
    y = element(b, i);
    if (!compare_one(s, &x, &y, equal, why)) return false;
  }
  return true;
}

/* False: *why says what the sides are. */
static bool comparison_holds(const hn_comparison *c, const hone_match *m, hone_reason *why) {
  sides s = {.c = c};
  hn_number x, y;
  bool holds = false;
  char left[64], right[64];
  if (!evaluate(c->left, m, &s.a, why) || !evaluate(c->right, m, &s.b, why)) return false;
  if (c->relation < HN_LESS) {
    if (!compare(&s, &holds, why)) return false;
    holds = holds == (c->relation == HN_EQUAL);
  } else {
    if (!as_number(&s.a, &x) || !as_number(&s.b, &y)) return REFUSE(why, "one of them is no number");
    if (!known(c->left, &s.a, why) || !known(c->right, &s.b, why)) return false;
    holds = ordered(c->relation, &x, &y);
  }
  if (holds) return true;
  describe(&s.a, left);
  describe(&s.b, right);
  return REFUSE(why, "%.26s and %.26s", left, right);
}

bool hn_where_holds(const hn_where *c, const hone_match *m, hone_reason *why) {
  const hone_node *n = m->node[c->line];
  hone_reason one = {""};
  for (uint32_t i = 0; i < c->n_any; i++)
    if (comparison_holds(&c->any[i], m, &one)) return true;
  return REFUSE(why, "%.50s does not hold at '%.24s': %.60s", c->spelled, n ? n->name : "?", one.text);
}

/* ---- settings */

static bool set_list(const hn_setting *s, hone_attr_type type, const result *r, hone_node *node,
                     hone_reason *why) {
  const bool ints = type == HONE_ATTR_INTS;
  const size_t size = ints ? sizeof(int64_t) : sizeof(float);
  void *all = hn_calloc(r->n + 1, size);
  bool ok = all != NULL || REFUSE(why, "no memory for attribute %.60s", s->attr);
  for (uint64_t i = 0; i < r->n && ok; i++) {
    const hn_number n = element(r, i);
    if (n.any || (ints && !n.whole)) {
      ok = REFUSE(why, "%.60s of attribute %.40s are no whole numbers", s->term->spelled, s->attr);
    } else if (ints)
      ((int64_t *)all)[i] = n.i;
    else
      ((float *)all)[i] = (float)(n.whole ? (double)n.i : n.f);
  }
  if (ok && node)
    ok = (ints ? hn_node_set_ints(node, s->attr, all, r->n) : hn_node_set_floats(node, s->attr, all, r->n)) ||
         REFUSE(why, "no memory for attribute %.60s", s->attr);
  hn_free(all);
  return ok;
}

bool hn_setting_apply(const hn_setting *s, hone_attr_type type, const hone_match *m, hone_node *node,
                      hone_reason *why) {
  result r;
  hn_number n;
  if (!evaluate(s->term, m, &r, why) || !known(s->term, &r, why)) return false;
  switch (type) {
  case HONE_ATTR_INT:
  case HONE_ATTR_FLOAT:
    if (!as_number(&r, &n))
      return REFUSE(why, "%.60s for attribute %.40s is no number", s->term->spelled, s->attr);
    if (type == HONE_ATTR_FLOAT)
      return !node || hn_node_set_float(node, s->attr, (float)(n.whole ? (double)n.i : n.f)) ||
             REFUSE(why, "no memory for attribute %.60s", s->attr);
    if (!n.whole && n.f == floor(n.f) && fabs(n.f) < 0x1p62) n = whole((int64_t)n.f);
    if (!n.whole)
      return REFUSE(why, "%.60s for attribute %.40s is no whole number", s->term->spelled, s->attr);
    return !node || hn_node_set_int(node, s->attr, n.i) ||
           REFUSE(why, "no memory for attribute %.60s", s->attr);
  case HONE_ATTR_STRING:
    if (r.kind != TEXT) return REFUSE(why, "%.60s for attribute %.40s is no text", s->term->spelled, s->attr);
    return !node || hn_node_set_string(node, s->attr, r.text.ptr, r.text.len) ||
           REFUSE(why, "no memory for attribute %.60s", s->attr);
  case HONE_ATTR_INTS:
  case HONE_ATTR_FLOATS:
    if (r.kind != LIST) return REFUSE(why, "%.60s for attribute %.40s is no list", s->term->spelled, s->attr);
    return set_list(s, type, &r, node, why);
  default:
    return REFUSE(why, "the operator's attribute %.60s is no number, text or list of numbers", s->attr);
  }
}

/* ---- backwards */

static bool is_own_attr(const hn_term *t) { return t->kind == HN_TERM_ATTR && !t->name; }

static hone_attr_type type_for(const result *r) {
  const hn_number n = r->number;
  bool all = true;
  if (r->kind == TEXT) return HONE_ATTR_STRING;
  if (r->kind == NUMBER) return n.whole ? HONE_ATTR_INT : HONE_ATTR_FLOAT;
  for (uint64_t i = 0; r->kind == LIST && i < r->n && all; i++)
    all = element(r, i).any || element(r, i).whole;
  return r->kind != LIST ? HONE_ATTR_NONE : all ? HONE_ATTR_INTS : HONE_ATTR_FLOATS;
}

bool hn_where_give(const hn_where *c, const hone_match *m) {
  const hn_comparison *first = c->any;
  const bool left = is_own_attr(first->left);
  hn_term *const from = left ? first->right : first->left, *const to = left ? first->left : first->right;
  hn_number numbers[64];
  hone_reason why;
  result r;
  if (first->relation != HN_EQUAL || !is_own_attr(to) || !evaluate(from, m, &r, &why) ||
      !known(from, &r, &why))
    return true;
  hn_term plain = {.kind = HN_TERM_LIST, .spelled = from->spelled, .list = numbers};
  for (; r.numbers && plain.n_list < r.n; plain.n_list++)
    numbers[plain.n_list] = r.numbers[plain.n_list].any ? whole(1) : r.numbers[plain.n_list];
  const hn_setting s = {.attr = to->attr, .term = r.numbers ? &plain : from};
  const hone_attr_type type = type_for(&r);
  return !type || hn_setting_apply(&s, type, m, m->node[c->line], &why);
}
