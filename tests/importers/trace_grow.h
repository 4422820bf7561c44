/* Large Chrome traces (an object with traceEvents, or an array of events) from small ones: the sample's
 * events again and again, later each time and with numbers of their own. */
#ifndef TESTS_IMPORTERS_TRACE_GROW_H
#define TESTS_IMPORTERS_TRACE_GROW_H

#include <stddef.h>

/* Writes at least `bytes`; returns how many copies there are, 0 when the sample cannot be read or the file
 * not be written. */
size_t trace_grow(const char *sample, size_t bytes, const char *to);

#endif
