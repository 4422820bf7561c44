/* Facts in which every member of every table of facts.def says something, by the list itself. */
#ifndef TESTS_INSIGHT_FILLED_H
#define TESTS_INSIGHT_FILLED_H

#include "base/arena.h"
#include "insight/facts_table.h"

enum { FILLED_ROWS = 3 }; /* of a table */

typedef struct filler {
  hn_arena arena; /* what rows point to */
  int64_t next;   /* each value is another one, and later ones are larger: a span ends after it starts */
} filler;

/* A row at this place of its table. False: only what is required says something. */
void fill_row(filler *filler, hn_fact_id id, void *row, int place, bool all);
/* `rows`: what was put in, FILLED_ROWS for each table. Fails the test when out of memory. */
hone_facts *filled_facts(filler *filler, hn_fact_row rows[HN_FACTS_COUNT][FILLED_ROWS]);

#endif
