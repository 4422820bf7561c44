#include "base/symbols.h"

#include "base/os.h"

#include <string.h>

const char *hn_dl_fill(void *library, const hn_dl_symbol *symbols, size_t n, void *table) {
  for (size_t i = 0; i < n; i++) {
    void *at = hn_library_symbol(library, symbols[i].name);
    memcpy((char *)table + symbols[i].offset, &at, sizeof at);
    if (!at && !symbols[i].optional) return symbols[i].name;
  }
  return NULL;
}
