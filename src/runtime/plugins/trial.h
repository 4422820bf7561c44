/* A plugin is loaded in a child process first: what crashes or hangs there does so without hone. */
#ifndef HN_RUNTIME_PLUGINS_TRIAL_H
#define HN_RUNTIME_PLUGINS_TRIAL_H

#include <hone/plugins.h>

/* Loads the library, calls its entry and looks at every descriptor, in a child. HONE_ERROR_INPUT with what is
 * wrong; HONE_ERROR_IO when there can be no child. */
hone_status hn_plugin_try(const char *path, double max_seconds, hone_error *error);

/* The same in this process: *library stays open, *plugin is what the entry gave. */
hone_status hn_plugin_open(const char *path, void **library, const hone_plugin **plugin, hone_error *error);

#endif
