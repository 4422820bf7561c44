#include "insight/json_read.h"

#include "base/mem.h"

#include <stdint.h>
#include <string.h>

/* jansson (2.14) loses characters, or aborts, when the buffer of a token cannot grow. So there is a look
 * first whether what a tree takes at most (a table of eight and some 100 bytes for every few characters) is
 * to be had; it costs no memory. */
enum { BYTES_PER_CHARACTER = 32, LEAST = 64 << 10 };

json_t *hn_json_load(const char *text, size_t length, size_t flags, json_error_t *where) {
  memset(where, 0, sizeof *where);
  void *room =
      length < SIZE_MAX / 2 / BYTES_PER_CHARACTER ? hn_malloc(length * BYTES_PER_CHARACTER + LEAST) : NULL;
  if (!room) return NULL;
  hn_free(room);
  hn_mem_foreign_begin();
  json_t *root = json_loadb(text, length, flags, where);
  hn_mem_foreign_end();
  return root;
}
