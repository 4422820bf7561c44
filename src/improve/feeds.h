/* The inputs that verify gives to both sides: random ones, and edge values of their types. Inside of improve
 * only. */
#ifndef HN_IMPROVE_FEEDS_H
#define HN_IMPROVE_FEEDS_H

#include "improve/side.h"

typedef enum hn_edge {
  HN_EDGE_NONE = 0,     /* random values */
  HN_EDGE_ZEROS,        /* all zero */
  HN_EDGE_ONES,         /* all one */
  HN_EDGE_LARGEST,      /* all the largest value */
  HN_EDGE_LOWEST,       /* all the lowest */
  HN_EDGE_EXTREMES,     /* the one or the other at random */
  HN_EDGE_SIGNED_ZEROS, /* random values, every fourth 0, every fourth -0 */
  HN_EDGE_TIMES_8,      /* random values times 8 */
  HN_EDGE_DENORMALS,    /* small random values, every fourth denormal */
  HN_EDGE_KINDS
} hn_edge;

typedef struct hn_feed_case {
  uint64_t seed;
  hn_edge edge;
  int32_t only;    /* the input that gets the edge's values, the others stay random; -1: all */
  uint64_t sample; /* of the set, counted from 1; 0: none */
  double largest;  /* of inputs that hold extremes, instead of their type's; 0: the type's */
} hn_feed_case;

const char *hn_edge_name(hn_edge edge);
bool hn_edge_is_extreme(hn_edge edge);
/* Does the case differ from random inputs, and does it hold values that arithmetic may carry out of its type:
 * the largest of floating point, or of integers that no table bounds and that are wider than a byte? */
bool hn_feeds_differ(const hn_plan *plan, const hn_feed_case *c);
bool hn_feeds_extreme(const hn_plan *plan, const hone_model *model, const hn_feed_case *c);

/* feeds[plan->n_inputs], zeroed or made before; bounds of integers are those of `model`. */
hone_status hn_feeds_make(const hn_plan *plan, const hone_model *model, const hn_feed_case *c, hn_feed *feeds,
                          hone_error *error);
/* Puts the caller's values where there are any (by input); the feeds are made. */
hone_status hn_feeds_give(hn_feed *feeds, uint32_t n, const hone_data *given, hone_error *error);
/* Does the caller give every input? */
bool hn_feeds_all_given(const hone_data *given, uint32_t n);
void hn_feeds_free(hn_feed *feeds, uint32_t n);
/* Moves every value of type f32 by this part of itself, up or down at random; never to infinity. */
void hn_feeds_nudge(hn_feed *feeds, uint32_t n, float part, uint64_t seed);

#endif
