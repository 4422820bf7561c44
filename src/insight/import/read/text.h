/* Numbers, times, units, data types and shapes as other tools spell them. None of these depends on the
 * locale. */
#ifndef HN_INSIGHT_IMPORT_TEXT_H
#define HN_INSIGHT_IMPORT_TEXT_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal number at the start of text, blanks before it skipped; *end is set behind it. False when there
 * is none. NaN, inf and their kin are numbers. */
bool hn_text_number(const char *text, double *value, const char **end);
/* The same with thousands separators ("1,234.5"), and nothing but blanks, a percent sign or a unit in letters
 * behind it. */
bool hn_text_count(const char *text, double *value);

/* A decimal number as integer nanoseconds when it counts 10^digits of them; exact, rounded to the nearest.
 * False when it is no number or beyond +-72 years. */
bool hn_text_ns(const char *text, int digits, int64_t *ns);

/* Nanoseconds of a unit of time ("us", "ms", "s", "ns", "usecond", "microseconds" ...); 0: none known. */
double hn_text_unit_ns(const char *unit);

/* hone's word for a data type ("float16", "Half", "DT_FLOAT16", "FP16", "c10::Half" -> "f16"); NULL when it
 * is not known. */
const char *hn_text_dtype(const char *name);
/* Bytes of an element of hone's dtype; 0: not known (or below a byte). */
unsigned hn_text_dtype_bytes(const char *dtype);

/* Numbers in text like "1,3,224,224", "[1 3 224 224]" or "1x3x224x224" up to `most`; returns how many. Stops
 * at ';'. */
size_t hn_text_dims(const char *text, int64_t *dims, size_t most);
/* Appends "1x3x224x224"; a negative dimension is "?", no dimension is "scalar". */
void hn_text_put_shape(hn_str *out, const int64_t *dims, size_t n);

/* Equal but for case, and '_' equals ' '. */
bool hn_text_same(const char *a, const char *b);
/* Starts with, ends with, contains; case matters. */
bool hn_text_starts(const char *text, const char *prefix);
bool hn_text_ends(const char *text, const char *suffix);

#endif
