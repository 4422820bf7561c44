/* What a pattern (match.h) is made of, and where it was found. */
#ifndef HN_OPTIMIZE_MATCH_PATTERN_H
#define HN_OPTIMIZE_MATCH_PATTERN_H

#include "model/ir/text.h"

#include <math.h>

typedef enum hn_term_kind {
  HN_TERM_NUMBER,
  HN_TERM_TEXT,
  HN_TERM_TYPE,
  HN_TERM_LIST,
  HN_TERM_ATTR,
  HN_TERM_DIM,
  HN_TERM_DIMS,
  HN_TERM_RANK,
  HN_TERM_TYPE_OF,
  HN_TERM_VALUE,
  HN_TERM_PRODUCT,
  HN_TERM_QUOTIENT,
  HN_TERM_REMAINDER
} hn_term_kind;

typedef struct hn_number {
  bool any;   /* a list's `?` */
  bool whole; /* i, else f */
  int64_t i;
  double f;
} hn_number;

typedef struct hn_term {
  hn_term_kind kind;
  int row, column; /* in the text */
  const char *spelled;
  const char *name; /* of the value, without '%'; ATTR without one: the line's own node */
  const char *attr;
  uint32_t line; /* ATTR: of the node; set when the text has been read */
  hn_number number;
  hone_string text;
  hone_dtype type;
  uint32_t n_list;
  hn_number *list;
  int64_t index;                /* DIM */
  struct hn_term *otherwise;    /* ATTR: behind "else" */
  struct hn_term *left, *right; /* PRODUCT, QUOTIENT, REMAINDER */
} hn_term;

typedef enum hn_relation { HN_EQUAL, HN_DIFFERENT, HN_LESS, HN_AT_MOST, HN_GREATER, HN_AT_LEAST } hn_relation;

typedef struct hn_comparison {
  hn_relation relation;
  hn_term *left, *right;
} hn_comparison;

typedef struct hn_where {
  uint32_t line; /* behind which it stands */
  uint32_t n_any;
  hn_comparison *any; /* one of them must hold */
  const char *spelled;
} hn_where;

/* An attribute of the operator that a pattern makes. */
typedef struct hn_setting {
  const char *attr;
  hn_term *term;
} hn_setting;

enum { HN_PATTERN_LINES = 24, HN_PATTERN_NAMES = 64 };

typedef struct hn_pattern hn_pattern;
struct hn_pattern {
  const char *name; /* for messages */
  bool lenient;     /* a near miss may also have another operator in one of three or more lines */
  uint32_t n_lines, n_names;
  hn_line line[HN_PATTERN_LINES];
  const char *names[HN_PATTERN_NAMES];
  int8_t made_by[HN_PATTERN_NAMES];     /* line that makes the name; -1: none, an input of the pattern */
  uint8_t made_index[HN_PATTERN_NAMES]; /* which of its outputs */
  uint32_t n_conditions, n_settings;
  const hn_where *condition;
  const hn_setting *setting; /* attributes of the operator that it makes */
};

struct hone_match {
  const hn_pattern *pattern;
  hone_node *node[HN_PATTERN_LINES];
  hn_value *value[HN_PATTERN_NAMES];
  bool bound[HN_PATTERN_NAMES];
  uint32_t n_other; /* near misses: nodes that are not what their lines say */
};

/* Number of a name (without '%'), or -1. */
static inline int hn_pattern_name(const hn_pattern *p, const char *name) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (hn_same_name(p->names[i], name)) return (int)i;
  return -1;
}
/* Value bound to a name; NULL when the pattern has no such name or it was left out. */
static inline hn_value *hn_match_get(const hone_match *m, const char *name) {
  const int i = hn_pattern_name(m->pattern, *name == '%' ? name + 1 : name);
  return i >= 0 && m->bound[i] ? m->value[i] : NULL;
}
/* |a - b| <= 1e-6 |b|, and equal when b is 0. */
static inline bool hn_same_number(double a, double b) { return a == b || fabs(a - b) <= 1e-6 * fabs(b); }

#endif
