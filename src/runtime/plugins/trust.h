/* May this file be loaded? Asked before any of its code runs. */
#ifndef HN_RUNTIME_PLUGINS_TRUST_H
#define HN_RUNTIME_PLUGINS_TRUST_H

#include <hone/status.h>

/* The file and all folders above it belong to the caller or to root, and nobody else can write them: who can
 * replace the file can do what the caller can. A folder with the sticky bit (/tmp) may be open to all: there
 * nobody replaces what is another's. `path` is absolute, without links. */
hone_status hn_plugin_trust(const char *path, hone_error *error);

/* It is a shared library for this processor. */
hone_status hn_plugin_is_library(const char *path, hone_error *error);

#endif
