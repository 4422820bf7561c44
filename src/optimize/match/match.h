/* Patterns: small graphs in text, found in a graph from their last line (the root) upwards.
 *
 *   %s = Sigmoid(%x)
 *   %y = Mul(%x, %s)
 *
 * A name stands for one value wherever it occurs; a name that no line makes matches any value. ?%b may be
 * left out, `_` must be. !%w must be a constant. A number matches a constant of one element with that value
 * (within 1e-6 of it). A|B matches either operator. Attributes named in a line must be present and equal
 * (axis and axes are compared after adding the rank to negative ones); others are free. Add, Mul and their
 * like are tried both ways. What the inner lines make may have no reader outside. Behind a line may stand
 * conditions: `where group else 1 == dim(%x, 1)` (condition.h). */
#ifndef HN_OPTIMIZE_MATCH_MATCH_H
#define HN_OPTIMIZE_MATCH_MATCH_H

#include "optimize/match/pattern.h"

typedef enum hn_match_result { HN_MATCH_NO = 0, HN_MATCH_NEAR, HN_MATCH_YES } hn_match_result;

/* What a pattern is made of. */
typedef struct hn_pattern_text {
  const char *name, *text;
  const char *settings; /* attributes of the operator; NULL: none */
  bool in_settings;     /* a mistake is there, else in `text`: */
  int line, column;     /* 0: there is none, or it has no place */
} hn_pattern_text;

/* Splits a text at its lines "or" and compiles each spelling; *count of at most max. */
hone_status hn_pattern_compile_all(hn_pattern_text *text, hn_arena *arena, hn_pattern *out, uint32_t max,
                                   uint32_t *count, hone_error *error);

/* Compiles the text; everything lies in the arena. The names keep pointing into it. */
hone_status hn_pattern_compile(const char *name, const char *text, hn_arena *arena, hn_pattern *out,
                               hone_error *error);

/* Is the root what the pattern's last line says? Else nothing matches there. */
bool hn_pattern_ends_at(const hn_pattern *pattern, const hone_node *root);
/* Looks for the pattern with `root` as its last line. NEAR: everything fits but one condition, which *why
 * says; of lenient patterns that may be the operator of a line. */
hn_match_result hn_pattern_match(const hn_pattern *pattern, hone_node *root, hone_match *out,
                                 hone_reason *why);

/* Last node of the match. */
static inline hone_node *hn_match_root(const hone_match *m) { return m->node[m->pattern->n_lines - 1]; }

/* Value of a constant with one element (any float or integer type); false otherwise. */
bool hn_constant_scalar(const hn_value *value, double *out);
/* The bounds of a Clip (ops/math/clip_bounds.h); false when one of them is not known. */
bool hn_constant_clip(const hone_node *clip, double *lo, double *hi);

#endif
