/* Tables of the functions of a library that is loaded while the program runs, typed by its header. A library
 * is a list of symbols, HN_X_SYMBOLS(X) with one X(name) each, from which come
 *   - the table:    typedef struct hn_x { HN_X_SYMBOLS(HN_DL_FIELD) } hn_x;
 *   - its symbols:  static const hn_dl_symbol symbols[] = {HN_X_SYMBOLS(HN_DL_SYMBOL)}; with HN_DL_TABLE
 * defined as the table's type. A header's macro that maps a name to its newest version (cuMemAlloc to
 * cuMemAlloc_v2) maps the field, the symbol and the call table.cuMemAlloc(...) alike. */
#ifndef HN_BASE_SYMBOLS_H
#define HN_BASE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#define HN_DL_TEXT_(name) #name
#define HN_DL_TEXT(name) HN_DL_TEXT_(name)
#define HN_DL_FIELD(name) __typeof__(name) *name;
#define HN_DL_SYMBOL(name) {HN_DL_TEXT(name), offsetof(HN_DL_TABLE, name), false},
#define HN_DL_OPTIONAL(name) {HN_DL_TEXT(name), offsetof(HN_DL_TABLE, name), true}, /* may stay NULL */

typedef struct hn_dl_symbol {
  const char *name;
  size_t offset; /* of the pointer in the table */
  bool optional;
} hn_dl_symbol;

/* Fills the table from a library (hn_library_open). NULL, or the first name that must be there and is not. */
const char *hn_dl_fill(void *library, const hn_dl_symbol *symbols, size_t n, void *table);

#endif
