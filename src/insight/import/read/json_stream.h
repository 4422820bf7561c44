/* Reading foreign JSON of any size: the file's outermost array (or the arrays that are members of its
 * outermost object) arrives element by element, each as a small tree that lives until the next one.
 *
 * Valid JSON is read as the standard says. Beyond it the reader takes what profilers really write: quotation
 * marks and backslashes that are not escaped inside of texts, control characters, stray commas, NaN and
 * infinities. What is wrong beyond repair is one error with its offset. */
#ifndef HN_INSIGHT_IMPORT_JSON_STREAM_H
#define HN_INSIGHT_IMPORT_JSON_STREAM_H

#include "insight/import/read/source.h"

typedef enum hn_jkind { HN_JNULL, HN_JBOOL, HN_JNUMBER, HN_JTEXT, HN_JARRAY, HN_JOBJECT } hn_jkind;

typedef struct hn_jvalue {
  hn_jkind kind;
  const char *key;                /* in an object; else NULL */
  const char *text;               /* of a text (always valid as C string); of a number as it was spelled */
  double number;                  /* of a number; 1 or 0 of a bool */
  struct hn_jvalue *first, *next; /* children of an array or object; the next sibling */
  size_t count;                   /* children */
  uint64_t offset;                /* in the file */
} hn_jvalue;

/* Called for each element of the outermost array (member NULL, in_array true), or for each member of the
 * outermost object: for an array once with each element (in_array true), for anything else once with the
 * value. Any status but HONE_OK ends the reading and is returned. */
typedef hone_status hn_jvisit(void *user, const char *member, bool in_array, const hn_jvalue *value,
                              hone_error *error);

typedef struct hn_jreader {
  hn_jvisit *visit;
  void *user;
  /* Called before the first element of an array that is a member (also of an empty one); may be NULL. */
  hone_status (*array)(void *user, const char *member, hone_error *error);
} hn_jreader;

/* Reads one document to its end. Bounds: one element 64 MiB and nested 128 deep. */
hone_status hn_jread(hn_source *source, const hn_jreader *reader, hone_error *error);

/* Member of an object by name; NULL when absent or when o is no object (or NULL). */
const hn_jvalue *hn_jget(const hn_jvalue *o, const char *key);
/* The first of several spellings of a name; the list ends with NULL. */
const hn_jvalue *hn_jget_any(const hn_jvalue *o, const char *const *keys);
/* Its text; NULL when it is no text (or absent). */
const char *hn_jtext(const hn_jvalue *o, const char *key);
/* Its number, also when that is written as text ("12", "85.3 %"); absent when it is neither. */
double hn_jnumber(const hn_jvalue *o, const char *key, double absent);
/* The same as an integer: absent also when it lies outside of +-2^53. */
int64_t hn_jinteger(const hn_jvalue *o, const char *key, int64_t absent);
/* A time as integer nanoseconds, exact also for microseconds since 1970 with decimals; `digits` is the
 * decimal exponent of the unit (us: 3, ms: 6, s: 9). Returns false, and leaves *ns, when it is no number. */
bool hn_jtime(const hn_jvalue *o, const char *key, int digits, int64_t *ns);

#endif
