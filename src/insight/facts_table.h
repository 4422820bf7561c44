/* The list facts.def as data: what every table of the facts holds, for all that goes through tables and
 * members without knowing them. */
#ifndef HN_INSIGHT_FACTS_TABLE_H
#define HN_INSIGHT_FACTS_TABLE_H

#include <hone/facts.h>

/* HN_FACTS_steps and so on, in the order in which they are written. */
typedef enum hn_fact_id {
  HN_FACTS_NONE,
#define OBJECT(id, type, key, about) HN_FACTS_##id,
#define TABLE(id, one, type, key, layout, adder, about) HN_FACTS_##id,
#define RECORD(id, type, about) HN_FACTS_##id,
#include "insight/facts.def"
  HN_FACTS_COUNT
} hn_fact_id;

/* Room for a row of any table. */
typedef union hn_fact_row {
#define OBJECT(id, type, key, about) type id;
#define TABLE(id, one, type, key, layout, adder, about) type id;
#define RECORD(id, type, about) type id;
#include "insight/facts.def"
} hn_fact_row;

/* How the struct keeps a member. */
typedef enum hn_fact_store {
  HN_STORE_TEXT,
  HN_STORE_DOUBLE,
  HN_STORE_BOOL,
  HN_STORE_U8,
  HN_STORE_I32,
  HN_STORE_U32,
  HN_STORE_I64,
  HN_STORE_U64,
  HN_STORE_LIST /* a pointer, its count at count_offset */
} hn_fact_store;

/* What it is in JSON. */
typedef enum hn_fact_word {
  HN_FACT_TEXT,
  HN_FACT_NUMBER,
  HN_FACT_FLAG,
  HN_FACT_INTEGER, /* also a place in a table */
  HN_FACT_OWN_ID,  /* an integer that is the row's place, from 1 */
  HN_FACT_ENUM,    /* a word of `name` */
  HN_FACT_INDICES, /* a list of places in `of` */
  HN_FACT_RECORDS  /* a list of rows of `of` */
} hn_fact_word;

typedef enum hn_fact_when { HN_FACT_REQUIRED, HN_FACT_ALWAYS, HN_FACT_OPTIONAL } hn_fact_when;

typedef struct hn_fact_member {
  const char *key; /* NULL ends the members of a table */
  const char *unit, *about;
  size_t offset, count_offset;
  hn_fact_store store;
  hn_fact_word word;
  hn_fact_when when;
  int64_t low, high; /* of integers and enums; of numbers low alone: 0, or INT64_MIN for any */
  double absent;     /* what a missing number or integer means */
  hn_fact_id of;     /* the table that it points into, or whose rows it lists */
  const char *(*name)(int);
} hn_fact_member;

typedef enum hn_fact_layout {
  HN_FACT_OBJECT,
  HN_FACT_ROWS,
  HN_FACT_ROWS_IF_ANY,
  HN_FACT_LINES,
  HN_FACT_LINES_IF_ANY,
  HN_FACT_RECORD
} hn_fact_layout;

typedef struct hn_fact_table {
  const char *key, *about;
  size_t size; /* of a row */
  hn_fact_layout layout;
  const hn_fact_member *(*members)(void);
} hn_fact_table;

extern const hn_fact_table hn_fact_tables[HN_FACTS_COUNT]; /* of HN_FACTS_NONE: nothing */

/* The least that it may be: one that is required may not be "none". */
int64_t hn_fact_low(const hn_fact_member *member);

/* Members of a row. Integers are those of INTEGER, OWN_ID, ENUM and FLAG. */
int64_t hn_fact_integer(const hn_fact_member *member, const void *row);
void hn_fact_set_integer(const hn_fact_member *member, void *row, int64_t value);
double hn_fact_number(const hn_fact_member *member, const void *row);
void hn_fact_set_number(const hn_fact_member *member, void *row, double value);
const char *hn_fact_text(const hn_fact_member *member, const void *row);
void hn_fact_set_text(const hn_fact_member *member, void *row, const char *value); /* borrowed */
const void *hn_fact_list(const hn_fact_member *member, const void *row, size_t *count);
void hn_fact_set_list(const hn_fact_member *member, void *row, const void *list, size_t count);
/* It says no more than a missing one does. */
bool hn_fact_is_absent(const hn_fact_member *member, const void *row);

/* The rows of a table, or the one of an object. */
const void *hn_facts_rows(const hone_facts *facts, hn_fact_id table, size_t *count);
/* Adds a row, or sets the object, as the public functions do. False: it was not added. */
bool hn_facts_put(hone_facts *facts, hn_fact_id table, const void *row);

#endif
