/* What jansson does without memory: texts lose characters, members are left out, its reader aborts. None of
 * that may reach an output, so the command ends there, with nothing written: JSON is built before its file is
 * opened or its first byte printed. */
#include "cli/terminal/memory.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

static void *or_end(size_t size) {
  void *p = malloc(size ? size : 1);
  if (p) return p;
  int code = cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  hone_writer_abandon_all();
  _exit(code);
}

/* A model is opened, rewritten and planned in arenas that come and go: each would give its pages to the
 * system, and the next take them again, cleared. What matters for the resident set is larger, and mapped
 * apart. */
static void keep_small_blocks(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 4 << 20);
  mallopt(M_TOP_PAD, 1 << 20);
#endif
}

void cli_memory(void) {
  keep_small_blocks();
  json_set_alloc_funcs(or_end, free);
}
