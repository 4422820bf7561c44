/* What the passes did: every hit and every near miss. */
#ifndef HN_OPTIMIZE_PASSES_REPORT_H
#define HN_OPTIMIZE_PASSES_REPORT_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

/* What a pass did, or nearly did, at one place. */
typedef struct hn_pass_record {
  const char *pass;                   /* its name: static */
  int32_t level;                      /* of the pass */
  bool hit;                           /* false: a near miss */
  const char *nodes;                  /* names of the nodes concerned, "a, b" */
  const char *reason;                 /* hit: what was done; near miss: why it was refused */
  uint32_t nodes_before, nodes_after; /* nodes of the model around this hit; equal for near misses */
  double bytes_saved;   /* memory traffic of what passes between the nodes, as separate operators move it */
  int32_t enable_level; /* near miss: the level that would do it all the same; -1: none does */
} hn_pass_record;

typedef struct hn_pass_total {
  const char *pass;
  int32_t level;
  uint64_t hits;
  double seconds;
} hn_pass_total;

/* A zeroed report is ready. Strings live in its arena. */
typedef struct hn_pass_report {
  hn_arena arena;
  HN_VEC(hn_pass_record) records;
  HN_VEC(hn_pass_total) totals; /* passes that were run, in order */
  uint32_t nodes_before, nodes_after, rounds;
  uint32_t verified; /* comparisons that were made */
  bool fixed_point;  /* false: stopped at the bound on rounds */
} hn_pass_report;

void hn_pass_report_free(hn_pass_report *report);

#endif
