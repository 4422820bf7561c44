/* Can a folder take a file? Without a source of its own: tests of the doctor are linked with its folder
 * alone. */
#ifndef CLI_OPTIONS_FOLDER_H
#define CLI_OPTIONS_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a file can be made in the folder, which is made when it is needed; *where: the folder above that
 * there is. */
static inline bool cli_can_hold(const char *folder, char *where, size_t size) {
  struct stat st;
  snprintf(where, size, "%s", folder);
  while (stat(where, &st) != 0) {
    char *slash = strrchr(where, '/');
    if (!slash) return false;
    slash[slash == where] = 0;
    if (slash == where) break;
  }
  return stat(where, &st) == 0 && S_ISDIR(st.st_mode) && access(where, W_OK | X_OK) == 0;
}

#endif
