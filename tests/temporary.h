/* Where a test may write: below $TMPDIR, which tests/apart.sh makes for each test and removes with all that
 * is in it. */
#ifndef HN_TESTS_TEMPORARY_H
#define HN_TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>

/* A template for mkdtemp or mkstemp. */
static inline char *temporary(char *path, size_t size, const char *name) {
  const char *folder = getenv("TMPDIR");
  const int n = snprintf(path, size, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
  if (n < 0 || (size_t)n >= size) abort();
  return path;
}

/* Removes the folder and all that is in it; 0, or what rm said. */
static inline int temporary_remove(const char *folder) {
  char command[512];
  const int n = snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (n < 0 || (size_t)n >= sizeof command) abort();
  return system(command);
}

#endif
