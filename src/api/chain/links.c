/* The list of links. */
#include "api/chain/chain.h"

#include <string.h>

#define LINK(name) extern const hn_link hn_link_##name;
#include "api/chain/links.def"
#undef LINK

static const hn_link *const links[] = {
#define LINK(name) &hn_link_##name,
#include "api/chain/links.def"
#undef LINK
    NULL};

const hn_link *hn_link_at(uint32_t i) { return i < sizeof links / sizeof *links - 1 ? links[i] : NULL; }

const hn_link *hn_link_find(const char *name) {
  for (uint32_t i = 0; links[i]; i++)
    if (strcmp(links[i]->name, name) == 0) return links[i];
  return NULL;
}
