/* Which operators a graph has. Most passes and patterns are of operators that a model does not have: asking
 * for their names first spares going over every node for each of them. */
#ifndef HN_OPTIMIZE_MATCH_PRESENT_H
#define HN_OPTIMIZE_MATCH_PRESENT_H

#include "model/ir/graph.h"

/* The types of nodes, each once, whatever their domains. The names are the nodes' own. */
typedef HN_VEC(const char *) hn_present;

/* Adds those of a graph; nested: and of the graphs in it. False: out of memory. */
bool hn_present_add(hn_present *present, const hn_graph *graph, bool nested);
/* Which of them a type is; SIZE_MAX: none. */
size_t hn_present_find(const hn_present *present, const char *type);
/* Is there a node of one of these types (NULL-ended)? */
bool hn_present_any(const hn_present *present, const char *const *types);

/* Could this spelling of a pattern, which has a line of text for each node, match where there are these
 * operators alone? It could not where none of a line's is there. Near misses have all operators, too, but for
 * those of lenient patterns (hn_pattern). */
bool hn_spelling_may_match(const hn_present *present, const char *spelling);

#endif
