/* Conditions of a pattern, and the attributes of the operator that it makes: what is asked of the attributes,
 * dimensions, types and constants of a match.
 *
 *   %y = Conv(%x, !%w) where group else 1 == dim(%x, 1) and kernel_shape == [3, ?]
 *
 *   condition  = comparison | "(" comparison {"or" comparison} ")"       joined by "and"
 *   comparison = term ("==" | "!=" | "<" | "<=" | ">" | ">=") term
 *   term       = factor {("*" | "/" | "mod") factor}
 *   factor     = NUMBER | "text" | TYPE (f32, i8...) | [NUMBER or ?, ...]
 *              | dim(%x, K) | dims(%x) | rank(%x) | type(%x) | value(%x)
 *              | ATTRIBUTE ["else" factor]              of the node of the same line
 *              | attr(%x, ATTRIBUTE) ["else" factor]    of the node that makes %x
 *
 * What is not known (a dimension, a constant, an attribute that is absent without "else") satisfies no
 * condition. Two dimensions are also equal when they are the same symbol. */
#ifndef HN_OPTIMIZE_MATCH_CONDITION_H
#define HN_OPTIMIZE_MATCH_CONDITION_H

#include "model/ir/lex.h"
#include "optimize/match/pattern.h"

typedef HN_VEC(hn_where) hn_where_list;
typedef HN_VEC(hn_setting) hn_setting_list;

/* Reads what stands behind "where". */
bool hn_where_parse(hn_lex *lex, uint32_t line, hn_where_list *out);
/* Reads `name = term` up to the end of the text. */
bool hn_settings_parse(hn_lex *lex, hn_setting_list *out);
/* Finds the names in the pattern, when all of its lines have been read. */
bool hn_term_resolve(hn_lex *lex, const hn_pattern *pattern, uint32_t line, hn_term *term);

/* False: *why says which condition does not hold, and with what. */
bool hn_where_holds(const hn_where *condition, const hone_match *match, hone_reason *why);
/* Evaluates the setting as an attribute of this type, and gives it to the node (NULL: only to see whether it
 * can be). False: *why says what is missing. */
bool hn_setting_apply(const hn_setting *setting, hone_attr_type type, const hone_match *match,
                      hone_node *node, hone_reason *why);

/* The other way round, on a match whose nodes are to be made: gives the line's node the attribute that an
 * equation asks of it (a list's `?` becomes 1), where the other side is known. */
bool hn_where_give(const hn_where *condition, const hone_match *match);

#endif
