/* Plans of one model whose sizes lie on lines (plan/line.h): which lines there are, and when it is worth
 * looking for one. */
#ifndef HN_API_LINES_H
#define HN_API_LINES_H

#include "optimize/plan/packed.h"

#include <hone/session.h>

typedef struct hn_lines hn_lines;
typedef struct hn_lined hn_lined; /* what a plan knows of them */

/* Counted, begins with 1; NULL: out of memory. Thread-safe, as is all below. */
hn_lines *hn_lines_create(void);
void hn_lines_drop(hn_lines *lines); /* NULL is fine */

/* A plan that was just made, with these options and this store. Where it cannot be moved, or memory is short,
 * it stays a plan like any other. */
void hn_lines_note(hn_lines *lines, hone_plan *plan, const hone_plan_options *options,
                   hn_packed_store *store);
void hn_lined_free(hn_lined *lined);

/* As hone_plan_rebind, of a plan that was noted. */
hone_status hn_lines_move(hone_plan *plan, const hone_binding *bindings, uint32_t n, bool *done,
                          hone_error *error);

/* How often plans were moved, and made to look at. */
typedef struct hn_lines_counts {
  uint64_t moved, looked;
  uint32_t lines;
} hn_lines_counts;
void hn_lines_count(hn_lines *lines, hn_lines_counts *out);

#endif
