/* Sequences and optionals as values: a tensor of rank 0 whose one element is a hone_items. Nothing changes
 * what is in one: sequences share their tensors, which live as long as the memory that they were made in. */
#ifndef HN_MODEL_IR_ITEMS_H
#define HN_MODEL_IR_ITEMS_H

#include <hone/tensor.h>

/* Where copies go; NULL when memory is out. */
typedef void *(*hn_items_alloc)(void *self, size_t bytes);

static inline const hone_items *hn_items(const hone_tensor *t) { return t->data; }

static inline bool hn_dtype_has_map(hone_dtype d) { return d & (HONE_MAP_I64 | HONE_MAP_STRING); }
static inline bool hn_dtype_is_map(hone_dtype d) { return hn_dtype_has_map(d) && !(d & HONE_SEQUENCE); }
/* Of a map, or of the maps in a sequence. */
static inline hone_dtype hn_map_key(hone_dtype d) {
  return d & HONE_MAP_I64 ? HONE_DTYPE_I64 : HONE_DTYPE_STRING;
}

/* Says in why what is wrong with a value that is given from outside as one of that type; NULL: nothing. */
const char *hn_items_doubt(const hone_tensor *t, hone_dtype dtype);

/* A copy with all that is in it, strings' bytes included; NULL when memory is out. */
const hone_tensor *hn_items_copy(const hone_tensor *t, hn_items_alloc alloc, void *self);

#endif
