/* The units of a plugin as this hone has them in its registries: copies of its descriptors, whole also where
 * the plugin was compiled with an older, shorter form. */
#ifndef HN_RUNTIME_PLUGINS_UNITS_H
#define HN_RUNTIME_PLUGINS_UNITS_H

#include "base/registry.h"

#include <hone/plugins.h>

/* The shortest forms: what ABI 1 began with. Members behind these are zero where a plugin has none. */
#define HN_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#define HN_PLUGIN_SIZE HN_UP_TO(hone_plugin, pattern)

/* Is every descriptor whole, and does each fit this hone? Looks at everything that the registries look at. */
hone_status hn_units_check(const hone_plugin *plugin, hone_error *error);

typedef struct hn_units {
  uint32_t n;
  struct hn_unit_entry {
    hn_registry *registry;
    void *copy;
  } * entry; /* [n] */
} hn_units;

/* Is `name` that of an operator, a pattern or what a tactic implements: "Swish" or "domain.Swish"? */
bool hn_units_have(const hone_plugin *plugin, const char *name);

/* Adds all units: every one or, with an error, none. off: patterns and tactics of these names are left out.
 */
hone_status hn_units_add(const hone_plugin *plugin, const char *const *off, uint32_t n_off, hn_units *out,
                         hone_error *error);
/* Takes them away. Copies that plans or models still have stay. */
void hn_units_remove(hn_units *units);

#endif
