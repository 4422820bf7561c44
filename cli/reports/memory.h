/* Who holds memory, as readers see it (hone run --memory, hone bench --json). */
#ifndef HONE_CLI_MEMORY_H
#define HONE_CLI_MEMORY_H

#include <hone/hone.h>
#include <jansson.h>

/* NULL when out of memory. */
json_t *memory_json(const hone_memory_stats *stats);
void memory_text(const hone_memory_stats *stats);

#endif
