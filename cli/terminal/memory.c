/* What jansson does without memory: texts lose characters, members are left out, its reader aborts. None of
 * that may reach an output, so the command ends there, with nothing written: JSON is built before its file is
 * opened or its first byte printed. */
#include "cli/terminal/memory.h"
#include "cli/terminal/term.h"

#include <hone/hone.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *cli_json_room(size_t size) {
  void *p = malloc(size ? size : 1);
  if (p) return p;
  int code = cli_error(HONE_ERROR_MEMORY, "out of memory for JSON");
  hone_writer_abandon_all();
  _exit(code);
}

/* A model is opened, rewritten and planned in arenas that come and go: each would give its pages to the
 * system, and the next take them again, cleared. What matters for the resident set is larger, and mapped
 * apart.
 *
 * A page of the system's costs a microsecond, most of which is not its clearing: a huge one takes as long as
 * 150 to 250 small ones (docs/log/perf-log-load.md). So the heap begins in small pages, which is all that a
 * small model needs, and goes on in huge ones. It is moved so that these begin where it has that many bytes;
 * what is skipped is never touched. Where the system grants no huge pages, all is as it was. */
static void keep_small_blocks(void) {
#ifdef __GLIBC__
  enum { HUGE = 2 << 20, SMALL = 768 << 10, ROOM = 8 << 20 };
  const uintptr_t at = (uintptr_t)sbrk(0), huge = (at + SMALL + HUGE - 1) / HUGE * HUGE;
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 * ROOM);
  if (at != UINTPTR_MAX && sbrk((intptr_t)(huge - SMALL - at)) != (void *)-1) {
    mallopt(M_TOP_PAD, SMALL + ROOM);
    void *volatile first = malloc(1); /* volatile: it is for the heap to grow, and would be left out */
    free(first);
    madvise((void *)huge, ROOM, MADV_HUGEPAGE);
  }
  mallopt(M_TOP_PAD, 1 << 20);
#endif
}

void cli_memory(void) {
  keep_small_blocks();
#ifndef HN_LATE_JANSSON /* else that waits until it is loaded (json_late.c) */
  json_set_alloc_funcs(cli_json_room, free);
#endif
}
