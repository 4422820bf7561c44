/* Where nobody may load a plugin: the folder for temporary files, or one above it, is another's, or open to
 * all. */
#ifndef HN_TESTS_PLUGINS_UNTRUSTED_H
#define HN_TESTS_PLUGINS_UNTRUSTED_H

#include "cli/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the test as skipped when hone refuses whatever lies in `folder`. */
static inline void skip_where_untrusted(const char *folder) {
  char path[600];
  snprintf(path, sizeof path, "%s/empty.so", folder);
  FILE *f = fopen(path, "w");
  if (f) fclose(f);
  process p = process_run(folder, 0, (const char *const[]){"op", "list", "--op-path", "empty.so", NULL});
  const int refused = strstr(p.err, "others can write") || strstr(p.err, "belongs to another user");
  if (refused) printf("SKIP: plugins may not be loaded from %s: %s", folder, p.err);
  process_free(&p);
  unlink(path);
  if (refused) {
    rmdir(folder);
    exit(77);
  }
}

#endif
