/* What jansson does without memory: texts lose characters, members are left out, its reader aborts. None of
 * that may reach an output, so the command ends there, with nothing written: JSON is built before its file is
 * opened or its first byte printed. */
#include "cli/terminal/memory.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <stdlib.h>
#include <unistd.h>

static void *or_end(size_t size) {
  void *p = malloc(size ? size : 1);
  if (p) return p;
  int code = cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  hone_writer_abandon_all();
  _exit(code);
}

void cli_memory(void) { json_set_alloc_funcs(or_end, free); }
