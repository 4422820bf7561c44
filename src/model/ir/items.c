#include "model/ir/items.h"

#include <string.h>

static const char *doubt_tensor(const hone_tensor *t, hone_dtype dtype) {
  if (t->desc.dtype != dtype) return "a tensor in it is of another type";
  if (t->desc.rank < 0 || t->desc.rank > HONE_MAX_RANK || hone_desc_bytes(&t->desc) < 0)
    return "the shape of a tensor in it is not known";
  if (t->desc.layout != HONE_LAYOUT_ROW_MAJOR || t->desc.device)
    return "a tensor in it is not row-major on the host";
  return t->data || hone_desc_bytes(&t->desc) == 0 ? NULL : "a tensor in it has no data";
}

static const char *doubt_map(const hone_items *items, hone_dtype dtype) {
  if (items->count != 2 || !items->item[0] || !items->item[1]) return "it is a map without keys or values";
  const hone_tensor *key = items->item[0], *value = items->item[1];
  const char *why = doubt_tensor(key, hn_map_key(dtype));
  if (!why) why = doubt_tensor(value, hone_dtype_element(dtype));
  if (!why && (key->desc.rank != 1 || value->desc.rank != 1 || key->desc.dim[0] != value->desc.dim[0]))
    why = "a map's keys and values are not vectors of one length";
  return why;
}

const char *hn_items_doubt(const hone_tensor *t, hone_dtype dtype) {
  if (hone_dtype_is_tensor(dtype)) return doubt_tensor(t, dtype);
  if (t->desc.dtype != dtype) return "it is of another type";
  if (t->desc.rank != 0) return "its rank is not 0";
  const hone_items *items = t->data;
  if (!items || (items->count && !items->item)) return "it has no items";
  if (hn_dtype_is_map(dtype)) return doubt_map(items, dtype);
  const bool optional = dtype & HONE_OPTIONAL;
  if (optional && items->count > 1) return "it is an optional with more than one value";
  const hone_dtype inner = (hone_dtype)(dtype & ~(unsigned)(optional ? HONE_OPTIONAL : HONE_SEQUENCE));
  for (size_t i = 0; i < items->count; i++) {
    const char *why = items->item[i] ? hn_items_doubt(items->item[i], inner) : "an item is NULL";
    if (why) return why;
  }
  return NULL;
}

static bool copy_strings(hone_string *s, int64_t n, hn_items_alloc alloc, void *self) {
  for (int64_t i = 0; i < n; i++) {
    char *bytes = s[i].len ? alloc(self, s[i].len) : NULL;
    if (s[i].len && !bytes) return false;
    if (bytes) memcpy(bytes, s[i].ptr, s[i].len);
    s[i].ptr = bytes;
  }
  return true;
}

static bool copy_items(hone_items *items, hn_items_alloc alloc, void *self) {
  const hone_tensor **list = NULL;
  if (items->count > SIZE_MAX / sizeof *list) return false;
  if (items->count && !(list = alloc(self, items->count * sizeof *list))) return false;
  for (size_t i = 0; i < items->count; i++)
    if (!(list[i] = hn_items_copy(items->item[i], alloc, self))) return false;
  items->item = list;
  return true;
}

const hone_tensor *hn_items_copy(const hone_tensor *t, hn_items_alloc alloc, void *self) {
  hone_tensor *copy = alloc(self, sizeof *copy);
  const int64_t bytes = hone_desc_bytes(&t->desc);
  if (!copy || bytes < 0) return NULL;
  *copy = *t;
  copy->data = alloc(self, bytes ? (size_t)bytes : 1);
  if (!copy->data) return NULL;
  if (bytes) memcpy(copy->data, t->data, (size_t)bytes);
  const bool whole = !hone_dtype_is_tensor(t->desc.dtype) ? copy_items(copy->data, alloc, self)
                     : t->desc.dtype == HONE_DTYPE_STRING
                         ? copy_strings(copy->data, hone_desc_count(&t->desc), alloc, self)
                         : true;
  return whole ? copy : NULL;
}
