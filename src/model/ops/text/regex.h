/* Patterns of RE2 over the strings of operators. What RE2 does not have (references back, looking around) is
 * refused, and so is a match that takes too many steps. Without PCRE2 none can be made. */
#ifndef HN_MODEL_OPS_REGEX_H
#define HN_MODEL_OPS_REGEX_H

#include "model/ir/graph.h"
#include "model/ops/common/convert.h"

typedef struct hn_regex hn_regex;

/* whole: for matches of all of a string, and a dot is no line feed, as RE2 has it unless told otherwise; else
 * for parts, and a dot is any character. */
hone_status hn_regex_make(const hone_node *node, hone_string text, bool whole, hn_regex **out,
                          hone_error *error);
void hn_regex_free(hn_regex *p);

/* Whether s, the input's `element`, matches. */
hone_status hn_regex_match(const hone_call *call, hn_regex *p, hone_string s, int64_t element, bool *matches,
                           hone_error *error);
/* Of the first matches in s from byte `from` on the longest; s.len and s.len: none. A string is searched from
 * its beginning first. */
hone_status hn_regex_find(const hone_call *call, hn_regex *p, hone_string s, size_t from, int64_t element,
                          size_t *begin, size_t *end, hone_error *error);

#endif
