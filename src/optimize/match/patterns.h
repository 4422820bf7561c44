/* Fused patterns: those of the registry, found in a graph. Each match stands for one operator of ONNX
 * (perhaps of a newer opset than the model's) that computes the same. */
#ifndef HN_OPTIMIZE_MATCH_PATTERNS_H
#define HN_OPTIMIZE_MATCH_PATTERNS_H

#include "base/registry.h"
#include "optimize/match/match.h"

/* Of hone_pattern_desc, by name; no two of a name have one text. Begins with patterns.def. */
extern hn_registry hn_patterns;

typedef struct hn_pattern_hit {
  hone_node *node; /* the operator: not linked into the graph, no use registered; its inputs are the pattern's
                      in order, its output is the root's. Lives in the model's arena */
  hone_node *root; /* last of the nodes that it stands for */
  uint32_t n_nodes;
  hone_node *const *nodes; /* all of them, root last */
  bool pointwise;          /* one function of input 0: */
  hone_pw_op op;
  float alpha, beta;
  const hone_pattern_desc *desc;
  bool custom; /* of a plugin: not of patterns.def */
  bool rival;  /* custom: another pattern makes one pointwise function of the same nodes */
} hn_pattern_hit;

typedef HN_VEC(hn_pattern_hit) hn_pattern_hits;

/* Told of every hit, and of the near misses at nodes that no hit took. Asked (wanted, may be NULL) whether a
 * match shall be a hit; otherwise its nodes are free for another. */
typedef struct hn_pattern_listener {
  void *self;
  void (*hear)(void *self, const hone_pattern_desc *pattern, const hone_match *match, bool hit,
               const char *reason);
  bool (*wanted)(void *self, const hn_pattern_hit *hit);
} hn_pattern_listener;

/* All patterns in a graph; no node belongs to two hits, larger patterns win, among equals those of plugins,
 * the last that was added first. Hits are in the order of their roots. listener may be NULL. The caller frees
 * hits->ptr with hn_vec_free. */
hone_status hn_patterns_match(hn_graph *graph, hn_pattern_hits *hits, const hn_pattern_listener *listener,
                              hone_error *error);

/* Where a mistake is: in the desc's text, inputs or settings (that very pointer). line 0: it has no place. */
typedef struct hn_pattern_place {
  const char *in;
  int line, column;
} hn_pattern_place;
/* Are its texts right? */
hone_status hn_pattern_check(const hone_pattern_desc *pattern, hn_pattern_place *place, hone_error *error);
/* Are there such operators? Only who writes a pattern asks: a plugin may know more than this library. */
hone_status hn_pattern_operators(const hone_pattern_desc *d, hn_pattern_place *place, hone_error *error);

/* The operator that it makes of nodes of a graph, as those of a hit. HONE_ERROR_UNSUPPORTED: it does not
 * match there; the error says why. */
hone_status hn_pattern_operator(const hone_pattern_desc *d, hn_graph *graph, hone_node **out,
                                hone_error *error);

/* Is there a pattern that is not of patterns.def; is this one? */
bool hn_patterns_custom(void);
bool hn_pattern_is_custom(const hone_pattern_desc *pattern);

#endif
